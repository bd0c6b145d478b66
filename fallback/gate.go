package fallback

import (
	"sync"
	"sync/atomic"
	"time"

	"tracegate/configs"
)

// Gate decides whether a deployment may get a request: a circuit breaker for
// its faults and a cooldown for its backpressure. All methods may be called
// from any goroutine.
//
// It runs no goroutine and no timer: what time alone changes is seen at the
// next call, and dated to the moment when it was due.
type Gate struct {
	glance   atomic.Pointer[glance] // what choosing reads without the lock; swapped whenever it changes
	onChange func(from, to Standing)

	mu      sync.Mutex // guards everything below
	rules   configs.Cooldown
	breaker *breaker

	// cause is what stands in the way: Ready (nothing), Cooling, Open or
	// DrainingState. The breaker is closed while it is Ready or Cooling.
	cause  State
	since  time.Time
	until  time.Time // zero while Ready
	reason string
	trial  *trial // under way; nil = none

	generation uint64    // changes when the breaker opens or is reset: what began before then is no evidence about now
	epoch      uint64    // changes at each backpressure: only what was let through since then says something new
	pressed    int       // backpressures since a success
	asked      time.Time // until when the upstream itself asked to be left alone
	openings   int       // in a row, without a whole window closed in between
	closed     time.Time // when the breaker closed last; zero = it never opened

	cooldowns Cooldowns
	story     story
	told      Standing // the last one that onChange was told
	untold    []change
	telling   bool
}

// glance is the part of a Gate that decides whether Allow would refuse.
type glance struct {
	cause      State
	until      time.Time
	trial      bool
	generation uint64
	epoch      uint64
}

// trial is one request that tries a deployment out.
type trial struct {
	began time.Time
	done  func(error) // the breaker's half-open permit; nil = it has none to give back
}

// NewGate makes a gate that lets requests pass.
func NewGate(c configs.Cooldown) *Gate {
	g := &Gate{rules: c, cause: Ready, since: time.Now()}
	g.breaker = newBreaker(c.Window, g.trips)
	g.told = g.standing(g.since)
	g.publish()
	return g
}

// OnChange sets what is told of every change of state, in order and outside
// the gate's lock; it may call the gate. It is set once, before the gate is used.
// A change by time alone is told at the next call of Allow, Probe, Standing,
// Story, Cooldowns, or of a Pass.
func (g *Gate) OnChange(f func(from, to Standing)) { g.onChange = f }

// Configure changes the rules, from now on: a cooldown that runs keeps its end,
// and outcomes stay counted unless the window itself is another.
func (g *Gate) Configure(c configs.Cooldown) {
	g.mu.Lock()
	now := time.Now()
	defer g.leave(now)
	g.settle(now)
	g.rules = c
	// An open breaker is replaced when it closes: its trial may hold a permit of it.
	if g.breakerClosed() && g.breaker.window != c.Window {
		g.breaker = newBreaker(c.Window, g.trips)
	}
}

// Allow lets one request pass; its Pass is owed an End. Where a trial is
// needed, the request is that trial.
func (g *Gate) Allow() (Pass, bool) { return g.enter(false) }

// Probe lets one request pass before its time, where nobody else does: the
// policy probe_soonest. ok is false while another one is trying it out, and
// while the upstream has asked to be left alone: that is no guess of ours.
func (g *Gate) Probe() (Pass, bool) { return g.enter(true) }

func (g *Gate) enter(early bool) (Pass, bool) {
	if s := g.glance.Load(); s.cause == Ready {
		return Pass{gate: g, generation: s.generation, epoch: s.epoch}, true
	}
	g.mu.Lock()
	now := time.Now()
	defer g.leave(now)
	g.settle(now)
	p := Pass{gate: g, generation: g.generation, epoch: g.epoch}
	if g.cause == Ready {
		return p, true
	}
	if g.trial != nil || !early && now.Before(g.until) || now.Before(g.asked) {
		return Pass{}, false
	}
	g.trial = &trial{began: now}
	if g.cause != Cooling {
		g.trial.done = g.breaker.trial()
	}
	p.trial = g.trial
	return p, true
}

// Reset lets requests pass again, for an operator. What is in flight reports
// to nobody, and the next cooldown is as short as the first.
func (g *Gate) Reset() {
	g.mu.Lock()
	now := time.Now()
	defer g.leave(now)
	g.settle(now)
	g.breaker = newBreaker(g.rules.Window, g.trips)
	g.ready(now)
	g.generation++
	g.epoch++
	g.pressed, g.openings, g.closed = 0, 0, time.Time{}
	g.story.closes()
	g.story.add(Event{Time: now.UTC(), What: EventReset})
}

// settle does what is due by time alone, dated to when it was.
func (g *Gate) settle(now time.Time) {
	if g.cause == Cooling && !now.Before(g.until) {
		g.ready(g.until) // a probe that is under way is a request like any other now
	}
	g.note(now)
}

// leave publishes what the holder of the lock has done, and gives the lock back.
func (g *Gate) leave(now time.Time) {
	g.publish()
	g.note(now)
	tell := len(g.untold) > 0
	g.mu.Unlock()
	if tell {
		g.tell()
	}
}

func (g *Gate) publish() {
	s := glance{cause: g.cause, until: g.until, trial: g.trial != nil, generation: g.generation, epoch: g.epoch}
	if old := g.glance.Load(); old == nil || *old != s {
		g.glance.Store(&s)
	}
}

func (g *Gate) ready(at time.Time) {
	g.cause, g.since, g.until, g.reason, g.trial = Ready, at, time.Time{}, "", nil
	g.asked = time.Time{}
}

func (g *Gate) breakerClosed() bool { return g.cause == Ready || g.cause == Cooling }

// later moves the end of a cooldown; new evidence never brings it nearer.
func (g *Gate) later(t time.Time) {
	if t.After(g.until) {
		g.until = t
	}
}
