package fallback

import "time"

// Pass is one request's way through a gate. One goroutine at a time owns it
// and calls End exactly once. The zero Pass belongs to no gate and does nothing.
//
// A pass whose gate has been opened or reset since it began reports no fault
// and no success. Backpressure is heard from every one: it is the deployment's
// word about now.
type Pass struct {
	gate       *Gate
	trial      *trial // nil = it was no trial
	generation uint64
	epoch      uint64
	answered   bool
	ended      bool
}

// Content says that the first token, or a whole answer, has come: the
// deployment works. A half-open gate closes now, not at the end of the stream.
// Only the first call counts.
func (p *Pass) Content() {
	if p.gate == nil || p.answered || p.ended {
		return
	}
	p.answered = true
	p.gate.succeeded(p)
}

// End says how the attempt ended. A success that Content has not reported is
// one; a fault after Content is one more outcome. A second call is a bug.
func (p *Pass) End(o Outcome) {
	if p.gate == nil {
		return
	}
	if p.ended {
		panic("BUG: a pass was ended twice")
	}
	if !o.Failed() {
		p.Content()
		p.ended = true
		return
	}
	p.ended = true
	p.gate.failed(p, o)
}

func (g *Gate) succeeded(p *Pass) {
	g.mu.Lock()
	if g.cause == Ready { // the way of nearly every request: nothing changes, and no clock is read
		g.countSuccess(p)
		g.mu.Unlock()
		return
	}
	now := time.Now()
	defer g.leave(now)
	g.settle(now)
	if g.tries(p) {
		g.story.trial(now, g.trial, TrialOK, Outcome{})
		g.closes(now)
	}
	g.countSuccess(p)
}

func (g *Gate) countSuccess(p *Pass) {
	if p.epoch == g.epoch {
		g.pressed = 0
	}
	if p.generation == g.generation && g.breakerClosed() {
		g.breaker.success()
	}
}

func (g *Gate) failed(p *Pass, o Outcome) {
	counted := o.Kind == Draining || o.Verdict == Fault || o.Verdict == Backpressure
	if !counted && p.trial == nil {
		return
	}
	g.mu.Lock()
	now := time.Now()
	defer g.leave(now)
	g.settle(now)
	switch {
	case o.Kind == Draining:
		g.drains(p, o, now)
	case o.Verdict == Fault:
		g.faulted(p, o, now)
	case o.Verdict == Backpressure:
		g.pressedBy(p, o, now)
	case g.tries(p):
		g.triedInVain(o, now)
	}
}

// tries says whether this is the trial that is under way.
func (g *Gate) tries(p *Pass) bool { return p.trial != nil && p.trial == g.trial }

// trips is the rule of the contract. It is asked at faults only: a success
// that completes min_requests opens nothing, the next fault does.
func (g *Gate) trips(outcomes, faults, inARow int) bool {
	if faults < g.rules.AllowedFails {
		return false
	}
	if inARow >= g.rules.AllowedFails {
		return true
	}
	return outcomes >= g.rules.MinRequests && float64(faults)/float64(outcomes) >= g.rules.ErrorRatio
}

func (g *Gate) faulted(p *Pass, o Outcome, now time.Time) {
	if g.tries(p) {
		g.trial.ended(errFault)
		e := g.story.trial(now, g.trial, TrialFault, o)
		if g.cause != Cooling {
			g.cooldowns.Breaker++
			g.opens(Open, reasonOfTrial(now.Sub(g.trial.began), o, g.openings), now)
			e.Until = g.until.UTC()
			return
		}
		g.trial = nil // a probe of a cooling gate fails like any request: one fault opens nothing
	}
	if p.generation != g.generation || !g.breakerClosed() {
		return
	}
	g.story.fault(now, o)
	if !g.breaker.fault() {
		return
	}
	g.cooldowns.Breaker++
	g.opens(Open, reasonOfFaults(g.breaker.judged, g.rules.Window, o), now)
	g.story.opens(Event{Time: now.UTC(), What: EventOpened, Reason: g.reason, Until: g.until.UTC(), Faults: g.story.faultsSince(now.Add(-g.rules.Window))})
}

