package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// TestWholeAnswerThatIsNotWhole: where the end of the connection is the end of
// the body, a cut one is told by its JSON.
func TestWholeAnswerThatIsNotWhole(t *testing.T) {
	up := newScripted(t, func(c net.Conn, _ *http.Request, _ []byte) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"+`{"id":"a","choices":[{"message":{"content":"hal`)
		_ = c.Close()
	})
	r := newRig(t, setup{upstream: up.url})
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			a := r.post(d.path, d.body(false, "Hello"))
			rec := r.record()
			equal(t, "status", a.StatusCode, 502)
			equal(t, "kind", rec.Error.Kind, "cut")
			equal(t, "outcome", rec.Outcome, trace.UpstreamError)
		})
	}
}

// TestSilenceInAnAnswerThatIsNoStream: a stream was asked for, so its limits
// hold for whatever comes instead.
func TestSilenceInAnAnswerThatIsNoStream(t *testing.T) {
	const limits = "timeouts: {first_token: 3s, idle: 2s}"
	for _, c := range []struct {
		name, sent string
		outcome    trace.Outcome
		after      time.Duration
	}{
		{"a status without its body", "HTTP/1.1 500 E\r\nContent-Length: 10\r\n\r\n", trace.TimeoutFirstToken, 3 * time.Second},
		{"the beginning of a JSON body", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{", trace.TimeoutFirstToken, 3 * time.Second},
		{"a compressed stream", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\n\x1f\x8b", trace.TimeoutIdle, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, setup{memory: true, deployment: limits, dial: func(context.Context, string) (net.Conn, error) {
					ours, theirs := net.Pipe()
					go func() { // ends with the connection
						if _, err := http.ReadRequest(bufio.NewReader(theirs)); err == nil {
							go io.Copy(io.Discard, theirs)
							_, _ = io.WriteString(theirs, c.sent)
						}
					}()
					return ours, nil
				}})
				began := time.Now()
				r.post("/v1/chat/completions", chatBody("Hello"))
				equal(t, "fired after", time.Since(began), c.after)
				equal(t, "outcome", r.record().Outcome, c.outcome)
			})
		})
	}
}

func TestAnswerWithoutABody(t *testing.T) {
	up := newScripted(t, func(c net.Conn, _ *http.Request, _ []byte) {
		_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
	})
	r := newRig(t, setup{upstream: up.url})
	a := r.post("/v1/rerank", `{"model":"public"}`)
	rec := r.record()
	equal(t, "status", a.StatusCode, 204)
	equal(t, "recorded status", rec.Status, 204)
	equal(t, "outcome", rec.Outcome, trace.OK)
	equal(t, "result", rec.Attempts[0].Result, trace.ResultOK)
}

// TestAddressesStayInside: the client hears which deployment failed and how,
// the timeline has the rest.
func TestAddressesStayInside(t *testing.T) {
	r := newRig(t, setup{upstream: "http://127.0.0.1:1"})
	a := r.post("/v1/chat/completions", chatBody("Hello"))
	rec := r.record()
	equal(t, "status", a.StatusCode, 502)
	if strings.Contains(string(a.body), "127.0.0.1") {
		t.Errorf("the client is told an address: %s", a.body)
	}
	contains(t, "body", string(a.body), "deployment d1: it cannot be reached")
	contains(t, "timeline", rec.Error.Message, "addr=127.0.0.1:1")
}

func TestPromptOverTheCap(t *testing.T) {
	r := newRig(t, setup{tenant: "    max_prompt_tokens: 1000"})
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			a := r.post(d.path, d.body(true, strings.Repeat("word ", 2000)))
			rec := r.record()
			equal(t, "status", a.StatusCode, 400)
			contains(t, "body", string(a.body), "prompt is too long: ")
			if d.name != "messages" {
				contains(t, "code", string(a.body), `"code":"context_length_exceeded"`)
			}
			equal(t, "outcome", rec.Outcome, trace.Refused)
			equal(t, "limit", rec.Limit, "tenants.team.max_prompt_tokens=1000")
			equal(t, "attempts", len(rec.Attempts), 0)
			equal(t, "a short one", r.post(d.path, d.body(true, "Hello")).StatusCode, 200)
			r.record()
		})
	}
}

func TestLimitOfADeploymentIsNamedAsSuch(t *testing.T) {
	for _, c := range []struct{ deployment, config, want string }{
		{"timeouts: {total: 2s}", "", "deployments.d1.timeouts.total=2s"},
		{"", "timeouts: {total: 2s}", "timeouts.total=2s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, setup{memory: true, deployment: c.deployment, config: c.config + "\nkeepalive: 0"})
			r.engine.Script(fakeengine.Fault{Kind: fakeengine.Hang})
			r.post("/v1/chat/completions", chatBody("Hello"))
			equal(t, "limit", r.record().Limit, c.want)
		})
	}
}

// TestNoDeploymentTakesIt: a full one passes with time, unlike a dialect that nobody speaks.
func TestNoDeploymentTakesIt(t *testing.T) {
	for _, c := range []struct {
		deployment string
		status     int
	}{{"max_inflight: 1", 503}, {"dialects: [messages]", 400}} {
		t.Run(fmt.Sprint(c.status), func(t *testing.T) {
			r := newRig(t, setup{deployment: c.deployment, model: "    queue: {max_waiting: 0}"})
			r.engine.Script(fakeengine.Fault{Kind: fakeengine.Hang})
			first := r.send("/v1/messages", dialects[0].body(true, "Hello"))
			r.await("the place is taken", func() bool { return r.engine.Running() == 1 })
			equal(t, "status", r.post("/v1/chat/completions", chatBody("Hello")).StatusCode, c.status)
			_ = first.Close()
			r.record()
			r.record()
		})
	}
}
