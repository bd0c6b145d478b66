package routing

import (
	"sync"
	"sync/atomic"
	"time"
)

// Queue is where a model's requests wait while every deployment is full: by
// priority, then fairly between tenants by their weights, then in the order of
// their coming (queue_order.go). The zero value is ready. Any goroutine may
// call its methods; it owns no places and never takes one.
//
// The protocol. A request that finds Busy, or no place, enters. It tries to
// take a place only when Turn has received; the first time that may be as soon
// as Enter returns, because a place given back between a failed try and Enter
// was signalled to nobody. After a turn it calls, without waiting for anything
// in between, exactly one of
//
//   - Placed: it has taken a place;
//   - Again: there was none for it. It waits on, at its position;
//   - Leave: it gives up.
//
// Whoever gives a place back, or learns that there may be one (a gate opens, a
// deployment is added), calls Signal afterwards.
//
// No wake is lost: a signalled place is offered down the line until one takes
// it or all have tried after the signal. So Again and Leave wake the next one,
// and a waiter whose try was overtaken by a signal gets another turn. Nobody
// is offered the same place twice, so the line comes to rest.
type Queue struct {
	waiting atomic.Int64

	mu      sync.Mutex
	entered uint64 // waiters so far
	signals uint64 // so far
	// open is at least the number of signalled places that somebody in the
	// line has still to be offered.
	open    int
	bearers int  // waiters that try on behalf of open
	trying  int  // they and the probe
	succeed bool // somebody took a place: perhaps there is another
	// probe tries although no place was signalled: as its first try, or after
	// another's success. Only while nobody else tries, so that it takes
	// nothing from a bearer.
	probe   *Waiter
	classes map[int]*class // by priority
	due     heap[*flow]    // the flows with waiters that have a turn to come
	tried   row            // waiters that have tried since the last signal
	fresh   row            // waiters that have never had a turn
}

type state uint8

const (
	stateDue    state = iota // in its flow's line
	stateTried               // in Queue.tried
	stateTrying              // has the turn
	statePlaced
	stateLeft
)

// Waiter is one request in a queue. Its owner calls Leave exactly once; the
// methods are for one goroutine at a time.
type Waiter struct {
	queue *Queue
	turn  chan struct{}
	since time.Time

	// Guarded by queue.mu.
	flow    *flow
	number  uint64 // in the order of coming
	cost    int64  // of a place, in virtual time
	tag     int64  // its flow's tag when it got the turn
	seen    uint64 // signals when it got the turn
	state   state
	fresh   bool // has not finished a first turn
	bearing bool // counted in bearers
	at      int  // in flow.line, -1 = not there
	row     *row // the one that it is in
	prev    *Waiter
	next    *Waiter
}

// Enter waits for room; ok is false where most requests wait already. A lower
// priority comes first; weight counts as at least 1.
func (q *Queue) Enter(tenant string, priority, weight, most int, now time.Time) (w *Waiter, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting.Load() >= int64(most) {
		return nil, false
	}
	f := q.flowOf(priority, tenant)
	w = &Waiter{queue: q, turn: make(chan struct{}, 1), since: now, flow: f, number: q.entered,
		cost: turnCost / int64(max(weight, 1)), fresh: true, at: -1}
	q.entered++
	q.fresh.push(w)
	q.line(w)
	f.waiting++
	f.class.waiting++
	q.waiting.Add(1)
	q.offer()
	return w, true
}

// Signal says that a place was given back, or that there may be one for
// another reason. Without waiters it takes no lock: a waiter counts before it
// first tries, so that one that is not seen here sees the place.
func (q *Queue) Signal() {
	if q.waiting.Load() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.signals++
	for w := q.tried.first; w != nil; w = q.tried.first {
		q.tried.remove(w)
		q.line(w)
	}
	// More places than waiters are of no use to them.
	q.open = min(q.open+1, int(q.waiting.Load()))
	q.offer()
}

// Busy reports whether somebody waits, so that a newcomer must queue too.
func (q *Queue) Busy() bool { return q.waiting.Load() > 0 }

