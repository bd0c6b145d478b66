package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// Every limit fires at its exact instant, names itself and its value, and the
// engine is free again. The tests run in virtual time.

func TestConnectLimit(t *testing.T) {
	for _, c := range []struct{ name, config, deployment, setting string }{
		{"global", "timeouts: {connect: 3s}", "", "timeouts.connect=3s"},
		{"of the deployment", "timeouts: {connect: 30s}", "timeouts: {connect: 3s}", "deployments.d1.timeouts.connect=3s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubbles(t, func(t *testing.T, d dialectCase, stream bool) {
				r := newRig(t, setup{memory: true, dial: neverAnswers, deployment: c.deployment, config: "keepalive: 0\n" + c.config})
				began := time.Now()
				a := r.post(d.path, d.body(stream, "hello"))
				equal(t, "fired after", time.Since(began), 3*time.Second)
				equal(t, "status", a.StatusCode, 504)
				equal(t, "in its dialect", strings.HasPrefix(string(a.body), errorBodies[d.name]), true)
				contains(t, "body", string(a.body), "within "+c.setting)
				rec := r.record()
				equal(t, "outcome", rec.Outcome, trace.TimeoutConnect)
				equal(t, "phase", rec.Phase, trace.PhaseConnect)
				equal(t, "limit", rec.Limit, c.setting)
				equal(t, "error", rec.Error.Kind, "timeout_connect")
				equal(t, "attempts", len(rec.Attempts), 1)
				equal(t, "attempt's result", rec.Attempts[0].Result, trace.ResultFault)
				equal(t, "connected after", rec.Attempts[0].Connect, trace.Unknown)
			})
		})
	}
}

// TestConnectLimitAfterAKeepalive: the answer has begun, so its status cannot tell any more.
func TestConnectLimitAfterAKeepalive(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		r := newRig(t, setup{memory: true, dial: neverAnswers, config: "keepalive: 2s\ntimeouts: {connect: 5s}"})
		began := time.Now()
		a := r.post(d.path, d.body(true, "hello"))
		equal(t, "fired after", time.Since(began), 5*time.Second)
		equal(t, "status", a.StatusCode, 200)
		contains(t, "error event", string(a.body), errorEvents[d.name])
		contains(t, "error event", string(a.body), "timeouts.connect=5s")
		equal(t, "outcome", r.record().Outcome, trace.TimeoutConnect)
	})
}

// TestFirstTokenLimitIsForStreams: a whole answer has no first token, and may be slower.
func TestFirstTokenLimitIsForStreams(t *testing.T) {
	inBubbles(t, func(t *testing.T, d dialectCase, stream bool) {
		r := newRig(t, setup{memory: true, deployment: "timeouts: {first_token: 3s}", config: "keepalive: 0"})
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.HeaderDelay, Delay: time.Minute})
		status, outcome := 200, trace.OK
		if stream {
			status, outcome = 504, trace.TimeoutFirstToken
		}
		equal(t, "status", r.post(d.path, d.body(stream, "hello")).StatusCode, status)
		equal(t, "outcome", r.record().Outcome, outcome)
	})
}

// TestFirstTokenLimitWhileSending: the upstream takes the connection and never reads.
func TestFirstTokenLimitWhileSending(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		var theirs net.Conn
		r := newRig(t, setup{memory: true, deployment: "timeouts: {first_token: 3s}", config: "keepalive: 0",
			dial: func(context.Context, string) (ours net.Conn, err error) {
				ours, theirs = net.Pipe()
				return ours, nil
			}})
		began := time.Now()
		a := r.post(d.path, d.body(true, "hello"))
		equal(t, "fired after", time.Since(began), 3*time.Second)
		equal(t, "status", a.StatusCode, 504)
		rec := r.record()
		equal(t, "outcome", rec.Outcome, trace.TimeoutFirstToken)
		equal(t, "abort reason", rec.Attempts[0].AbortReason, trace.AbortTimeoutFirstToken)
		_, err := theirs.Read(make([]byte, 1))
		equal(t, "the connection's end", err, io.EOF)
	})
}

func TestFirstTokenLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{memory: true, deployment: "timeouts: {first_token: 3s}", config: "keepalive: 0"})
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.Hang})
		began := time.Now()
		a := r.post("/v1/chat/completions", chatBody("Hello"))
		equal(t, "fired after", time.Since(began), 3*time.Second)
		equal(t, "status", a.StatusCode, 504)
		contains(t, "body", string(a.body), "timeouts.first_token=3s")
		rec := r.record()
		equal(t, "outcome", rec.Outcome, trace.TimeoutFirstToken)
		equal(t, "phase", rec.Phase, trace.PhaseWaitingFirstToken)
		contains(t, "timeline", rec.Error.Message, "timeouts.first_token=3s")
		equal(t, "abort reason", rec.Attempts[0].AbortReason, trace.AbortTimeoutFirstToken)
		synctest.Wait()
		equal(t, "running at the engine", r.engine.Running(), 0)
	})
}

func TestFirstTokenLimitGrowsWithThePrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{memory: true, deployment: "timeouts: {first_token: 1s, first_token_per_1k_tokens: 2s}", config: "keepalive: 0"})
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.Hang})
		began := time.Now()
		body := chatBody(fmt.Sprintf("%08000d", 0)) // about 2,000 tokens
		a := r.post("/v1/chat/completions", body)
		equal(t, "status", a.StatusCode, 504)
		if d := time.Since(began); d < 4*time.Second || d > 6*time.Second {
			t.Errorf("fired after %s, want 1 s + 2 s for each of about 2,000 tokens", d)
		}
		r.record()
	})
}

func TestIdleLimitCountsContentOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{memory: true, deployment: "timeouts: {idle: 5s}", config: "keepalive: 0"})
		r.engine.Script(
			fakeengine.Fault{Kind: fakeengine.Hang, After: 3},
			fakeengine.Fault{Kind: fakeengine.Ping, Delay: time.Second}, // pings and comments do not reset it
		)
		a := r.post("/v1/chat/completions", chatBody("Hello"))
		rec := r.record()
		equal(t, "outcome", rec.Outcome, trace.TimeoutIdle)
		last := rec.At(trace.LastToken)
		equal(t, "fired after the last token", rec.At(trace.Finish).Sub(last), 5*time.Second)
		contains(t, "timeline", rec.Error.Message, "timeouts.idle=5s")
		contains(t, "error event", string(a.body), `"error"`)
		if a.err == nil {
			t.Error("the body ended as if it were complete")
		}
		synctest.Wait()
		equal(t, "running at the engine", r.engine.Running(), 0)
	})
}

func TestTotalLimit(t *testing.T) {
	for _, stream := range []bool{true, false} {
		t.Run(fmt.Sprintf("stream=%t", stream), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, setup{memory: true, config: "timeouts: {total: 4s}\nkeepalive: 0"})
				slow := fakeengine.Fault{Kind: fakeengine.Slow, Delay: 500 * time.Millisecond}
				if !stream {
					slow = fakeengine.Fault{Kind: fakeengine.HeaderDelay, Delay: time.Minute}
				}
				r.engine.Script(slow)
				began := time.Now()
				a := r.post("/v1/chat/completions", dialects[1].body(stream, "Hello"))
				equal(t, "fired after", time.Since(began), 4*time.Second)
				rec := r.record()
				equal(t, "outcome", rec.Outcome, trace.TimeoutTotal)
				contains(t, "timeline", rec.Error.Message, "timeouts.total=4s")
				if stream {
					equal(t, "status", a.StatusCode, 200)
				} else {
					equal(t, "status", a.StatusCode, 504)
				}
				synctest.Wait()
				equal(t, "running at the engine", r.engine.Running(), 0)
			})
		})
	}
}
