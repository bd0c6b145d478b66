package routing

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// hall is a queue with its waiters, who take places of one kind, one after the
// other in a single goroutine.
type hall struct {
	t       *testing.T
	q       Queue
	waiters []*visitor
	free    int
	order   []string // who got a place
}

type visitor struct {
	*Waiter
	name string
}

func newHall(t *testing.T) *hall { return &hall{t: t} }

// enter lets a visitor in, who finds no place yet.
func (h *hall) enter(name, tenant string, priority, weight int) *visitor {
	h.t.Helper()
	w, ok := h.q.Enter(tenant, priority, weight, 1<<30, time.Time{})
	if !ok {
		h.t.Fatal("the queue is full")
	}
	v := &visitor{w, name}
	h.waiters = append(h.waiters, v)
	h.settle()
	return v
}

// settle lets everybody act who has the turn, until nobody has.
func (h *hall) settle() {
	for acted := true; acted; {
		acted = false
		for _, v := range slices.Clone(h.waiters) {
			select {
			case <-v.Turn():
			default:
				continue
			}
			acted = true
			if h.free == 0 {
				v.Again()
				continue
			}
			h.free--
			h.order = append(h.order, v.name)
			v.Placed()
			h.leave(v)
		}
	}
}

func (h *hall) leave(v *visitor) {
	v.Leave()
	h.waiters = slices.DeleteFunc(h.waiters, func(o *visitor) bool { return o == v })
}

// places gives n places back, one by one.
func (h *hall) places(n int) {
	for range n {
		h.free++
		h.q.Signal()
		h.settle()
	}
}

func (h *hall) wantOrder(want string) {
	h.t.Helper()
	equal(h.t, "order", strings.Join(h.order, " "), want)
	h.order = nil
}

func (h *hall) wantEmpty() { wantEmpty(h.t, &h.q) }

func wantEmpty(t testing.TB, q *Queue) {
	t.Helper()
	equal(t, "waiting", q.Waiting(), 0)
	equal(t, "busy", q.Busy(), false)
	equal(t, "classes", len(q.classes), 0)
	equal(t, "due", len(q.due), 0)
	equal(t, "rows", q.tried.first == nil && q.tried.last == nil && q.fresh.first == nil && q.fresh.last == nil, true)
	equal(t, "trying", q.trying, 0)
	equal(t, "bearers", q.bearers, 0)
	equal(t, "probe", q.probe == nil, true)
}

func TestQueueOrder(t *testing.T) {
	type arrival struct {
		name, tenant     string
		priority, weight int
	}
	tests := []struct {
		name string
		in   []arrival
		want string
	}{
		{"first come", []arrival{{"1", "a", 0, 1}, {"2", "a", 0, 1}, {"3", "a", 0, 1}}, "1 2 3"},
		{"priority first", []arrival{{"low", "a", 5, 1}, {"mid", "b", 0, 1}, {"high", "c", -1, 1}, {"mid2", "c", 0, 1}}, "high mid mid2 low"},
		{"a flood and one", []arrival{{"a1", "a", 0, 1}, {"a2", "a", 0, 1}, {"a3", "a", 0, 1}, {"b1", "b", 0, 1}}, "a1 b1 a2 a3"},
		{"two to one", []arrival{{"a1", "a", 0, 1}, {"a2", "a", 0, 1}, {"a3", "a", 0, 1},
			{"b1", "b", 0, 2}, {"b2", "b", 0, 2}, {"b3", "b", 0, 2}, {"b4", "b", 0, 2}}, "a1 b1 b2 a2 b3 b4 a3"},
		{"a tenant in two priorities", []arrival{{"a1", "a", 1, 1}, {"b1", "b", 1, 1}, {"a2", "a", 0, 1}, {"a3", "a", 1, 1}}, "a2 a1 b1 a3"},
		{"no weight is 1", []arrival{{"a1", "a", 0, 0}, {"a2", "a", 0, -7}, {"b1", "b", 0, 1}}, "a1 b1 a2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHall(t)
			for _, a := range tt.in {
				h.enter(a.name, a.tenant, a.priority, a.weight)
			}
			equal(t, "waiting", h.q.Waiting(), len(tt.in))
			h.places(len(tt.in))
			h.wantOrder(tt.want)
			h.wantEmpty()
		})
	}
}

