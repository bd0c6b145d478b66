package proxy

import (
	"time"

	"tracegate/fallback"
	"tracegate/routing"
	"tracegate/trace"
	"tracegate/wire"
)

// journey is what a request has tried and what it may still try.
type journey struct {
	plan     fallback.Plan
	visited  []*routing.Deployment
	failed   *fault        // why the latest attempt failed, while a next one is looked for
	from     string        // the model that the latest fallback left; "" = it is still at the first
	reason   fallback.Kind // and why
	wait     waiting
	affinity uint64 // of the prompt, once it has been asked for; 0 = not yet, or none
	timedOut bool   // it waited for room as long as the queue allows
}

// planAttempts begins the journey at the model that was asked for.
func (x *exchange) planAttempts() {
	x.way.plan.Begin(x.model.Name(), x.snap.cfg.Retry.MaxAttempts, x.fallbacksOf)
	x.model.Live.Budget.Request()
}

// fallbacksOf are the models that a failed one leaves its requests to.
func (x *exchange) fallbacksOf(model string) []string {
	return x.snap.table.Fallbacks(model, x.key.Tenant.MayUse)
}

// longerThan are the models that take longer prompts than this one.
func (x *exchange) longerThan(model string) []string {
	return x.snap.table.Longer(model, x.key.Tenant.MayUse)
}

// place takes a place at a deployment and begins an attempt there. It waits
// where that is worth it; owed says that the client is owed a sign of life
// meanwhile, and place is called again.
func (x *exchange) place() (owed bool, f *fault) {
	for !x.at.open {
		if x.way.wait.kind != waitNone {
			if owed, f := x.await(); owed || f != nil {
				return owed, f
			}
		}
		if f := x.seek(); f != nil {
			x.endWait()
			return false, f
		}
	}
	x.endWait()
	return false, nil
}

// seek takes the first place that is free in the models of the plan. Without
// one it says what to wait for, or why there is no point in waiting.
func (x *exchange) seek() *fault {
	first, f := x.takeHere()
	if x.at.open || f != nil {
		return f
	}
	if first.Full && x.way.failed == nil && x.queues() {
		return nil
	}
	if x.takeBehind() {
		return nil
	}
	if x.way.failed != nil {
		return x.alone()
	}
	return x.without(first)
}

// takeHere looks in the model whose turn it is.
func (x *exchange) takeHere() (routing.Choice, *fault) {
	m := x.turn()
	c := x.takeFrom(m)
	if x.at.open || x.way.failed != nil || !onlyTooLong(c) {
		return c, nil
	}
	if !x.way.plan.Longer(x.longerThan) {
		return c, x.tooLong()
	}
	x.leaveFor(fallback.ContextLength, m)
	return x.takeHere()
}

// turn is the model of the plan.
func (x *exchange) turn() *routing.Model {
	m, ok := x.snap.table.Model(x.way.plan.Model())
	if !ok {
		panic("BUG: the plan names a model that does not exist")
	}
	return m
}

// takeFrom takes a place at a deployment of m, where nobody waits for it already.
func (x *exchange) takeFrom(m *routing.Model) routing.Choice {
	ask := x.ask(m, x.way.wait.kind == waitBackoff || x.way.wait.kind == waitCooling)
	if m.Live.Queue.Busy() && !x.way.wait.in(m) {
		c := m.Peek(&ask)
		c.Full = c.Full || c.Deployment != nil
		c.Deployment = nil
		return c
	}
	c, permit := m.Take(&ask)
	if c.Deployment != nil {
		if x.way.wait.in(m) {
			x.way.wait.place.Placed()
		}
		x.begin(m, c, permit)
	}
	return c
}

// ask is what the request needs of a deployment of m. With again, those count
// too that have failed it, as long as they may be tried once more.
func (x *exchange) ask(m *routing.Model, again bool) routing.Ask {
	a := routing.Ask{Dialect: x.dialectName(), Prompt: x.head.EstimatedTokens, Output: x.mostTokens(), Visited: x.way.visited}
	if again {
		a.Visited = x.usedUp()
	}
	if m.Spec.Routing.Strategy == routing.PrefixAffinity {
		if x.way.affinity == 0 {
			x.way.affinity = wire.Affinity(&x.head, x.body)
		}
		a.Affinity = x.way.affinity
	}
	return a
}