func (g *Gate) drains(p *Pass, o Outcome, now time.Time) {
	switch {
	case g.tries(p) && g.cause != Cooling:
		g.trial.ended(errFault)
		e := g.story.trial(now, g.trial, TrialDraining, o)
		g.cooldowns.Draining++
		g.opens(DrainingState, reasonOfDraining(o), now)
		e.Until = g.until.UTC()
	case g.generation == p.generation && g.breakerClosed():
		if g.tries(p) {
			g.story.trial(now, g.trial, TrialDraining, o)
		}
		g.breaker.open()
		g.cooldowns.Draining++
		g.opens(DrainingState, reasonOfDraining(o), now)
		g.story.opens(Event{Time: now.UTC(), What: EventDraining, Reason: g.reason, Until: g.until.UTC()})
	case g.cause == DrainingState:
		// One of those in flight when it began says the same again: it is not yet over, nor is it worse.
		g.later(now.Add(doubled(g.rules.Time, g.openings-1, g.rules.MaxTime)))
	}
}

// opens begins or renews a cooldown that a trial has to end.
func (g *Gate) opens(cause State, reason string, now time.Time) {
	if g.breakerClosed() {
		g.generation++
		if g.closed.IsZero() || now.Sub(g.closed) >= g.rules.Window {
			g.openings = 0
		}
	}
	g.later(now.Add(doubled(g.rules.Time, g.openings, g.rules.MaxTime)))
	g.openings++
	g.cause, g.since, g.reason, g.trial = cause, now, reason, nil
}

// closes ends the trial: the deployment works. How often it opened is forgotten
// only when it has stayed closed for a window, or it would flap at full speed.
func (g *Gate) closes(now time.Time) {
	if g.cause != Cooling {
		g.trial.ended(nil)
		if g.trial.done == nil || g.breaker.window != g.rules.Window {
			g.breaker = newBreaker(g.rules.Window, g.trips)
		}
		g.closed = now
		g.story.closes()
	}
	g.ready(now)
	g.story.add(Event{Time: now.UTC(), What: EventClosed})
}

// longestRetryAfter bounds what an upstream may ask for, so that a slip of one does not end a deployment for good.
const longestRetryAfter = 24 * time.Hour

// pressedBy begins or prolongs a cooldown that ends by itself. Of many requests
// in flight that are refused together only the first one lengthens the next:
// the others were sent before it was known.
func (g *Gate) pressedBy(p *Pass, o Outcome, now time.Time) {
	if p.epoch == g.epoch {
		g.epoch++
		g.pressed++
	}
	wait := doubled(time.Second, g.pressed-1, g.rules.Time)
	if o.RetryAfter > 0 {
		wait = min(o.RetryAfter, longestRetryAfter)
		if until := now.Add(wait); until.After(g.asked) {
			g.asked = until
		}
	}
	if g.tries(p) {
		until := g.until
		g.later(now.Add(wait))
		g.story.trial(now, g.trial, TrialBackpressure, o).Until = g.until.UTC()
		g.until = until
		if g.cause != Cooling { // it answers, so it lives
			g.closes(now)
			g.until = until // what was known before stays true
		}
		g.trial = nil
	}
	if !g.breakerClosed() {
		if o.RetryAfter > 0 {
			g.later(now.Add(wait))
		}
		return
	}
	if g.cause != Cooling {
		g.cause, g.since = Cooling, now
		g.cooldowns.Backpressure++
	}
	if now.Add(wait).After(g.until) || g.reason == "" {
		g.reason = reasonOfBackpressure(o, wait)
	}
	g.later(now.Add(wait))
	g.story.cools(Event{Time: now.UTC(), What: EventCooling, Reason: g.reason, Until: g.until.UTC()})
}

// triedInVain ends a trial that was nobody's failure. A request that the
// deployment judged proves that it works; any other end leaves the question
// open, and the next request is the trial.
func (g *Gate) triedInVain(o Outcome, now time.Time) {
	judged := o.Kind == ClientError || o.Kind == ContextLength
	if judged && g.cause != Cooling {
		g.story.trial(now, g.trial, TrialOK, o)
		g.closes(now)
		return
	}
	g.trial.ended(errInconclusive)
	g.story.trial(now, g.trial, TrialInconclusive, o)
	g.trial = nil
}

// doubled is a wait that doubles n times, up to a most.
func doubled(first time.Duration, n int, most time.Duration) time.Duration {
	d := min(first, most)
	for ; n > 0 && d < most; n-- {
		if d > most/2 {
			return most
		}
		d *= 2
	}
	return d
}
