package routing

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tracegate/fallback"
	"tracegate/trace"
)

// Reasons why a deployment was not considered; the words are the public
// contract's. The first that holds is given, in this order; a gate that drains
// stands with the other words of gates.
const (
	ExcludedDrained = "draining" // weight 0, an operator, or it is shutting down (the gate's)
	ExcludedDialect = "dialect"
	ExcludedTooLong = "prompt_too_long"
	ExcludedVisited = "visited"
	ExcludedCooling = "cooling"
	ExcludedOpen    = "open" // also where another request is trying it out
	ExcludedFull    = "full"
)

// Choice is a decision and everything that was considered for it.
type Choice struct {
	Deployment *Deployment        // nil when none was left
	Considered []trace.Considered // in the order of the file; the lowest score is best
	Soonest    time.Time          // with no deployment: when the first of those that are cooling may be tried; zero = none is
	Full       bool               // with no deployment: one of them has no room, and that passes
	Visited    bool               // with no deployment: one of them was left out for having been tried

	model *Model
}

// picking is one decision while it is made. Its parts are called directly, never
// through a function value, so that it stays on the stack.
type picking struct {
	m          *Model
	a          Ask // a copy: a pointer would make the caller's escape
	considered []trace.Considered
	peek       bool // nothing may change, and nothing is left to chance that can be told
}

// Pick chooses among the deployments that can serve the request, by the model's
// strategy. It changes nothing but whose turn it is. All are considered, in the
// order of the file.
func (m *Model) Pick(a *Ask) Choice { return m.pick(a, false) }

// Peek is Pick for those who only want to see: nobody's turn passes.
func (m *Model) Peek(a *Ask) Choice { return m.pick(a, true) }

func (m *Model) pick(a *Ask, peek bool) Choice {
	p := m.picking(a, peek)
	c := Choice{Considered: p.considered, model: m}
	if p.exclude() == 0 {
		c.explain()
		return c
	}
	c.Deployment = m.Deployments[p.best()]
	return c
}

func (m *Model) picking(a *Ask, peek bool) picking {
	return picking{m: m, a: *a, considered: make([]trace.Considered, len(m.Deployments)), peek: peek}
}

// exclude fills considered and returns how many are left. The score of those is
// their weight; the strategy replaces it.
func (p *picking) exclude() int {
	left, dialect := 0, p.m.bit(p.a.Dialect)
	for i, d := range p.m.Deployments {
		k, weight := &p.considered[i], d.Weight()
		k.Deployment = d.name
		if k.Excluded = d.excluded(&p.a, dialect, weight); k.Excluded == "" {
			k.Score = float64(weight)
			left++
		}
	}
	return left
}

func (d *Deployment) excluded(a *Ask, dialect uint64, weight int) string {
	switch {
	case weight <= 0 || d.Live.drain.Load():
		return ExcludedDrained
	case d.speaks&dialect == 0:
		return ExcludedDialect
	case d.longest > 0 && a.Prompt > d.longest/mostRatio && d.Estimate(a.Prompt) > d.longest:
		return ExcludedTooLong
	case len(a.Visited) > 0 && !a.Tried && d.isIn(a.Visited):
		return ExcludedVisited
	}
	if state, blocked := d.gate.Blocked(); blocked {
		return excludedBy(state)
	}
	if d.full() {
		return ExcludedFull
	}
	return ""
}

// excludedBy is the word for a gate that lets nobody pass.
func excludedBy(state fallback.State) string {
	switch state {
	case fallback.Cooling:
		return ExcludedCooling
	case fallback.DrainingState:
		return ExcludedDrained
	default:
		return ExcludedOpen
	}
}

// isIn compares what the deployments do, not the tables they come from.
func (d *Deployment) isIn(visited []*Deployment) bool {
	for _, v := range visited {
		if v.Live == d.Live {
			return true
		}
	}
	return false
}

func (d *Deployment) full() bool {
	return d.most > 0 && d.Live.inflight.Load() >= d.most
}