// mostTokens is how many tokens the answer may have; 0 where nothing says so.
func (x *exchange) mostTokens() int {
	if x.maxTokens > 0 {
		return int(x.maxTokens)
	}
	return int(max(x.head.MaxTokens, 0))
}

// usedUp are the deployments at which the request has made all the tries that
// they allow.
func (x *exchange) usedUp() (out []*routing.Deployment) {
	tries := map[*routing.Deployment]int{}
	for _, d := range x.way.visited {
		if tries[d]++; tries[d] == d.Spec.Retry.MaxAttempts {
			out = append(out, d)
		}
	}
	return out
}

// takeBehind looks in the models behind the one whose turn it is.
func (x *exchange) takeBehind() bool {
	for _, name := range x.way.plan.Rest() {
		m, ok := x.snap.table.Model(name)
		if !ok {
			continue
		}
		left, reason := x.turn(), x.whyLeft()
		if x.takeFrom(m); x.at.open {
			x.way.plan.GoTo(name)
			x.leaveFor(reason, left)
			return true
		}
	}
	return false
}

// leaveFor notes that a model was left for the one whose turn it is now.
func (x *exchange) leaveFor(reason fallback.Kind, left *routing.Model) {
	x.countFallback(false)
	x.way.from, x.way.reason = left.Name(), reason
}

// countFallback counts the fallback under way, if there is one, by whether it helped.
func (x *exchange) countFallback(answered bool) {
	if x.way.from != "" {
		x.gw.edges.Count(x.way.from, x.turn().Name(), x.way.reason, answered)
		x.way.from = ""
	}
}

// whyLeft is the reason of a fallback: the failure, or what kept the request out.
func (x *exchange) whyLeft() fallback.Kind {
	if x.way.failed != nil {
		return x.way.failed.kind
	}
	return fallback.NoPlace
}

// again is asked after an attempt failed before its answer had begun: nil means
// that another one is made. What the failed one left is kept until that begins,
// for it may turn out that its answer is the best there is.
func (x *exchange) again(f *fault) *fault {
	where, _ := fallback.NextTry(f.kind)
	if where == fallback.Nowhere || x.aborted() != "" || x.relaysAsIs(f) {
		return f
	}
	if x.way.plan.Spent() {
		return exhausted(f, x.attempts)
	}
	if where == fallback.Longer {
		left := x.turn()
		if !x.way.plan.Longer(x.longerThan) {
			return f
		}
		x.leaveFor(fallback.ContextLength, left)
	} else if !x.model.Live.Budget.Take(x.at.up.spec.Retry.BudgetRatio) { // a longer prompt elsewhere multiplies no overload
		return exhausted(f, x.attempts)
	}
	x.endAttempt(f)
	x.way.failed = f
	x.timeline.SetPhase(trace.PhaseQueue)
	return nil
}

// relaysAsIs: with the client's own credential, what the upstream says of it
// is the client's to hear.
func (x *exchange) relaysAsIs(f *fault) bool {
	return f.kind == fallback.Credential && x.at.up.passes()
}

// exhausted is the last fault of a request that has been tried more than once:
// its client's own retries would only multiply ours.
func exhausted(f *fault, attempts int) *fault {
	if attempts > 1 && f.retryAfter == 0 {
		f.noRetry = true
	}
	return f
}

// alone decides what a failed request does where no other deployment is left:
// the same one again after a while, or the failure is its answer.
func (x *exchange) alone() *fault {
	f, m := x.way.failed, x.turn()
	_, patience := fallback.NextTry(f.kind)
	ask := x.ask(m, true)
	c := m.Peek(&ask)
	w := waiting{kind: waitBackoff, until: time.Now()}
	switch {
	case patience == fallback.Never, patience == fallback.Backoff && c.Deployment == nil,
		c.Deployment != nil && x.way.wait.kind != waitNone: // it has waited, and others were faster
		return exhausted(f, x.attempts)
	case patience == fallback.Backoff:
		w.until = w.until.Add(fallback.BackoffTime(x.at.up.spec.Retry.Backoff, x.attempts))
	default:
		w.kind = waitCooling
		if c.Deployment == nil {
			w.until = c.Soonest
		}
	}
	if w.until.IsZero() || !x.inTime(w.until) {
		return exhausted(f, x.attempts)
	}
	x.beginWait(w)
	return nil
}

// inTime says that the request still has time at t.
func (x *exchange) inTime(t time.Time) bool {
	total := x.deadlines.total
	return total.IsZero() || t.Before(total)
}
