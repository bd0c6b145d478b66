package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// places are where an engine is with a request when its client leaves.
var places = []struct {
	gone   string
	engine fakeengine.Options
	reach  func(r *rig, generated int64)
}{
	{"prefill", fakeengine.Options{PrefillRate: 3200, ChunkTokens: 16}, func(r *rig, _ int64) {
		if _, err := r.logged(func(l fakeengine.RequestLog) bool {
			return l.Outcome == fakeengine.OutcomeRunning && !l.Scheduled.IsZero()
		}); err != nil {
			r.t.Fatal(err)
		}
	}},
	{"decode", fakeengine.Options{PrefillRate: 1e7, ChunkTokens: 1 << 14, StepBase: 5 * time.Millisecond}, func(r *rig, generated int64) {
		r.await("a token", func() bool { return r.engine.Stats().Generated > generated })
	}},
}

// TestAbortsReachTheEngine: not one close of a client gets lost on its way. How
// long it takes until the engine has seen it is printed: TRACEGATE_ABORTS sets
// how many are measured (make aborts).
func TestAbortsReachTheEngine(t *testing.T) {
	total := measurements("TRACEGATE_ABORTS", 32)
	took, all := map[string][]time.Duration{}, []time.Duration{}
	var names []string
	for _, p := range places {
		s := setup{engine: p.engine}
		s.engine.NoPrefixCache = true // else the next one of the same prompt is past its prefill at once
		r := newRig(t, s)
		for i := range total / len(places) {
			d, stream := dialects[i%4], i/4%2 == 0
			name := fmt.Sprintf("%s, stream=%t", p.gone, stream)
			if took[name] == nil {
				names = append(names, name)
			}
			lag := r.abortLag(d, stream, p.gone, p.reach)
			took[name], all = append(took[name], lag), append(all, lag)
		}
	}
	equal(t, "aborts seen by the engine", len(all), total/len(places)*len(places))
	for _, name := range names {
		figures(t, name, took[name])
	}
	figures(t, "all", all)
}

// abortLag is the time from a client's close to the engine's seeing it.
func (r *rig) abortLag(d dialectCase, stream bool, gone string, reach func(*rig, int64)) time.Duration {
	r.t.Helper()
	generated := r.engine.Stats().Generated
	body := strings.Replace(d.longAnswer(stream), "please", strings.Repeat("word ", 4000), 1) // 200 steps of prefill
	c := r.send(d.path, body)
	reach(r, generated)
	left := time.Now()
	_ = c.Close()
	rec := r.record()
	equal(r.t, "outcome", rec.Outcome, trace.ClientAbort)
	l, err := r.logged(func(l fakeengine.RequestLog) bool {
		return l.RequestID == rec.ID+"-a1" && l.Outcome != fakeengine.OutcomeRunning
	})
	if err != nil {
		r.t.Fatalf("%s, stream=%t: the engine was not told: %v", d.name, stream, err)
	}
	equal(r.t, "outcome at the engine", l.Outcome, fakeengine.OutcomeClientGone)
	equal(r.t, "where the engine was", l.GonePhase, gone)
	if l.ClientGone.Before(left) {
		r.t.Errorf("%s, stream=%t: the engine saw a close before there was one", d.name, stream)
	}
	isAtRest(r.t.(*testing.T), r)
	return l.ClientGone.Sub(left)
}