// gated says that the deployment is excluded for its gate. It may be full as well.
func (d *Deployment) gated(word string) bool {
	return word == ExcludedCooling || word == ExcludedOpen || word == ExcludedDrained && !d.drained()
}

// explain says what may change for a choice that is empty.
func (c *Choice) explain() {
	for i, k := range c.Considered {
		switch d := c.model.Deployments[i]; {
		case k.Excluded == ExcludedFull:
			c.Full = true
		case k.Excluded == ExcludedVisited:
			c.Visited = true
		case d.gated(k.Excluded):
			until := d.until()
			if !until.IsZero() && (c.Soonest.IsZero() || until.Before(c.Soonest)) {
				c.Soonest = until
			}
		}
	}
}

// until is when the deployment's gate may let somebody pass; zero = no time is set.
func (d *Deployment) until() time.Time { return d.Live.Gate.BlockedUntil() }

// WhyNone says in one sentence why a choice is empty: each deployment with its
// reason and, where a gate set a time, for how many seconds more.
func (c Choice) WhyNone() string {
	var s strings.Builder
	for i, k := range c.Considered {
		if i > 0 {
			s.WriteString(", ")
		}
		s.WriteString(k.Deployment + ": " + k.Excluded)
		if c.model == nil {
			continue
		}
		d := c.model.Deployments[i]
		if !d.gated(k.Excluded) {
			continue
		}
		if left := time.Until(d.until()); left > 0 {
			fmt.Fprintf(&s, " for %.0fs", math.Ceil(left.Seconds()))
		}
	}
	return s.String()
}

// takeTries bounds how often Take picks again. Each time another request was
// faster, so that this many in a row mean that there is no room.
const takeTries = 1000

// Take picks a deployment and takes a place there. Between the two another
// request may have taken the last one; then it picks again, and the full
// deployment is excluded.
func (m *Model) Take(a *Ask) (Choice, Permit) {
	var c Choice
	for range takeTries {
		c = m.Pick(a)
		if c.Deployment == nil {
			return c, Permit{}
		}
		if p, ok := c.Deployment.begin(a); ok {
			return c, p
		}
	}
	c.Deployment, c.Full = nil, true
	return c, Permit{}
}

// Probe takes a place, before its time, at one of the deployments that nothing
// but their gates exclude: the one that is due soonest and that nobody else is
// trying out. Without one the choice is as empty as Pick's.
func (m *Model) Probe(a *Ask) (Choice, Permit) {
	p := m.picking(a, true)
	if p.exclude() > 0 {
		p.best() // for the scores
	}
	c := Choice{Considered: p.considered, model: m}
	last := due{at: -1}
	for {
		next, ok := p.dueAfter(last)
		if !ok {
			c.explain()
			return c, Permit{}
		}
		if permit, ok := m.Deployments[next.at].probe(a); ok {
			c.Deployment = m.Deployments[next.at]
			return c, permit
		}
		last = next
	}
}

// due is a deployment's place among those that wait for their gates.
type due struct {
	until int64 // nanoseconds from the epoch; those without a time come last
	at    int
}

func (x due) before(y due) bool {
	return x.until < y.until || x.until == y.until && x.at < y.at
}

// dueAfter is the first one behind last; at -1 is before all.
func (p *picking) dueAfter(last due) (next due, ok bool) {
	for i, k := range p.considered {
		d := p.m.Deployments[i]
		if !d.gated(k.Excluded) {
			continue
		}
		x := due{until: math.MaxInt64, at: i}
		if until := d.until(); !until.IsZero() {
			x.until = until.UnixNano()
		}
		if (last.at < 0 || last.before(x)) && (!ok || x.before(next)) {
			next, ok = x, true
		}
	}
	return next, ok
}

// Cooling says that one of the candidates was left out by its gate: that passes
// with time, or when the request that tries it out has its answer.
func (c Choice) Cooling() bool {
	return !c.Soonest.IsZero() || slices.ContainsFunc(c.Considered, func(k trace.Considered) bool {
		return k.Excluded == ExcludedCooling || k.Excluded == ExcludedOpen
	})
}
