package routing

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// restaurant models a queue's surroundings step by step, with tries and their
// outcomes, gifts and their signals as separate steps, so that every race
// between them can be played. There are kinds of places and guests that are
// suited by some of them.
type restaurant struct {
	q       Queue
	free    map[int]int // places by kind
	guests  []*guest
	pending int // places given back that are not signalled yet
}

type guest struct {
	*Waiter
	suits int // set of kinds
	tried bool
	got   bool
}

func (r *restaurant) enter(t *rapid.T) {
	tenant := rapid.IntRange(0, 3).Draw(t, "tenant")
	w, ok := r.q.Enter(fmt.Sprint(tenant), rapid.IntRange(0, 1).Draw(t, "priority"), 1+tenant, 12, time.Time{})
	if ok != (len(r.guests) < 12) {
		t.Fatalf("%d wait and a newcomer gets %t", len(r.guests), ok)
	}
	if ok {
		r.guests = append(r.guests, &guest{Waiter: w, suits: rapid.IntRange(1, 7).Draw(t, "suits")})
	}
}

func (r *restaurant) give(t *rapid.T) {
	r.free[rapid.IntRange(0, 2).Draw(t, "kind")]++
	r.pending++
}

func (r *restaurant) signal() {
	r.pending--
	r.q.Signal()
}

// act does a guest's next step: receive the turn and try, or say how it went.
func (r *restaurant) act(i int) bool {
	g := r.guests[i]
	switch {
	case g.got:
		g.Placed()
		g.Leave()
		r.drop(i)
	case g.tried:
		g.tried = false
		g.Again()
	case len(g.Turn()) > 0:
		<-g.Turn()
		g.got = r.take(g)
		g.tried = !g.got
	default:
		return false
	}
	return true
}

func (r *restaurant) take(g *guest) bool {
	for kind := range 3 {
		if g.suits&(1<<kind) != 0 && r.free[kind] > 0 {
			r.free[kind]--
			return true
		}
	}
	return false
}

func (r *restaurant) drop(i int) { r.guests = append(r.guests[:i], r.guests[i+1:]...) }

// rest lets everything happen that is due, in any order.
func (r *restaurant) rest(t *rapid.T) {
	for r.pending > 0 {
		r.signal()
	}
	for steps := 0; ; steps++ {
		if steps > 100_000 {
			t.Fatal("the line does not come to rest")
		}
		if len(r.guests) == 0 {
			return
		}
		from, acted := rapid.IntRange(0, len(r.guests)-1).Draw(t, "from"), false
		for i := range r.guests {
			if acted = r.act((from + i) % len(r.guests)); acted {
				break
			}
		}
		if !acted {
			return
		}
	}
}

// TestQueueLosesNoWake: whatever the order of steps was, when all is quiet
// nobody waits who would be suited by a place that is free.
func TestQueueLosesNoWake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &restaurant{free: map[int]int{}}
		anyone := func(t *rapid.T) int {
			if len(r.guests) == 0 {
				t.Skip("nobody")
			}
			return rapid.IntRange(0, len(r.guests)-1).Draw(t, "guest")
		}
		t.Repeat(map[string]func(*rapid.T){
			"enter": r.enter,
			"give":  r.give,
			"signal": func(t *rapid.T) {
				if r.pending == 0 {
					t.Skip("no gift")
				}
				r.signal()
			},
			"act":  func(t *rapid.T) { r.act(anyone(t)) },
			"act2": func(t *rapid.T) { r.act(anyone(t)) },
			"leave": func(t *rapid.T) {
				i := anyone(t)
				if r.guests[i].got {
					t.Skip("has a place")
				}
				r.guests[i].Leave()
				r.drop(i)
			},
			"": func(t *rapid.T) {
				if r.q.Waiting() != len(r.guests) {
					t.Fatalf("%d wait, not %d", r.q.Waiting(), len(r.guests))
				}
			},
		})
		r.rest(t)
		for _, g := range r.guests {
			if r.take(g) {
				t.Fatalf("a guest for %03b sleeps although there is a place", g.suits)
			}
		}
		for _, g := range r.guests {
			g.Leave()
		}
		r.q.open = 0
		checkEmpty(t, &r.q)
	})
}

func checkEmpty(t *rapid.T, q *Queue) {
	if q.Waiting() != 0 || len(q.classes) != 0 || len(q.due) != 0 || q.trying != 0 || q.bearers != 0 ||
		q.tried.first != nil || q.fresh.first != nil || q.probe != nil {
		t.Fatalf("left over: %d waiting, %d classes, %d due, %d trying, %d bearers", q.Waiting(), len(q.classes), len(q.due), q.trying, q.bearers)
	}
}

// TestQueueOneSignalForSeveralPlaces: whoever takes a place wakes the next one,
// and one who leaves instead of trying hands that on.
func TestQueueOneSignalForSeveralPlaces(t *testing.T) {
	h := newHall(t)
	var in []*visitor
	for _, name := range []string{"a1", "b1", "c1", "d1", "e1"} {
		in = append(in, h.enter(name, name[:1], 0, 1))
	}
	h.free = 2
	h.q.Signal()
	h.settle()
	h.wantOrder("a1 b1")
	h.free = 1
	h.q.Signal()
	<-in[2].Turn()
	in[2].Placed()
	equal(t, "turns of the next one", len(in[3].Turn()), 1)
	h.leave(in[3])
	h.settle()
	h.wantOrder("e1")
	h.leave(in[2])
	h.wantEmpty()
}

