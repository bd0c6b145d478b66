package fallback

import "time"

// State of a deployment; the words are the public contract's.
type State string

// The states that a gate can be in.
const (
	Ready         State = "ready"
	Cooling       State = "cooling"   // it asked for patience
	Open          State = "open"      // its faults opened the breaker
	HalfOpen      State = "half_open" // its time is over and one request has to try it out, or does
	DrainingState State = "draining"  // it is shutting down in order
)

// Standing is how a gate stands at one moment.
type Standing struct {
	State  State
	Since  time.Time
	Until  time.Time // when it may be tried again; zero = no time is set
	Reason string    // "" while ready
}

// Standing describes the gate.
func (g *Gate) Standing() Standing {
	g.mu.Lock()
	now := time.Now()
	defer g.leave(now)
	g.settle(now)
	return g.standing(now)
}

// Cooldowns counts the cooldowns that began, by what began them. A further
// one after a failed trial counts again; one that only gets longer does not.
type Cooldowns struct {
	Breaker, Backpressure, Draining int64
}

// Cooldowns are the cooldowns so far.
func (g *Gate) Cooldowns() Cooldowns {
	g.mu.Lock()
	now := time.Now()
	defer g.leave(now)
	g.settle(now)
	return g.cooldowns
}

// Story is what happened at the gate, newest last, at most 16 events: what
// opened it, each trial and how it went, when it closed, an operator's resets.
// The caller owns the slice, not what it points to.
func (g *Gate) Story() []Event {
	g.mu.Lock()
	now := time.Now()
	defer g.leave(now)
	g.settle(now)
	return append([]Event{}, g.story.events...)
}

// Blocked says whether Allow would refuse now, and in which state the gate is.
// It is what choosing among many deployments asks; it takes nothing, neither a
// trial nor the lock. While ready it does not even read the clock.
func (g *Gate) Blocked() (State, bool) {
	s := g.glance.Load()
	if s.cause == Ready {
		return Ready, false
	}
	return s.blocked(time.Now())
}

// BlockedAt is Blocked for a caller that asks many gates at one moment.
func (g *Gate) BlockedAt(now time.Time) (State, bool) {
	s := g.glance.Load()
	if s.cause == Ready {
		return Ready, false
	}
	return s.blocked(now)
}

// BlockedUntil is when a blocked gate may be tried again; zero where it is not
// blocked, or where a trial is under way whose end nobody knows.
func (g *Gate) BlockedUntil() time.Time {
	s := g.glance.Load()
	if s.cause == Ready {
		return time.Time{}
	}
	if state, blocked := s.blocked(time.Now()); !blocked || state == HalfOpen {
		return time.Time{}
	}
	return s.until.UTC()
}

func (s *glance) blocked(now time.Time) (State, bool) {
	due := !now.Before(s.until)
	switch {
	case s.cause == Cooling:
		if due {
			return Ready, false
		}
		return Cooling, true
	case s.trial:
		return HalfOpen, true
	case due:
		return HalfOpen, false
	default:
		return s.cause, true
	}
}

// stateAt is the state in words; settle has been called.
func (g *Gate) stateAt(now time.Time) State {
	if g.breakerClosed() || (g.trial == nil && now.Before(g.until)) {
		return g.cause
	}
	return HalfOpen
}

func (g *Gate) standing(now time.Time) Standing {
	s := Standing{State: g.stateAt(now), Since: g.since.UTC(), Until: g.until, Reason: g.reason}
	if g.trial != nil {
		s.Reason += "; a trial is under way since " + g.trial.began.UTC().Format(time.RFC3339)
	}
	if s.State == HalfOpen {
		s.Since = g.until.UTC()
		if g.trial == nil {
			s.Reason += "; its time is over, the next request is the trial"
		} else if g.trial.began.Before(g.until) {
			s.Since = g.trial.began.UTC()
		}
		s.Until = time.Time{}
	}
	if !s.Until.IsZero() {
		s.Until = s.Until.UTC()
	}
	return s
}

// change is one change of state that has not been told yet.
type change struct{ from, to Standing }

// note keeps a change of state for tell.
func (g *Gate) note(now time.Time) {
	if g.onChange == nil || g.stateAt(now) == g.told.State {
		return
	}
	to := g.standing(now)
	g.untold = append(g.untold, change{from: g.told, to: to})
	g.told = to
}

// tell calls onChange for what has been noted. One caller at a time does it,
// for all others too: that keeps the order, and lets onChange call the gate.
func (g *Gate) tell() {
	for g.tellOne() {
	}
}

func (g *Gate) tellOne() bool {
	g.mu.Lock()
	if g.telling || len(g.untold) == 0 {
		g.mu.Unlock()
		return false
	}
	c := g.untold[0]
	g.untold = g.untold[1:]
	g.telling = true
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.telling = false
		g.mu.Unlock()
	}()
	g.onChange(c.from, c.to)
	return true
}
