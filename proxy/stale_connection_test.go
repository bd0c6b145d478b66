package proxy

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/routing"
	"tracegate/trace"
)

const staleRequests = 50

// TestReusedConnectionThatIsGone: the upstream closes a connection when the
// next request on it has come, without a byte. The request is sent again on a
// fresh one, and that is neither a fault nor an attempt.
func TestReusedConnectionThatIsGone(t *testing.T) {
	r := newRig(t, setup{engine: fakeengine.Options{DefaultTokens: 3, StepBase: time.Millisecond}})
	r.engine.Script(fakeengine.Fault{Kind: fakeengine.ReuseGone})
	answersInARow(t, r, returned)
	answered, refused := map[string]int{}, 0
	for _, l := range r.engine.Requests() {
		switch l.Outcome {
		case fakeengine.OutcomeFinished:
			answered[l.Marker]++
		case fakeengine.OutcomeFault:
			refused++
			equal(t, "request that was closed on", l.ConnRequest > 1, true)
		default:
			t.Errorf("%s at the engine: %s", l.RequestID, l.Outcome)
		}
	}
	equal(t, "bodies answered", len(answered), staleRequests)
	for mark, n := range answered {
		equal(t, mark+" answered", n, 1)
	}
	equal(t, "connections that were gone", refused, staleRequests-1)
}

// TestIdleConnectionThatWasClosed: the close is known before the next request,
// which is sent once.
func TestIdleConnectionThatWasClosed(t *testing.T) {
	r := newRig(t, setup{engine: fakeengine.Options{DefaultTokens: 3, StepBase: time.Millisecond, KeepAlive: time.Millisecond}})
	answersInARow(t, r, closed)
	equal(t, "requests at the engine", len(r.engine.Requests()), staleRequests)
	seen := map[string]int{}
	for _, l := range r.engine.Requests() {
		seen[l.Marker]++
		equal(t, "request on its connection", l.ConnRequest, 1)
	}
	equal(t, "bodies seen", len(seen), staleRequests)
}

// answersInARow posts one request after the other; each has its answer.
func answersInARow(t *testing.T, r *rig, settle func(*rig)) {
	t.Helper()
	for i := range staleRequests {
		d, stream := dialects[i%len(dialects)], i%3 > 0
		mark := fmt.Sprintf("MARK-%04x", i)
		a := r.post(d.path, d.body(stream, "Say "+mark))
		equal(t, "status", a.StatusCode, 200)
		equal(t, "end of the body", a.err, nil)
		contains(t, "answer", string(a.body), mark)
		rec := r.record()
		equal(t, "outcome", rec.Outcome, trace.OK)
		equal(t, "attempts", len(rec.Attempts), 1)
		settle(r)
	}
	state := r.gateway.Table().State()[0].Deployments[0]
	equal(t, "counts", state.Counts, routing.Counts{OK: staleRequests})
	equal(t, "faults remembered", len(state.LastFaults), 0)
}

// returned waits until the answer's connection is back in the pool.
func returned(r *rig) {
	for _, up := range r.gateway.state.Load().upstreams {
		r.await("the connection is idle", func() bool { return up.pool.Idle() > 0 })
	}
}

// closed waits until the engine has closed it there.
func closed(r *rig) {
	returned(r)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := r.engine.WaitStats(ctx, func(s fakeengine.Stats) bool { return s.Connections == 0 }); err != nil {
		r.t.Fatal(err)
	}
}
