package proxy

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// x-gateway-timeout-ms: a client may shorten the limits of its request, and
// only that.

func TestClientLowersTheLimits(t *testing.T) {
	for _, c := range []struct {
		name    string
		ms      string
		stream  bool
		after   int // content before the engine hangs
		fires   time.Duration
		outcome trace.Outcome
		says    string
	}{
		{"total of a whole answer", "5000", false, 0, 5 * time.Second, trace.TimeoutTotal, "x-gateway-timeout-ms=5s"},
		{"both of a stream, at one instant", "5000", true, 0, 5 * time.Second, trace.TimeoutTotal, "x-gateway-timeout-ms=5s"},
		{"total of a stream", "5000", true, 2, 5 * time.Second, trace.TimeoutTotal, "x-gateway-timeout-ms=5s"},
		{"longer than first_token", "30000", true, 0, 20 * time.Second, trace.TimeoutFirstToken, "timeouts.first_token=20s"},
		{"longer than total", "900000", true, 2, time.Minute, trace.TimeoutTotal, "timeouts.total=1m0s"},
		{"longer than all, no content", "2147483647", true, 0, 20 * time.Second, trace.TimeoutFirstToken, "timeouts.first_token=20s"},
		{"one millisecond", "1", false, 0, time.Millisecond, trace.TimeoutTotal, "x-gateway-timeout-ms=1ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, d dialectCase) {
				r := newRig(t, setup{memory: true, config: "keepalive: 0",
					deployment: "timeouts: {first_token: 20s, total: 1m, idle: 10m}"})
				r.engine.Script(fakeengine.Fault{Kind: fakeengine.Hang, After: c.after, Before: c.after == 0})
				a := r.post(d.path, d.body(c.stream, "hello"), "x-gateway-timeout-ms: "+c.ms)
				rec := r.record()
				equal(t, "fired after", rec.At(trace.Finish).Sub(rec.Opened), c.fires)
				equal(t, "outcome", rec.Outcome, c.outcome)
				contains(t, "message", rec.Error.Message, c.says)
				status := 504
				if c.after > 0 {
					status = 200
				}
				equal(t, "status", a.StatusCode, status)
				synctest.Wait()
				equal(t, "running at the engine", r.engine.Running(), 0)
			})
		})
	}
}

func TestClientTimeoutThatIsNone(t *testing.T) {
	r := newRig(t, quickly(setup{}))
	for _, v := range []string{"0", "-1", "soon", "1.5", "1s", "+5x", "99999999999999999999", "5 000", "0x10", "NaN", "１"} {
		for _, d := range dialects {
			a := r.post(d.path, d.body(true, "hello"), "x-gateway-timeout-ms: "+v)
			equal(t, fmt.Sprintf("status of %q", v), a.StatusCode, 400)
			contains(t, "body", string(a.body), "x-gateway-timeout-ms")
			isErrorBody(t, d, a)
			equal(t, "outcome", r.record().Outcome, trace.Refused)
		}
	}
	equal(t, "requests at the engine", len(r.engine.Requests()), 0)
}
