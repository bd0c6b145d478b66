package proxy

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// limitValue is what every limit below is set to.
const limitValue = 100 * time.Millisecond

// firings are the limits, what makes each fire, and the instant from which it counts.
var firings = []struct {
	name    string
	faults  []fakeengine.Fault
	outcome trace.Outcome
	counted func(rec *trace.Record) time.Duration // how long it had been waited for at the end
}{
	{"connect", nil, trace.TimeoutConnect, sinceStart},
	{"first_token", []fakeengine.Fault{{Kind: fakeengine.Hang}}, trace.TimeoutFirstToken, sinceStart},
	{"idle", []fakeengine.Fault{{Kind: fakeengine.Hang, After: 3}}, trace.TimeoutIdle, func(rec *trace.Record) time.Duration {
		return rec.At(trace.Finish).Sub(rec.At(trace.LastToken))
	}},
	{"total", []fakeengine.Fault{{Kind: fakeengine.Hang, After: 3}}, trace.TimeoutTotal, func(rec *trace.Record) time.Duration {
		return rec.At(trace.Finish).Sub(rec.At(trace.Enqueue))
	}},
	{"write_stall", []fakeengine.Fault{{Kind: fakeengine.BigEvent, N: 12 << 20, After: 1}}, trace.WriteStall,
		// All waiting: a socket that takes a little after all begins the limit anew, and the first wait counts as lateness.
		func(rec *trace.Record) time.Duration { return rec.WriteStall }},
}

// sinceStart is how long the only attempt took.
func sinceStart(rec *trace.Record) time.Duration {
	return rec.At(trace.Finish).Sub(rec.Opened) - rec.Attempts[0].Start
}

// TestLimitsFireOnSockets: each with its outcome and never before its value. How
// late they fire is printed: TRACEGATE_LIMITS sets how often each is measured
// (make limits).
func TestLimitsFireOnSockets(t *testing.T) {
	times := measurements("TRACEGATE_LIMITS", 2)
	for _, f := range firings {
		s := setup{config: "keepalive: 0\ntimeouts: {" + f.name + ": " + limitValue.String() + "}"}
		if f.name == "connect" {
			s.upstream, s.deployment = silentTLS(t), "tls: {insecure: true}"
		}
		r := newRig(t, s)
		r.engine.Script(f.faults...)
		var late []time.Duration
		for i := range times {
			d := dialects[i%len(dialects)]
			c := r.dial().(*net.TCPConn)
			_ = c.SetReadBuffer(4 << 10)                                        // which else grows while it is full, and that counts as taking bytes
			_ = must(io.WriteString(c, request(d.path, d.body(true, "hello")))) // nothing of the answer is read
			rec := r.record()
			_ = c.Close()
			equal(t, f.name+": outcome", rec.Outcome, f.outcome)
			waited := f.counted(rec)
			if waited < limitValue {
				t.Errorf("%s fired after %s, before its value %s", f.name, waited, limitValue)
			}
			late = append(late, waited-limitValue)
		}
		figures(t, f.name, late)
	}
}

// silentTLS is the base URL of a host that takes connections and says nothing.
func silentTLS(t *testing.T) string {
	t.Helper()
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	var ended sync.WaitGroup
	ended.Go(func() { // until the listener is closed
		for c, err := ln.Accept(); err == nil; c, err = ln.Accept() {
			ended.Go(func() { // until the gateway gives up
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		ended.Wait()
	})
	return "https://" + ln.Addr().String()
}
