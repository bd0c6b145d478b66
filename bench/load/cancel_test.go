package load

import (
	"context"
	"testing"
	"time"
)

// TestCancelledRequests: the upstream sees every request that the client gives up, in both phases.
func TestCancelledRequests(t *testing.T) {
	for _, p := range []Plan{
		{CancelPhase: "prefill", Prefill: 500 * time.Millisecond, Tokens: 4, Gap: time.Millisecond},
		{CancelPhase: "prefill", Prefill: 500 * time.Millisecond, Whole: true},
		{CancelPhase: "decode", Tokens: 4, Gap: 50 * time.Millisecond},
	} {
		u := listenUpstream(t)
		p.Addr, p.CancelFrac, p.Rate, p.Requests, p.Conns = relay(t, u.Addr()), 1, 400, 40, 100
		p.Window, p.Drain = 3*time.Second, 2*time.Second
		r := mustRun(t, p)
		if r.Cancelled != 40 || len(r.Cancels) != 40 || r.Completed != 0 || r.Wrong() != 0 {
			t.Fatalf("%+v: %+v", p, r)
		}
		var aborts []Abort
		eventually(t, "40 aborts at the upstream", func() bool {
			aborts = append(aborts, u.Stats().Aborts...)
			return len(aborts) == 40
		})
		latency, lost := Lost(r.Cancels, aborts)
		if lost != 0 || latency.N != 40 {
			t.Errorf("%+v: %d lost, %+v", p, lost, latency)
		}
		for _, a := range aborts {
			if (p.CancelPhase == "prefill") != (a.Sent == 0) {
				t.Errorf("%s: aborted after %d tokens", p.CancelPhase, a.Sent)
			}
		}
	}
}

func TestLostCancels(t *testing.T) {
	latency, lost := Lost([]Cancel{{ID: 1, At: 1000}, {ID: 2, At: 2000}, {ID: 3, At: 3000}}, []Abort{{ID: 3, At: 9000}, {ID: 1, At: 3000}})
	if lost != 1 || latency.N != 2 || latency.Max != 6 || latency.P50 != 2 {
		t.Errorf("%d lost, %+v", lost, latency)
	}
}

// TestAbandoned: what is under way when the run ends is neither an answer nor a fault.
func TestAbandoned(t *testing.T) {
	u := listenUpstream(t)
	r := mustRun(t, Plan{Addr: u.Addr(), Conns: 3, Tokens: 1000, Gap: time.Second, Window: 50 * time.Millisecond})
	if r.Abandoned != 3 || r.Requests != 3 || r.Wrong() != 0 || r.WindowTokens != 3 {
		t.Errorf("%+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Run(ctx, Plan{Addr: u.Addr(), Conns: 3, Rate: 10}); err != nil || r.Completed != 0 || r.Wrong() != 0 {
		t.Errorf("cancelled before the start: %+v, %v", r, err)
	}
}
