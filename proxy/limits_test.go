package proxy

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// Every limit fires at its exact instant, names itself and its value, and the
// engine is free again. The tests run in virtual time.

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