// TestQueueSignalWhileTheFirstTries for another reason: it is not overtaken by
// the second.
func TestQueueSignalWhileTheFirstTries(t *testing.T) {
	h := newHall(t)
	first := h.enter("a1", "a", 0, 1)
	second := h.enter("b1", "b", 0, 1)
	third := h.enter("c1", "c", 0, 1)
	h.q.Signal()
	<-first.Turn()
	first.Placed()
	h.leave(first)
	<-second.Turn() // perhaps there is another place, but there is none
	h.free = 1
	h.q.Signal()
	equal(t, "turns of the third", len(third.Turn()), 0)
	second.Again()
	h.settle()
	h.wantOrder("b1")
	h.leave(third)
	h.wantEmpty()
}

// TestQueueNewcomerTakesWhatSuitsNobodyElse: the place that was signalled, of
// which it had the turn, is still there for one far behind.
func TestQueueNewcomerTakesWhatSuitsNobodyElse(t *testing.T) {
	var q Queue
	enter := func(tenant string, priority int) *Waiter {
		w, _ := q.Enter(tenant, priority, 1, 9, time.Time{})
		return w
	}
	inVain := func(w *Waiter) {
		t.Helper()
		equal(t, "turns", len(w.Turn()), 1)
		<-w.Turn()
		w.Again()
	}
	impatient, middle, last := enter("a", 1), enter("b", 2), enter("c", 3)
	inVain(impatient)
	inVain(middle)
	inVain(last)
	q.Signal()
	newcomer := enter("d", 0)
	impatient.Leave()
	<-newcomer.Turn()
	newcomer.Placed() // not the one that was signalled
	newcomer.Leave()
	inVain(middle)
	equal(t, "turns of the last", len(last.Turn()), 1)
	middle.Leave()
	last.Leave()
	wantEmpty(t, &q)
}

// TestQueueUnderRace: many goroutines and a few places of two kinds. All get a
// place, except those that give up, and there are never more out than exist.
func TestQueueUnderRace(t *testing.T) {
	const guests, each = 64, 40
	var q Queue
	var free [2]atomic.Int64
	free[0].Store(3)
	free[1].Store(2)
	var out, most atomic.Int64
	take := func(suits int) (kind int, ok bool) {
		for kind := range free {
			for n := free[kind].Load(); suits&(1<<kind) != 0 && n > 0; n = free[kind].Load() {
				if free[kind].CompareAndSwap(n, n-1) {
					return kind, true
				}
			}
		}
		return 0, false
	}
	use := func(kind int) {
		if n := out.Add(1); n > most.Load() {
			most.Store(n)
		}
		out.Add(-1)
		free[kind].Add(1)
		q.Signal()
	}
	var all sync.WaitGroup
	for i := range guests {
		all.Go(func() { // ends after each visits, all of which get a place or give up
			random := rand.New(rand.NewPCG(7, uint64(i)))
			for range each {
				visit(t, &q, random, i, take, use)
			}
		})
	}
	all.Wait()
	wantEmpty(t, &q)
	equal(t, "free", free[0].Load()+free[1].Load(), 5)
	if most.Load() > 5 {
		t.Errorf("%d had a place at once", most.Load())
	}
}

// visit is the life of a request: it takes a place at once where nobody waits,
// or queues; one in eight gives up after its first turn.
func visit(t *testing.T, q *Queue, random *rand.Rand, i int, take func(int) (int, bool), use func(int)) {
	suits := 1 + random.IntN(3)
	if !q.Busy() {
		if kind, ok := take(suits); ok {
			use(kind)
			return
		}
	}
	w, ok := q.Enter(fmt.Sprint(i%5), i%3, 1+i%5, 1000, time.Time{})
	if !ok {
		t.Error("the queue is full")
		return
	}
	defer w.Leave()
	for impatient := random.IntN(8) == 0; ; {
		<-w.Turn()
		if kind, ok := take(suits); ok {
			w.Placed()
			use(kind)
			return
		}
		if impatient {
			return
		}
		w.Again()
	}
}

// TestQueueForgetsTenants: while the queue is never empty, tenants that are gone
// are dropped as virtual time passes them.
func TestQueueForgetsTenants(t *testing.T) {
	h := newHall(t)
	for i := range 2000 {
		h.enter("r", "regular", 0, 1)
		h.enter("o", fmt.Sprint("once ", i), 0, 1+i%7)
		h.places(1)
		if i%10 == 9 {
			h.places(9)
		}
		if c := h.q.classes[0]; len(c.flows) > h.q.Waiting()+20 {
			t.Fatalf("%d tenants are remembered for %d waiters", len(c.flows), h.q.Waiting())
		}
	}
	for _, v := range append([]*visitor(nil), h.waiters...) {
		h.leave(v)
		h.settle()
	}
	h.wantEmpty()
}

func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprint(n, " waiting"), func(b *testing.B) {
			var q Queue
			var line []*Waiter
			for i := range n {
				w, _ := q.Enter(fmt.Sprint(i%10), 0, 1, n+1, time.Time{})
				line = append(line, w)
				<-w.Turn()
				w.Again()
			}
			b.ReportAllocs()
			for b.Loop() {
				w, _ := q.Enter("a", 0, 1, n+1, time.Time{})
				<-w.Turn()
				w.Again()
				w.Leave()
			}
			for _, w := range line {
				w.Leave()
			}
		})
	}
}