// TestQueueShares: while both wait, a tenant of weight 3 gets three places for
// one of weight 1, in every stretch of places, not only in the end.
func TestQueueShares(t *testing.T) {
	h := newHall(t)
	weights := map[string]int{"a": 3, "b": 1}
	for i := range 40 {
		h.enter("a", "a", 0, 3)
		if i%2 == 0 {
			h.enter("b", "b", 0, 1)
		}
	}
	got := map[string]int{}
	for i := range 4000 {
		h.places(1)
		who := h.order[len(h.order)-1]
		got[who]++
		h.enter(who, who, 0, weights[who])
		if want := (i + 1) * 3 / 4; got["a"] < want-3 || got["a"] > want+3 {
			t.Fatalf("after %d places a has %d", i+1, got["a"])
		}
	}
}

func TestQueueGivesNoCreditForAbsence(t *testing.T) {
	h := newHall(t)
	for i := range 200 {
		h.enter(fmt.Sprint("a", i), "a", 0, 1)
	}
	h.places(100)
	h.order = nil
	for i := range 10 {
		h.enter(fmt.Sprint("b", i), "b", 0, 1)
	}
	h.places(6)
	h.wantOrder("b0 a100 b1 a101 b2 a102")
}

func TestQueueKeepsTheDebtOfWhoComesBack(t *testing.T) {
	h := newHall(t)
	h.enter("a1", "a", 0, 1)
	h.places(1)
	h.order = nil
	for i := range 3 {
		h.enter(fmt.Sprint("b", i), "b", 0, 1)
	}
	h.enter("a2", "a", 0, 1)
	h.places(2) // a2 has the second turn and is gone again
	h.enter("a3", "a", 0, 1)
	h.places(1)
	h.wantOrder("b0 a2 b1")
	h.places(2)
	h.wantOrder("a3 b2")
	h.wantEmpty()
}

func TestQueueBound(t *testing.T) {
	var q Queue
	for _, most := range []int{0, -1} {
		if _, ok := q.Enter("a", 0, 1, most, time.Time{}); ok {
			t.Fatalf("somebody waits where %d may", most)
		}
	}
	first, _ := q.Enter("a", 0, 1, 2, time.Time{})
	second, _ := q.Enter("b", 9, 1, 2, time.Time{})
	if _, ok := q.Enter("c", -9, 1, 2, time.Time{}); ok {
		t.Fatal("a third waits where two may")
	}
	second.Leave()
	third, ok := q.Enter("c", 0, 1, 2, time.Time{})
	if !ok {
		t.Fatal("there is room again, but not for the third")
	}
	third.Leave()
	first.Leave()
	wantEmpty(t, &q)
}

// TestQueueCancelledWaiterCostsNothing: neither its tenant's turn nor a trace.
func TestQueueCancelledWaiterCostsNothing(t *testing.T) {
	h := newHall(t)
	var gone []*visitor
	for i := range 50 {
		gone = append(gone, h.enter(fmt.Sprint("x", i), "a", 0, 1))
	}
	h.enter("a1", "a", 0, 1)
	h.enter("b1", "b", 0, 1)
	h.enter("a2", "a", 0, 1)
	for _, v := range gone {
		h.leave(v)
	}
	h.places(3)
	h.wantOrder("a1 b1 a2")
	h.wantEmpty()
}

