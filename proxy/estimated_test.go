package proxy

import (
	"bufio"
	"strings"
	"testing"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// TestCutStreamIsEstimated: what a stream cost that never came to its report
// is known from what passed, and marked as an estimate.
func TestCutStreamIsEstimated(t *testing.T) {
	r := newRig(t, setup{})
	r.engine.Script(fakeengine.Fault{Kind: fakeengine.FIN, After: 5})
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			r.post(d.path, d.body(true, "Hello"))
			rec := r.record()
			equal(t, "outcome", rec.Outcome, trace.StreamInterrupted)
			equal(t, "output", rec.Tokens.Output, 5)
			equal(t, "source", rec.Tokens.Source, trace.SourceEstimated)
			equal(t, "input is known", rec.Tokens.Input > 0, true)
		})
	}
}

// TestAbortedBeforeContent: an engine that throws a request out before its
// first token has not answered.
func TestAbortedBeforeContent(t *testing.T) {
	r := newRig(t, setup{})
	r.engine.Script(fakeengine.Fault{Kind: fakeengine.Finish, Text: "abort"})
	a := r.post("/v1/chat/completions", chatBody("Hello"))
	rec := r.record()
	equal(t, "status", a.StatusCode, 502)
	equal(t, "outcome", rec.Outcome, trace.UpstreamError)
}

// TestQuotedCredential: an upstream that quotes our key back gets it neither
// to the client nor into what operators see.
func TestQuotedCredential(t *testing.T) {
	r := newRig(t, setup{})
	r.engine.Script(fakeengine.Fault{Kind: fakeengine.Status, Status: 401, Body: `{"error":{"message":"Incorrect API key provided: ` + upstreamKey + `"}}`})
	a := r.post("/v1/chat/completions", chatBody("Hello"))
	rec := r.record()
	equal(t, "status", a.StatusCode, 502)
	seen := string(a.body) + rec.Error.Message
	for _, m := range r.gateway.Table().State() {
		seen += m.Deployments[0].LastFaults[0].Message
	}
	if strings.Contains(seen, upstreamKey) {
		t.Errorf("the credential is shown: %s", seen)
	}
	contains(t, "timeline", rec.Error.Message, "Incorrect API key provided: [credential]")
}

func TestBodyThatNeverFits(t *testing.T) {
	r := newRig(t, setup{config: "limits: {max_body: 1MiB, body_budget: 100KiB}"})
	c := r.dial()
	if _, err := c.Write([]byte("POST /v1/messages HTTP/1.1\r\nHost: g\r\nX-Api-Key: " + testKey + "\r\nContent-Length: 200000\r\n\r\n{")); err != nil {
		t.Fatal(err)
	}
	a := readFrom(t, bufio.NewReader(c))
	equal(t, "status", a.StatusCode, 413)
	contains(t, "body", string(a.body), "limits.body_budget=102400")
	r.record()
}
