package fallback

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func probe(t testing.TB, g *Gate) *Pass {
	t.Helper()
	p, ok := g.Probe()
	if !ok {
		t.Fatalf("no probe: %+v", g.Standing())
	}
	if _, ok := g.Probe(); ok && g.Standing().State != Ready {
		t.Fatal("a second probe beside the first")
	}
	return &p
}

func TestAProbesSuccessClosesWhateverTheReasonWas(t *testing.T) {
	for _, cause := range []Outcome{full, leaving, broken} {
		for _, after := range []time.Duration{0, 1, 2, 900 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				g := NewGate(usual)
				for g.Standing().State == Ready {
					one(t, g, cause)
				}
				time.Sleep(after)
				p := probe(t, g)
				refuses(t, g)
				p.Content()
				state(t, g, Ready)
				one(t, g, answered)
				p.End(answered)
				one(t, g, broken)
				one(t, g, broken)
				state(t, g, Ready)
				one(t, g, broken)
				state(t, g, Open)
			})
		}
	}
}

func TestAProbesFaultOpensForLonger(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			g := NewGate(usual)
			opened(t, g)
			time.Sleep(after)
			p := probe(t, g)
			s := g.Standing()
			equal(t, "state", s.State, HalfOpen)
			equal(t, "since", s.Since.Equal(time.Now()), true)
			p.End(refused)
			equal(t, "wait", time.Until(g.Standing().Until), 10*time.Second)
			state(t, g, Open)
			time.Sleep(10 * time.Second)
			one(t, g, answered)
			state(t, g, Ready)
		})
	}
}

// TestNoProbeBeforeTheTimeThatTheUpstreamNamed: that is no guess of ours.
func TestNoProbeBeforeTheTimeThatTheUpstreamNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		p := pass(t, g)
		opened(t, g)
		p.End(asks(time.Hour))
		for _, wait := range []time.Duration{0, time.Second, time.Hour - time.Second - 1} {
			time.Sleep(wait)
			if _, ok := g.Probe(); ok {
				t.Fatalf("a probe: %+v", g.Standing())
			}
		}
		time.Sleep(time.Nanosecond)
		one(t, g, answered)
		state(t, g, Ready)
		one(t, g, full)
		probe(t, g).End(answered)
		state(t, g, Ready)
	})
}

func TestAProbeThatSaysNothingChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		opened(t, g)
		s := g.Standing()
		for range 3 {
			probe(t, g).End(gone)
			equal(t, "standing", g.Standing(), s)
			time.Sleep(time.Millisecond)
		}
	})
}

func TestAProbeOfACoolingGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		one(t, g, full)
		p := probe(t, g)
		s := g.Standing()
		equal(t, "state", s.State, Cooling)
		if !strings.Contains(s.Reason, "; a trial is under way since ") {
			t.Errorf("reason: %q", s.Reason)
		}
		p.End(full)
		equal(t, "wait", time.Until(g.Standing().Until), 2*time.Second)

		probe(t, g).End(badInput) // no sign of room
		state(t, g, Cooling)
		probe(t, g).End(broken)
		probe(t, g).End(broken)
		state(t, g, Cooling)
		probe(t, g).End(broken)
		state(t, g, Open)
		equal(t, "cooldowns", g.Cooldowns(), Cooldowns{Breaker: 1, Backpressure: 1})
	})
}

func TestAProbeThatOutlastsItsCooldownIsARequestLikeAnyOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		one(t, g, full)
		p := probe(t, g)
		time.Sleep(time.Second)
		one(t, g, answered)
		one(t, g, full)
		again := probe(t, g)
		p.End(broken) // ends nobody's trial
		if _, ok := g.Probe(); ok {
			t.Error("a second probe beside the first")
		}
		again.End(answered)
		state(t, g, Ready)
	})
}

func TestAReadyGateNeedsNoProbe(t *testing.T) {
	g := NewGate(usual)
	first, ok := g.Probe()
	equal(t, "first", ok, true)
	second, ok := g.Probe()
	equal(t, "second", ok, true)
	first.End(answered)
	second.End(answered)
}
