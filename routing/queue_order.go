package routing

// The order of a Queue: start-time fair queueing. Of one priority, each tenant
// is a flow with a tag in virtual time, that of its next turn; the smallest is
// first. A place moves the tag on by turnCost/weight, so that twice the weight
// comes by twice as often. Virtual time is the largest tag that got a place; a
// flow that joins begins there, with no credit for the time it was away.

// turnCost is what a place costs a tenant of weight 1. Whole numbers, so that
// a charge can be taken back exactly; the clock lasts for 2^33 places without
// the queue being empty once.
const turnCost = 1 << 30

// class is one priority.
type class struct {
	priority int
	now      int64 // virtual time
	waiting  int
	flows    map[string]*flow
	idle     heap[*flow] // those without waiters that are ahead of now
}

// flow is a tenant in one class.
type flow struct {
	tenant  string
	class   *class
	tag     int64
	waiting int
	line    heap[*Waiter] // those that have a turn to come
	at      int           // in Queue.due or class.idle, -1 = in neither
}

func (f *flow) charge(cost int64) { f.tag += cost }

// serve notes that a waiter with the tag got a place, and drops the tenants
// that are thereby no better and no worse off than strangers.
func (c *class) serve(tag int64) {
	c.now = max(c.now, tag)
	for len(c.idle) > 0 && c.idle[0].tag <= c.now {
		f := c.idle[0]
		c.idle.remove(0)
		delete(c.flows, f.tenant)
	}
}

// flowOf finds or begins the flow for one more waiter.
func (q *Queue) flowOf(priority int, tenant string) *flow {
	c := q.classes[priority]
	if c == nil {
		if q.classes == nil {
			q.classes = map[int]*class{}
		}
		c = &class{priority: priority, flows: map[string]*flow{}}
		q.classes[priority] = c
	}
	f := c.flows[tenant]
	switch {
	case f == nil:
		f = &flow{tenant: tenant, class: c, at: -1}
		c.flows[tenant] = f
	case f.waiting == 0:
		c.idle.remove(f.at)
	}
	return f
}

// forget drops what nobody will miss: an idle flow that is not ahead of virtual
// time, a class without waiters. Else an idle flow is kept until time catches
// up with it, so that leaving and coming back does not wipe out its debt.
func (q *Queue) forget(f *flow) {
	c := f.class
	switch {
	case c.waiting == 0:
		delete(q.classes, c.priority)
	case f.waiting > 0:
	case f.tag <= c.now:
		delete(c.flows, f.tenant)
	default:
		c.idle.push(f)
	}
}

// line puts w where its turn will come.
func (q *Queue) line(w *Waiter) {
	w.state = stateDue
	w.flow.line.push(w)
	q.rank(w.flow)
}

// unline takes w out of wherever it stands.
func (q *Queue) unline(w *Waiter) {
	if w.row != nil {
		w.row.remove(w)
	}
	if w.at >= 0 {
		w.flow.line.remove(w.at)
	}
}

// rank restores the flow's position after a change of its tag or line.
func (q *Queue) rank(f *flow) {
	switch {
	case len(f.line) > 0 && f.at >= 0:
		q.due.fix(f.at)
	case len(f.line) > 0:
		// A flow whose waiters were passed over, because no place suited
		// them, is first all the same, but must not have saved up turns.
		f.tag = max(f.tag, f.class.now)
		q.due.push(f)
	case f.at >= 0:
		q.due.remove(f.at)
	}
}

// before is the order in Queue.due and, where lines are empty and priorities
// the same, in class.idle.
func (f *flow) before(o *flow) bool {
	if f.class.priority != o.class.priority {
		return f.class.priority < o.class.priority
	}
	if f.tag != o.tag || len(f.line) == 0 || len(o.line) == 0 {
		return f.tag < o.tag
	}
	return f.line[0].number < o.line[0].number
}

func (f *flow) index() *int { return &f.at }

func (w *Waiter) before(o *Waiter) bool { return w.number < o.number }

func (w *Waiter) index() *int { return &w.at }

// ahead reports whether w, which has the turn, comes before first, which is
// first in its line.
func (w *Waiter) ahead(first *Waiter) bool {
	f, o := w.flow, first.flow
	switch {
	case f == o:
		return w.before(first)
	case f.class != o.class:
		return f.class.priority < o.class.priority
	case w.tag != o.tag:
		return w.tag < o.tag
	}
	return w.before(first)
}

// row is a list of waiters; one is in one row at most.
type row struct{ first, last *Waiter }

func (r *row) push(w *Waiter) {
	w.row, w.prev = r, r.last
	if r.last == nil {
		r.first = w
	} else {
		r.last.next = w
	}
	r.last = w
}

func (r *row) remove(w *Waiter) {
	if w.prev == nil {
		r.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		r.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.row, w.prev, w.next = nil, nil, nil
}

// heap has the first of its items at 0. Items know where they are, so that one
// can be taken from the middle; container/heap would need its five methods for
// every type of item.
type heap[T ranked[T]] []T

// ranked is an item of a heap.
type ranked[T any] interface {
	before(T) bool
	index() *int // -1 where it is in no heap
}

var (
	_ ranked[*flow]   = (*flow)(nil)
	_ ranked[*Waiter] = (*Waiter)(nil)
)

func (h *heap[T]) push(x T) {
	*h = append(*h, x)
	*x.index() = len(*h) - 1
	h.fix(len(*h) - 1)
}

func (h *heap[T]) remove(i int) {
	items := *h
	last := len(items) - 1
	*items[i].index() = -1
	if i < last {
		items[i] = items[last]
		*items[i].index() = i
	}
	var none T
	items[last] = none // for the collector
	*h = items[:last]
	if i < last {
		h.fix(i)
	}
}

// fix moves item i to where it belongs.
func (h heap[T]) fix(i int) {
	for i > 0 && h[i].before(h[(i-1)/2]) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].before(h[first]) {
				first = child
			}
		}
		if first == i {
			return
		}
		h.swap(i, first)
		i = first
	}
}

func (h heap[T]) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].index(), *h[j].index() = i, j
}
