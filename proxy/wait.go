package proxy

import (
	"strconv"
	"time"

	"tracegate/routing"
	"tracegate/trace"
)

// waiting is what a request waits for before its next attempt. Every wait ends
// early when the client leaves, when total passes, and at the keep-alive
// instant, after which it is taken up again.
type waiting struct {
	kind  waitKind
	until time.Time       // when it is over; for room, when it is given up
	place *routing.Waiter // in a model's queue, while it waits for room
	model *routing.Model  // whose queue that is
	wake  chan struct{}   // written to by abort
	spent bool            // the queue was full, or the wait in it too long
}

type waitKind uint8

const (
	waitNone    waitKind = iota
	waitRoom             // every deployment is full
	waitBackoff          // before the same deployment is tried again
	waitCooling          // until a deployment's cooldown is over
)

// in says that the request stands in that model's queue.
func (w *waiting) in(m *routing.Model) bool { return w.place != nil && w.model == m }

func (x *exchange) beginWait(w waiting) {
	x.endWait()
	w.wake, w.spent = x.way.wait.wake, x.way.wait.spent
	if w.wake == nil {
		wake := make(chan struct{}, 1)
		x.wake.Store(&wake)
		w.wake = wake
	}
	x.way.wait = w
	x.timeline.SetPhase(trace.PhaseQueue)
}

// endWait leaves the queue, with a place or without.
func (x *exchange) endWait() {
	w := &x.way.wait
	if w.place != nil {
		w.place.Leave()
	}
	x.way.wait = waiting{wake: w.wake, spent: w.spent}
}

// queues puts the request into the queue of its model; false where nobody may
// wait any longer, or at all.
func (x *exchange) queues() bool {
	m := x.turn()
	spec := m.Spec.Queue
	if x.way.wait.in(m) {
		x.way.wait.place.Again()
		return true
	}
	if x.way.wait.spent || spec.MaxWait == 0 || spec.MaxWaiting == 0 {
		return false
	}
	now := time.Now()
	t := x.key.Tenant
	place, ok := m.Live.Queue.Enter(t.Name, t.Priority, t.Weight, spec.MaxWaiting, now)
	if !ok {
		x.way.wait.spent = true
		return false
	}
	x.beginWait(waiting{kind: waitRoom, until: now.Add(spec.MaxWait), place: place, model: m})
	return true
}

// await waits until it is worth while to look for a place again.
func (x *exchange) await() (owed bool, f *fault) {
	w := &x.way.wait
	until, _ := x.deadlines.next(stepWait, time.Time{})
	if until.IsZero() || w.until.Before(until) {
		until = w.until
	}
	var turn <-chan struct{}
	mine := false // a turn must be used: no other request gets it before we have tried
	if w.place != nil {
		turn = w.place.Turn()
	}
	if x.aborted() == "" { // or abort had not yet seen whom to wake
		timer := time.NewTimer(time.Until(until))
		select {
		case <-timer.C:
		case <-turn:
			mine = true
		case <-w.wake:
		}
		timer.Stop()
	}
	now := time.Now()
	if x.aborted() != "" {
		return false, x.leaveWait(x.abortFault())
	}
	switch l := x.deadlines.due(now, stepWait, time.Time{}); {
	case mine && (l == noLimit || l == limitKeepalive):
		return false, nil
	case l == limitKeepalive:
		return true, nil
	case l != noLimit:
		return false, x.leaveWait(x.deadlines.fault(l, 0))
	}
	if w.kind == waitRoom && !now.Before(w.until) {
		x.endWait()
		x.way.wait.spent = true
		x.way.timedOut = true
	}
	return false, nil
}

// leaveWait gives a wait up for a fault.
func (x *exchange) leaveWait(f *fault) *fault {
	x.endWait()
	return f
}

// without decides what a request does that found no place anywhere, and has
// made no attempt.
func (x *exchange) without(c routing.Choice) *fault {
	m := x.turn()
	why := "(" + c.WhyNone() + ")"
	switch {
	case x.way.timedOut:
		f := saturated("no deployment of model=" + m.Name() + " had room within models." + m.Name() + ".queue.max_wait=" + m.Spec.Queue.MaxWait.String() + " " + why)
		f.outcome, f.limit = trace.QueueTimeout, "models."+m.Name()+".queue.max_wait="+m.Spec.Queue.MaxWait.String()
		return f
	case c.Full && m.Spec.Queue.MaxWaiting > 0 && m.Spec.Queue.MaxWait > 0:
		f := saturated("the queue of model=" + m.Name() + " is full " + why)
		f.limit = "models." + m.Name() + ".queue.max_waiting=" + strconv.Itoa(m.Spec.Queue.MaxWaiting)
		return f
	case c.Cooling():
		return x.allCooling(c, why)
	}
	return x.noDeployment(c)
}

// allCooling follows cooldown.when_all_cooling.
func (x *exchange) allCooling(c routing.Choice, why string) *fault {
	m := x.turn()
	policy := x.snap.cfg.Cooldown.WhenAllCooling
	if policy == "probe_soonest" && x.probe(m) {
		return nil
	}
	soonest := c.Soonest
	if now := time.Now(); soonest.Before(now) { // not known: another request is trying it out
		soonest = now.Add(saturatedRetry)
	}
	if policy == "wait" && x.inTime(soonest) {
		x.beginWait(waiting{kind: waitCooling, until: soonest})
		return nil
	}
	f := saturated("every deployment of model=" + m.Name() + " is cooling down " + why)
	f.retryAfter = max(time.Until(soonest), saturatedRetry)
	return f
}

// probe lets the request try the deployment that is due soonest before its time.
func (x *exchange) probe(m *routing.Model) bool {
	ask := x.ask(m, false)
	c, permit := m.Probe(&ask)
	if c.Deployment == nil {
		return false
	}
	x.begin(m, c, permit)
	return true
}

// onlyTooLong says that length alone keeps the prompt out.
func onlyTooLong(c routing.Choice) bool {
	long := false
	for _, k := range c.Considered {
		switch k.Excluded {
		case routing.ExcludedTooLong:
			long = true
		case routing.ExcludedDialect, routing.ExcludedDrained:
		default:
			return false
		}
	}
	return long
}

// tooLong refuses a prompt that no deployment takes, in the words by which the
// dialect's clients know it.
func (x *exchange) tooLong() *fault {
	most := 0
	for _, d := range x.turn().Deployments {
		most = max(most, d.Spec.MaxPromptTokens)
	}
	return promptTooLong(x.head.EstimatedTokens, most, "models."+x.turn().Name()+".deployments[].max_prompt_tokens")
}
