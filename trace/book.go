// Package trace answers what happened to a request, and when.
//
// It owns the timelines of the process: the running ones, and the records of the newest finished ones in a ring. A
// Timeline is stamped while the request runs, by marks that form a state machine kept as data (next in mark.go); at
// its finish it becomes an immutable Record, the one description that stores, metrics, log, page and doctor share.
//
// The goroutine that owns an exchange writes its Timeline. Any goroutine may read: Snapshot, ID, LastToken and every
// method of Book are safe to call at any time. Abort and AbortSent alone act from elsewhere.
//
// It decides nothing, waits for nothing and keeps no prompt or answer text. Sinks run on the finishing goroutine and
// must not block.
package trace

import (
	"cmp"
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
)

// Book holds all timelines of a process.
type Book struct {
	sinks    []func(*Record)
	misused  atomic.Int64
	mu       sync.Mutex
	running  []*Timeline // guarded by mu, in no order
	finished ring        // guarded by mu
	opened   uint64      // guarded by mu
}

// NewBook makes a book whose ring holds the newest finished records, memory of them (at least one). Every sink is
// called once for each finished record, on the finishing goroutine, in order; a sink must not block.
func NewBook(memory int, sinks ...func(*Record)) *Book {
	return &Book{sinks: sinks, finished: newRing(max(memory, 1))}
}

// Open begins a timeline at the given instant, with a new id, among the running. Each must come to its Finish.
func (b *Book) Open(at time.Time) *Timeline {
	t := &Timeline{book: b, base: at, state: opened, rec: NewRecord(at)}
	t.SetID(newID(at))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened++
	t.serial = b.opened
	t.rec.serial = b.opened
	t.slot = len(b.running)
	b.running = append(b.running, t)
	return t
}

// Add puts a record that did not run here into the ring, without calling the sinks: for tests and imports.
func (b *Book) Add(r *Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened++
	r.serial = b.opened
	b.finished.put(r)
}

func (b *Book) finish(t *Timeline, r *Record) {
	b.mu.Lock()
	last := b.running[len(b.running)-1]
	b.running[t.slot] = last
	last.slot = t.slot
	b.running[len(b.running)-1] = nil
	b.running = b.running[:len(b.running)-1]
	b.finished.put(r)
	b.mu.Unlock()
	for _, sink := range b.sinks {
		sink(r)
	}
}

// Running is the number of requests that have not finished.
func (b *Book) Running() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.running)
}

// EachRunning calls f for every request that runs at the moment of the call; some may finish meanwhile.
func (b *Book) EachRunning(f func(*Timeline)) {
	for _, t := range b.live() {
		f(t)
	}
}

func (b *Book) live() []*Timeline {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.running)
}

// Get returns the records with that id: ours, the client's, or one of the upstream ids. There are several when a client
// used its id more than once: running ones come first, and among them, as among the finished ones, the newest.
func (b *Book) Get(id string) []*Record {
	if id == "" {
		return nil
	}
	b.mu.Lock()
	running := slices.Clone(b.running)
	finished, _ := b.finished.newest()
	b.mu.Unlock()
	var out, found []*Record
	for _, r := range finished {
		if r.goesBy(id) {
			found = append(found, r)
		}
	}
	for _, t := range running {
		if t.goesBy(id) {
			if r := t.Snapshot(); r.Running() {
				out = append(out, r)
			} else if !slices.Contains(found, r) {
				found = append(found, r)
			}
		}
	}
	slices.SortFunc(out, func(a, b *Record) int { return cmp.Compare(b.serial, a.serial) })
	return append(out, found...)
}

func (t *Timeline) goesBy(id string) bool {
	if t.ID() == id {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rec.goesBy(id)
}

// goesBy says whether id is one of the record's names.
func (r *Record) goesBy(id string) bool {
	return r.ID == id || r.ClientID == id || slices.Contains(r.UpstreamIDs, id)
}

// Abort aborts the request that r is a snapshot of, and no other one with the same id, which clients may choose. It
// says whether that request still ran and could be aborted.
func (b *Book) Abort(r *Record, reason AbortReason) bool {
	return b.find(r.serial).Abort(reason)
}

// find is the running request with that serial number; nil when there is none.
func (b *Book) find(serial uint64) *Timeline {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.running {
		if t.serial == serial {
			return t
		}
	}
	return nil
}

// Misuse is how often a Timeline was used against its rules: a forbidden step, a second finish. Always 0 unless we
// have a bug.
func (b *Book) Misuse() int64 { return b.misused.Load() }

func (b *Book) misuse(what string) {
	if strict.Load() {
		panic("BUG: timeline: " + what)
	}
	b.misused.Add(1)
}

var entropy = &ulid.LockedMonotonicReader{MonotonicReader: ulid.Monotonic(rand.Reader, 0)}

// NewID returns a new request id: a ULID of 26 characters, sortable by time, rising within a millisecond.
func NewID() string { return newID(time.Now()) }

func newID(at time.Time) string {
	id, err := ulid.New(ulid.Timestamp(at), entropy)
	if err != nil { // the random part of this millisecond is used up, or the clock stands outside its range
		id = ulid.ULID{}
		_ = id.SetTime(ulid.Timestamp(at) & ulid.MaxTime())
		var tail [10]byte
		_, _ = rand.Read(tail[:])
		_ = id.SetEntropy(tail[:])
	}
	return id.String()
}