// Waiting is how many wait.
func (q *Queue) Waiting() int { return int(q.waiting.Load()) }

// Turn receives when the waiter may try to take a place; see Queue.
func (w *Waiter) Turn() <-chan struct{} { return w.turn }

// Since is when the waiter entered.
func (w *Waiter) Since() time.Time { return w.since }

// Again says that the waiter has tried and there was no place for it. A turn
// that has come since, and was not received yet, stays.
func (w *Waiter) Again() {
	q := w.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.state >= statePlaced {
		panic("BUG: a waiter goes on waiting after it got a place or left")
	}
	if w.state != stateTrying || len(w.turn) > 0 {
		return
	}
	q.endTurn(w)
	w.fresh = false
	w.flow.charge(-w.cost)
	if w.seen < q.signals { // the place may have come after the try
		q.line(w)
	} else {
		w.state = stateTried
		q.tried.push(w)
	}
	q.rank(w.flow)
	q.offer()
}

// Placed says that the waiter has taken a place, with or without a turn; its
// tenant is charged for it. It no longer waits; Leave is still to be called.
func (w *Waiter) Placed() {
	q := w.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.state >= statePlaced {
		panic("BUG: a waiter got a second place")
	}
	if w.state == stateTrying {
		// One that never tried before may have taken a place that suited
		// nobody until it came; then the signalled one is still there.
		if w.bearing && !w.fresh {
			q.open--
		}
		q.endTurn(w)
	} else {
		w.tag = w.flow.tag
		w.flow.charge(w.cost)
		q.unline(w)
	}
	q.succeed = true
	w.state = statePlaced
	w.flow.class.serve(w.tag)
	q.remove(w)
}

// Leave takes the waiter out, with a place or without. One that never got a
// place leaves nothing behind, and its turn is the next one's. A second call
// is a bug.
func (w *Waiter) Leave() {
	q := w.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	switch w.state {
	case stateLeft:
		panic("BUG: a waiter left its queue twice")
	case statePlaced:
		w.state = stateLeft
		return
	case stateTrying:
		q.succeed = q.succeed || q.probe == w && !w.fresh
		q.endTurn(w)
		w.flow.charge(-w.cost)
	default:
		q.unline(w)
	}
	w.state = stateLeft
	q.remove(w)
}

// offer gives turns to those who have them to come. It runs after every change.
func (q *Queue) offer() {
	for q.open > q.bearers && len(q.due) > 0 {
		w := q.due[0].line[0]
		if p := q.probe; p != nil && p.ahead(w) {
			w = p // it tries already, and gets another turn if it was too early
		}
		q.bearers++
		w.bearing = true
		if w == q.probe {
			q.probe = nil
		} else {
			q.wake(w)
		}
	}
	if q.trying > 0 {
		return
	}
	q.open = 0 // all have tried: what is free now suits nobody in the line
	switch {
	case q.succeed && len(q.due) > 0:
		q.probe = q.due[0].line[0]
	case q.fresh.first != nil:
		q.probe = q.fresh.first
	}
	q.succeed = false
	if q.probe != nil {
		q.wake(q.probe)
	}
}

// wake gives w the turn. Its flow is charged at once, so that the next turn is
// another tenant's; the charge is taken back if w gets no place.
func (q *Queue) wake(w *Waiter) {
	f := w.flow
	q.unline(w)
	w.tag = f.tag
	f.charge(w.cost)
	q.rank(f)
	w.state, w.seen = stateTrying, q.signals
	q.trying++
	w.turn <- struct{}{} // empty: the last turn was received before it ended
}

func (q *Queue) endTurn(w *Waiter) {
	q.trying--
	if w.bearing {
		w.bearing = false
		q.bearers--
	}
	if q.probe == w {
		q.probe = nil
	}
}

// remove ends the waiting of w, which is in no line any more.
func (q *Queue) remove(w *Waiter) {
	f := w.flow
	f.waiting--
	f.class.waiting--
	q.waiting.Add(-1)
	q.rank(f)
	q.forget(f)
	q.offer()
}
