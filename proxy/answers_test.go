package proxy

import (
	"strings"
	"testing"

	"tracegate/trace"
)

func TestEveryDialectIsAnswered(t *testing.T) {
	r := newRig(t, setup{})
	for _, d := range dialects {
		for _, stream := range []bool{true, false} {
			name := d.name + "/whole"
			if stream {
				name = d.name + "/stream"
			}
			t.Run(name, func(t *testing.T) {
				a := r.post(d.path, d.body(stream, "Say MARK-0af3 please"))
				rec := r.record()
				equal(t, "status", a.StatusCode, 200)
				equal(t, "end of the body", a.err, nil)
				contains(t, "answer", string(a.body), "MARK-0af3")
				equal(t, "outcome", rec.Outcome, trace.OK)
				equal(t, "dialect", rec.Dialect, d.name)
				equal(t, "id in the headers", a.Header.Get("X-Request-Id"), rec.ID)
				equal(t, "request-id", a.Header.Get("Request-Id"), rec.ID)
				equal(t, "deployment header", a.Header.Get("X-Gateway-Deployment"), "d1")
				equal(t, "model header", a.Header.Get("X-Gateway-Model"), "public")
				equal(t, "attempts header", a.Header.Get("X-Gateway-Attempts"), "1")
				_, hasTTFT := rec.TTFT()
				equal(t, "has a TTFT", hasTTFT, stream)
				equal(t, "output tokens known", rec.Tokens.Output > 0, true)
				if stream && !strings.Contains(a.Header.Get("Content-Type"), "text/event-stream") {
					t.Errorf("content type %q", a.Header.Get("Content-Type"))
				}
			})
		}
	}
}
