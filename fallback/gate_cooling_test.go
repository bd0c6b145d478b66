package fallback

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRetryAfterIsObeyedToTheSecond(t *testing.T) {
	for _, c := range []struct{ asked, want time.Duration }{
		{time.Second, time.Second},
		{30 * time.Second, 30 * time.Second},
		{10 * time.Minute, 10 * time.Minute}, // longer than max_time
		{1<<63 - 1, 24 * time.Hour},          // absurd
		{-time.Second, time.Second},          // as if it had asked for nothing
	} {
		t.Run(c.asked.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewGate(usual)
				start := time.Now()
				one(t, g, asks(c.asked))
				s := g.Standing()
				equal(t, "state", s.State, Cooling)
				equal(t, "until", s.Until.Sub(start), c.want)
				time.Sleep(c.want - 1)
				refuses(t, g)
				blocked(t, g, Cooling, true)
				time.Sleep(time.Nanosecond)
				blocked(t, g, Ready, false)
				one(t, g, answered)
				blocked(t, g, Ready, false)
				equal(t, "since", g.Standing().Since.Sub(start), c.want)
				equal(t, "cooldowns", g.Cooldowns(), Cooldowns{Backpressure: 1})
			})
		})
	}
}

func blocked(t testing.TB, g *Gate, want State, refused bool) {
	t.Helper()
	got, no := g.Blocked()
	equal(t, "blocked: state", got, want)
	equal(t, "blocked", no, refused)
	at, no := g.BlockedAt(time.Now())
	equal(t, "blocked at: state", at, want)
	equal(t, "blocked at", no, refused)
	if !refused {
		equal(t, "blocked until", g.BlockedUntil(), time.Time{})
	}
}

func TestACooldownsReasonSaysWhoAsked(t *testing.T) {
	for _, c := range []struct {
		outcome Outcome
		want    string
	}{
		{asks(30 * time.Second), "asked for 30s by status 429"},
		{asks(1000 * time.Hour), "asked for 1000h0m0s by status 429, of which 24h0m0s are granted"},
		{full, "left alone for 1s by status 429 without a Retry-After"},
		{Outcome{Kind: Pressure, Verdict: Backpressure}, "left alone for 1s by an error event without a Retry-After"},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := NewGate(usual)
			one(t, g, c.outcome)
			equal(t, "reason", g.Standing().Reason, c.want)
		})
	}
}

// A request already in flight may ask for longer, or for less.
func TestTheLaterEndOfACooldownHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		first, second, third := pass(t, g), pass(t, g), pass(t, g)
		start := time.Now()
		first.End(asks(time.Second))
		time.Sleep(500 * time.Millisecond)
		second.End(asks(30 * time.Second))
		equal(t, "until", g.Standing().Until.Sub(start), 30500*time.Millisecond)
		third.End(asks(time.Second))
		s := g.Standing()
		equal(t, "until", s.Until.Sub(start), 30500*time.Millisecond)
		equal(t, "since", s.Since.Sub(start), 0)
		equal(t, "reason", s.Reason, "asked for 30s by status 429")
		equal(t, "cooldowns", g.Cooldowns(), Cooldowns{Backpressure: 1})
		equal(t, "events", len(g.Story()), 1)
	})
}

func TestCooldownsWithoutARetryAfterDouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		cools := func(want time.Duration) {
			t.Helper()
			one(t, g, full)
			equal(t, "wait", time.Until(g.Standing().Until), want)
			time.Sleep(want)
		}
		for _, want := range []time.Duration{1, 2, 4, 5, 5} {
			cools(want * time.Second)
		}
		one(t, g, asks(2*time.Second)) // what it asks for goes before what we guess
		equal(t, "wait", time.Until(g.Standing().Until), 2*time.Second)
		time.Sleep(2 * time.Second)
		one(t, g, badInput) // says nothing about room
		cools(5 * time.Second)
		one(t, g, answered)
		cools(time.Second)
	})
}

// Forty requests that are refused together are one refusal.
func TestABurstOfRefusalsDoublesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		for _, want := range []time.Duration{time.Second, 2 * time.Second} {
			burst := make([]*Pass, 40)
			for i := range burst {
				burst[i] = pass(t, g)
			}
			for _, p := range burst {
				p.End(full)
			}
			equal(t, "wait", time.Until(g.Standing().Until), want)
			time.Sleep(want)
		}
		old := pass(t, g)
		one(t, g, full) // 4 s
		old.Content()   // it had its room before
		old.End(answered)
		time.Sleep(4 * time.Second)
		one(t, g, full)
		equal(t, "wait", time.Until(g.Standing().Until), 5*time.Second)
	})
}

func TestFaultsWhileCoolingOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		passes := []*Pass{pass(t, g), pass(t, g), pass(t, g)}
		one(t, g, asks(30*time.Second))
		for _, p := range passes {
			p.End(broken)
		}
		s := g.Standing()
		equal(t, "state", s.State, Open)
		equal(t, "until is the later one", time.Until(s.Until), 30*time.Second)
		equal(t, "cooldowns", g.Cooldowns(), Cooldowns{Breaker: 1, Backpressure: 1})
	})
}

func TestAnErrorEventMayAskForPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		p := pass(t, g)
		p.Content()
		p.End(full)
		state(t, g, Cooling)
	})
}
