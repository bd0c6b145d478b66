package fallback

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestADeploymentThatShutsDownIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		running := []*Pass{pass(t, g), pass(t, g), pass(t, g), pass(t, g)}
		one(t, g, leaving)
		s := g.Standing()
		equal(t, "state", s.State, DrainingState)
		equal(t, "reason", s.Reason, `it is shutting down: draining 500 "cannot schedule new futures after shutdown"`)
		equal(t, "wait", time.Until(s.Until), 5*time.Second)
		refuses(t, g)
		blocked(t, g, DrainingState, true)

		time.Sleep(time.Second)
		running[0].End(leaving) // says the same, so it is not worse
		equal(t, "wait", time.Until(g.Standing().Until), 5*time.Second)
		for _, p := range running[1:] {
			p.End(severed) // no fault: it had said so
		}
		state(t, g, DrainingState)
		equal(t, "cooldowns", g.Cooldowns(), Cooldowns{Draining: 1})

		for _, want := range []time.Duration{10, 20, 40, 60, 60} {
			time.Sleep(time.Until(g.Standing().Until))
			blocked(t, g, HalfOpen, false)
			one(t, g, leaving)
			state(t, g, DrainingState)
			equal(t, "wait", time.Until(g.Standing().Until), want*time.Second)
		}
		time.Sleep(time.Minute)
		one(t, g, answered)
		state(t, g, Ready)
		equal(t, "cooldowns", g.Cooldowns(), Cooldowns{Draining: 6})
	})
}

func TestADrainedDeploymentThatIsGoneIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		one(t, g, leaving)
		time.Sleep(5 * time.Second)
		p := pass(t, g)
		time.Sleep(2 * time.Millisecond)
		p.End(refused)
		s := g.Standing()
		equal(t, "state", s.State, Open)
		equal(t, "reason", s.Reason, "the trial failed after 2ms, cooldown 2 in a row: connect")
		equal(t, "wait", time.Until(s.Until), 10*time.Second)
		equal(t, "cooldowns", g.Cooldowns(), Cooldowns{Breaker: 1, Draining: 1})
	})
}

func TestDrainingWhileCoolingKeepsTheLaterEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		p := pass(t, g)
		one(t, g, asks(time.Hour))
		p.End(leaving)
		state(t, g, DrainingState)
		equal(t, "wait", time.Until(g.Standing().Until), time.Hour)
	})
}

// The old process says so of a request that it got before; the new one has answered since.
func TestALateWordOfDrainingIsNoneOfTheNewProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		old := pass(t, g)
		one(t, g, leaving)
		time.Sleep(5 * time.Second)
		one(t, g, answered)
		old.End(leaving)
		state(t, g, Ready)
	})
}