// TestQueueTurnOfWhoLeavesIsTheNextOnes, before and after the turn is received.
func TestQueueTurnOfWhoLeavesIsTheNextOnes(t *testing.T) {
	for _, received := range []bool{false, true} {
		h := newHall(t)
		first := h.enter("a1", "a", 0, 1)
		h.enter("b1", "b", 0, 1)
		h.enter("a2", "a", 0, 1)
		h.free++
		h.q.Signal()
		equal(t, "turns", len(first.Turn()), 1)
		if received {
			<-first.Turn()
		}
		h.leave(first)
		h.settle()
		h.wantOrder("b1")
		h.places(1)
		h.wantOrder("a2")
		h.wantEmpty()
	}
}

func TestQueueNewcomersDoNotOvertake(t *testing.T) {
	h := newHall(t)
	equal(t, "busy", h.q.Busy(), false)
	first := h.enter("a1", "a", 0, 1)
	equal(t, "busy", h.q.Busy(), true)
	h.free++
	h.q.Signal() // the turn is on its way to a1
	newcomer, _ := h.q.Enter("b", 0, 1, 9, time.Time{})
	equal(t, "turns of a1", len(first.Turn()), 1)
	equal(t, "turns of the newcomer", len(newcomer.Turn()), 0)
	h.settle()
	h.wantOrder("a1")
	equal(t, "turns of the newcomer, now that nobody tries", len(newcomer.Turn()), 1)
	newcomer.Leave()
	h.wantEmpty()
}

// TestQueueAgainKeepsThePosition where others go first because the place suits
// only them: of its own tenant it stays the first; a place of its tenant is
// the tenant's turn, whoever took it.
func TestQueueAgainKeepsThePosition(t *testing.T) {
	tests := []struct {
		name        string
		others      []string // after a1; the tenant is the first letter
		first, rest string
	}{
		{"of another tenant", []string{"b1", "a2", "b2"}, "b1", "a1 a2 b2"},
		{"of its own", []string{"a2", "a3", "b1", "b2"}, "a2", "b1 a1 b2 a3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHall(t)
			picky := h.enter("a1", "a", 0, 1)
			for _, name := range tt.others {
				h.enter(name, name[:1], 0, 1)
			}
			h.waiters = h.waiters[1:] // settle leaves a1's turns alone
			h.free++
			h.q.Signal()
			<-picky.Turn()
			picky.Again()
			h.settle()
			h.wantOrder(tt.first)
			h.waiters = append(h.waiters, picky)
			h.settle()
			h.places(len(tt.others))
			h.wantOrder(tt.rest)
			h.wantEmpty()
		})
	}
}

// TestQueueSignalDuringATry: a place that comes between a failed try and Again
// is tried for again.
func TestQueueSignalDuringATry(t *testing.T) {
	h := newHall(t)
	v := h.enter("a1", "a", 0, 1)
	for range 3 {
		h.q.Signal()
		<-v.Turn() // and tries in vain
		h.q.Signal()
		v.Again()
		equal(t, "turns", len(v.Turn()), 1)
		<-v.Turn()
		v.Again()
		equal(t, "turns after a try without a signal", len(v.Turn()), 0)
	}
	h.q.Signal()
	v.Again() // without having received the turn
	equal(t, "turns", len(v.Turn()), 1)
	h.q.Signal()
	equal(t, "turns", len(v.Turn()), 1)
	h.leave(v)
	h.wantEmpty()
}

func TestQueueMisuse(t *testing.T) {
	var q Queue
	enter := func() *Waiter {
		w, _ := q.Enter("a", 0, 1, 9, time.Time{})
		return w
	}
	left, placed := enter(), enter()
	left.Leave()
	placed.Placed()
	for name, f := range map[string]func(){
		"Leave twice":        left.Leave,
		"Placed after Leave": left.Placed,
		"Again after Leave":  left.Again,
		"Placed twice":       placed.Placed,
		"Again after Placed": placed.Again,
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.HasPrefix(said, "BUG: ") {
					t.Errorf("%s: %q", name, said)
				}
			}()
			f()
		}()
	}
	placed.Leave()
	wantEmpty(t, &q)
}
