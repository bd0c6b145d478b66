package fallback

import (
	"sync"
	"time"
)

const (
	budgetWindow = 10 * time.Second
	budgetSlot   = 100 * time.Millisecond
	budgetSlots  = int(budgetWindow / budgetSlot)
	budgetFloor  = 10 // a quiet model may still retry
)

// Budget bounds the attempts after the first of one model's requests, so that
// retries never multiply an overload. Any goroutine may call its methods; the
// zero value is ready.
//
// It counts in slots of 100 ms, so what it knows is between 9.9 s and 10 s old.
type Budget struct {
	mu       sync.Mutex // guards everything below
	start    time.Time
	newest   int64 // the number of the newest slot, counted from start
	requests int   // the sums of slots
	taken    int
	slots    [budgetSlots]struct{ requests, taken int32 }
}

// Request counts a client's request.
func (b *Budget) Request() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slots[b.roll()].requests++
	b.requests++
}

// Take takes one further attempt out of the budget; false when it is spent:
// attempts after the first over requests, both in the last 10 s, with a floor of 10.
// What is refused is not counted; what is taken is not given back.
func (b *Budget) Take(ratio float64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	slot := b.roll()
	if float64(b.taken+1) > max(budgetFloor, ratio*float64(b.requests)) {
		return false
	}
	b.slots[slot].taken++
	b.taken++
	return true
}

// roll forgets what is too old and gives the index of the present slot.
func (b *Budget) roll() int {
	now := time.Now()
	if b.start.IsZero() {
		b.start = now
	}
	present := int64(now.Sub(b.start) / budgetSlot)
	for n := min(present-b.newest, int64(budgetSlots)); n > 0; n-- {
		old := &b.slots[(present-n+1)%int64(budgetSlots)]
		b.requests -= int(old.requests)
		b.taken -= int(old.taken)
		old.requests, old.taken = 0, 0
	}
	b.newest = present
	return int(present % int64(budgetSlots))
}
