package fallback

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnOpenGateLetsOneTrialPassWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		start := time.Now()
		opened(t, g)
		s := g.Standing()
		equal(t, "since", s.Since.Sub(start), 0)
		equal(t, "until", s.Until.Sub(start), 5*time.Second)
		equal(t, "reason", s.Reason, `3 faults of 3 outcomes within 1m0s, the last: status_5xx 500 "boom"`)
		time.Sleep(5*time.Second - 1)
		refuses(t, g)
		blocked(t, g, Open, true)
		equal(t, "blocked until", g.BlockedUntil().Sub(start), 5*time.Second)

		time.Sleep(time.Nanosecond)
		blocked(t, g, HalfOpen, false)
		equal(t, "blocked until", g.BlockedUntil(), time.Time{})
		s = g.Standing()
		equal(t, "state", s.State, HalfOpen)
		equal(t, "since", s.Since.Sub(start), 5*time.Second)
		equal(t, "until", s.Until, time.Time{})
		equal(t, "reason", s.Reason, `3 faults of 3 outcomes within 1m0s, the last: status_5xx 500 "boom"; its time is over, the next request is the trial`)

		trial := pass(t, g)
		refuses(t, g)
		blocked(t, g, HalfOpen, true)
		equal(t, "blocked until", g.BlockedUntil(), time.Time{})
		s = g.Standing()
		equal(t, "since", s.Since.Sub(start), 5*time.Second)
		if want := "; a trial is under way since " + time.Now().UTC().Format(time.RFC3339); !strings.HasSuffix(s.Reason, want) {
			t.Errorf("reason: got %q, want it to end in %q", s.Reason, want)
		}
		trial.Content()
		state(t, g, Ready)
		equal(t, "reason", g.Standing().Reason, "")
		trial.End(answered)
		for range 50 {
			one(t, g, answered)
		}
	})
}

func TestAStreamOfAMinuteBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		opened(t, g)
		time.Sleep(5 * time.Second)
		stream := pass(t, g)
		time.Sleep(time.Second) // to its first token
		stream.Content()
		for range 60 {
			one(t, g, answered)
			time.Sleep(time.Second)
		}
		stream.End(severed) // one outcome of the gate as it is now
		state(t, g, Ready)
	})
}

func TestAFaultAfterATrialsContentCountsAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		opened(t, g)
		time.Sleep(5 * time.Second)
		trial := pass(t, g)
		trial.Content()
		trial.End(severed)
		one(t, g, broken)
		state(t, g, Ready)
		one(t, g, broken)
		equal(t, "reason", g.Standing().Reason, `3 faults of 4 outcomes within 1m0s, the last: status_5xx 500 "boom"`)
	})
}

func TestHowATrialEndsDecides(t *testing.T) {
	for _, c := range []struct {
		name  string
		end   Outcome
		want  State
		wait  time.Duration // until it may be tried again
		opens int64
	}{
		{"answered", answered, Ready, 0, 1},
		{"a fault opens it again, for longer", refused, Open, 10 * time.Second, 2},
		{"a bad request is an answer", badInput, Ready, 0, 1},
		{"a prompt that is too long is an answer", tooLong, Ready, 0, 1},
		{"backpressure is a sign of life", asks(3 * time.Second), Cooling, 3 * time.Second, 1},
		{"backpressure without a time", full, Cooling, time.Second, 1},
		{"draining", leaving, DrainingState, 10 * time.Second, 1},
		{"the client left", gone, HalfOpen, 0, 1},
		{"an operator ended it", Outcome{Kind: OperatorAbort, Verdict: NotTheirs}, HalfOpen, 0, 1},
		{"the gateway stops", Outcome{Kind: GatewayDrained, Verdict: NotTheirs}, HalfOpen, 0, 1},
		{"the client takes nothing", Outcome{Kind: WriteStall, Verdict: NotTheirs}, HalfOpen, 0, 1},
		{"the whole request took too long", Outcome{Kind: TimeoutTotal, Verdict: NotTheirs}, HalfOpen, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewGate(usual)
				opened(t, g)
				time.Sleep(5 * time.Second)
				trial := pass(t, g)
				time.Sleep(100 * time.Millisecond)
				trial.End(c.end)
				s := g.Standing()
				equal(t, "state", s.State, c.want)
				if c.wait > 0 {
					equal(t, "wait", time.Until(s.Until), c.wait)
					refuses(t, g)
					time.Sleep(c.wait)
				}
				equal(t, "openings by faults", g.Cooldowns().Breaker, c.opens)
				one(t, g, answered)
				state(t, g, Ready)
			})
		})
	}
}

func TestCooldownsGrowUntilTheGateStaysClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		opened(t, g)
		for _, want := range []time.Duration{5, 10, 20, 40, 60, 60} {
			equal(t, "wait", time.Until(g.Standing().Until), want*time.Second)
			time.Sleep(want * time.Second)
			one(t, g, refused)
		}
		time.Sleep(time.Minute)
		one(t, g, answered)
		time.Sleep(time.Minute - 1) // not yet a whole window
		opened(t, g)
		equal(t, "wait", time.Until(g.Standing().Until), time.Minute)
		time.Sleep(time.Minute)
		one(t, g, answered)
		time.Sleep(time.Minute)
		opened(t, g)
		equal(t, "wait", time.Until(g.Standing().Until), 5*time.Second)
	})
}

func TestWhatBeganBeforeTheGateOpenedReportsToNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		var old []*Pass
		for range 20 {
			old = append(old, pass(t, g))
		}
		opened(t, g)
		s := g.Standing()
		for _, p := range old[:5] {
			p.End(severed)
		}
		for _, p := range old[5:10] { // nor do they close it
			p.Content()
			p.End(answered)
		}
		equal(t, "standing", g.Standing(), s)
		time.Sleep(5 * time.Second)
		trial := pass(t, g)
		for _, p := range old[10:15] {
			p.End(severed)
		}
		state(t, g, HalfOpen)
		trial.Content()
		for _, p := range old[15:] {
			p.End(severed)
		}
		state(t, g, Ready)
		trial.End(answered)
	})
}

func TestAnOpenGateHearsForHowLongItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		asking, silent := pass(t, g), pass(t, g)
		opened(t, g)
		asking.End(asks(30 * time.Second))
		silent.End(full)
		s := g.Standing()
		equal(t, "state", s.State, Open)
		equal(t, "wait", time.Until(s.Until), 30*time.Second)
	})
}

func TestAnOperatorsResetLetsRequestsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		opened(t, g)
		time.Sleep(5 * time.Second)
		one(t, g, refused)
		time.Sleep(10 * time.Second)
		trial := pass(t, g)
		g.Reset()
		state(t, g, Ready)
		trial.End(refused) // reports to nobody
		one(t, g, refused)
		one(t, g, refused)
		state(t, g, Ready)
		one(t, g, refused)
		equal(t, "wait", time.Until(g.Standing().Until), 5*time.Second)

		g.Reset()
		one(t, g, asks(time.Hour))
		g.Reset()
		one(t, g, answered)
		one(t, g, leaving)
		g.Reset()
		one(t, g, answered)
	})
}

func TestAPassIsEndedOnce(t *testing.T) {
	g := NewGate(usual)
	p := pass(t, g)
	p.End(answered)
	p.Content() // is too late to mean anything
	defer func() { equal(t, "panic", fmt.Sprint(recover()), "BUG: a pass was ended twice") }()
	p.End(broken)
}

func TestTheZeroPassIsHarmless(t *testing.T) {
	var p Pass
	p.Content()
	p.End(broken)
	p.End(answered)
}
