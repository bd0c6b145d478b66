package trace

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// strict says that misuse panics instead of being counted.
var strict atomic.Bool

// SetStrict makes every misuse of a Timeline panic with "BUG:" (true, for tests), or be counted by Book.Misuse (false).
func SetStrict(on bool) { strict.Store(on) }

// Timeline is one running request as its owner writes it. Only the goroutine that owns the exchange may call the
// methods that change it; ID, LastToken, Deployment, Snapshot, Abort and AbortSent are for any goroutine.
type Timeline struct {
	book   *Book
	base   time.Time
	serial uint64

	id         atomic.Pointer[string]
	deployment atomic.Pointer[string]
	hook       atomic.Pointer[func(AbortReason)]
	done       atomic.Pointer[Record]
	gaps       atomic.Pointer[gaps] // set by the owner without mu, cleared under mu
	marks      [numMarks]atomic.Int64
	last       atomic.Int64  // newest content event, offset in ns + 1
	phase      atomic.Uint32 // place in Phases

	state  Mark  // the owner's
	latest int64 // the owner's: no later stamp lies before it

	mu   sync.Mutex
	rec  *Record // guarded by mu; immutable once done is set
	slot int     // place among the running, guarded by book.mu
}

// ID is our id of the request.
func (t *Timeline) ID() string { return *t.id.Load() }

// SetID replaces our id by the client's, where the client may choose it.
func (t *Timeline) SetID(id string) { t.id.Store(&id) }

// Opened is when the timeline began.
func (t *Timeline) Opened() time.Time { return t.base }

// Mark stamps m with the present instant. The first stamp of a mark wins; Send, Headers, FirstByte and FirstToken also
// go to the current attempt, each once. A step that the state machine forbids is a misuse and changes nothing.
func (t *Timeline) Mark(m Mark) { t.stamp(m, time.Since(t.base)) }

// MarkAt is Mark for an instant that was read before. An instant before the previous mark counts as that mark's.
func (t *Timeline) MarkAt(m Mark, at time.Time) { t.stamp(m, at.Sub(t.base)) }

func (t *Timeline) stamp(m Mark, d time.Duration) {
	if !t.step(m) {
		return
	}
	v := max(int64(d)+1, t.latest, t.last.Load(), 1)
	t.latest = v
	if m == LastToken {
		// Tokens keeps the stamp of the last content event; a later mark of it would be a wrong one.
		t.last.CompareAndSwap(0, v)
		return
	}
	if m == FirstToken {
		t.last.CompareAndSwap(0, v)
	}
	if t.marks[m].Load() == 0 {
		t.marks[m].Store(v)
	}
	switch m {
	case Send, Headers, FirstByte, FirstToken:
		t.stampAttempt(m, time.Duration(v-1))
	}
}

// step moves the state machine. It returns false for a repeat that has nothing to stamp, and for a misuse.
func (t *Timeline) step(m Mark) bool {
	if m == t.state {
		return false
	}
	if m >= numMarks || steps[t.state]&(1<<m) == 0 {
		t.book.misuse("mark " + m.String() + " after " + t.state.String())
		return false
	}
	if m == Commit {
		return t.marks[Commit].Load() == 0
	}
	t.state = m
	if p, ok := phaseAfter[m]; ok {
		t.SetPhase(p)
	}
	return true
}

func (t *Timeline) stampAttempt(m Mark, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.current()
	if a == nil {
		return
	}
	d -= a.Start
	switch m {
	case Send:
		setOnce(&a.Sent, d)
	case Headers:
		setOnce(&a.Headers, d)
	case FirstByte:
		setOnce(&a.FirstByte, d)
	case FirstToken:
		setOnce(&a.FirstToken, d)
	}
}

func setOnce(p *time.Duration, d time.Duration) {
	if *p < 0 {
		*p = max(d, 0)
	}
}

// Tokens says that n content events arrived in one read, now. The first call marks FirstToken; every further event
// adds a gap: the first of a read the real one, the others of the same read zero.
func (t *Timeline) Tokens(n int) { t.tokens(n, int64(time.Since(t.base))+1) }

// TokensAt is Tokens for a read whose instant is known.
func (t *Timeline) TokensAt(n int, at time.Time) { t.tokens(n, int64(at.Sub(t.base))+1) }

func (t *Timeline) tokens(n int, now int64) {
	if n <= 0 {
		return
	}
	last := t.last.Load()
	if last == 0 {
		t.stamp(FirstToken, time.Duration(now-1))
		if n == 1 {
			return
		}
		if last = t.last.Load(); last == 0 {
			return // refused as a misuse
		}
		now, n = last, n-1
	}
	if t.state != LastToken && !t.step(LastToken) {
		return
	}
	now = max(now, last)
	g := t.gaps.Load()
	if g == nil {
		g = gapsPool.Get().(*gaps)
		t.gaps.Store(g)
	}
	g.add(time.Duration(last-t.marks[Enqueue].Load()), time.Duration(now-last))
	if n > 1 {
		g.counts[0].Add(uint32(n - 1))
	}
	t.last.Store(now)
}

// LastToken is the instant of the newest content event, zero before the first.
func (t *Timeline) LastToken() time.Time {
	v := t.last.Load()
	if v == 0 {
		return time.Time{}
	}
	return t.base.Add(time.Duration(v - 1))
}

// SetPhase says where the request stands, where the marks do not say it: waiting_headers after the connection is made,
// queue during a backoff.
func (t *Timeline) SetPhase(p Phase) {
	i := slices.Index(Phases, p)
	if i < 0 {
		t.book.misuse("phase " + string(p))
		return
	}
	t.phase.Store(uint32(i))
}

// Phase is where the request stands.
func (t *Timeline) Phase() Phase { return Phases[t.phase.Load()] }

// Edit lets the owner fill in the record. f must not keep it. After Finish it is a misuse and f is not called.
func (t *Timeline) Edit(f func(*Record)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done.Load() != nil {
		t.book.misuse("edit after finish")
		return
	}
	f(t.rec)
}

// OnAbort sets what Abort calls: from another goroutine, possibly more than once and just after the finish.
func (t *Timeline) OnAbort(f func(AbortReason)) { t.hook.Store(&f) }

// Abort calls the abort hook. It says whether there was one: not before OnAbort, not after the finish, and not of a
// nil Timeline.
func (t *Timeline) Abort(reason AbortReason) bool {
	if t == nil {
		return false
	}
	f := t.hook.Load()
	if f == nil {
		return false
	}
	(*f)(reason)
	return true
}

// Snapshot returns a copy of the request as it is now, or the final record.
func (t *Timeline) Snapshot() *Record {
	if r := t.done.Load(); r != nil {
		return r
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.done.Load(); r != nil {
		return r
	}
	r := new(Record)
	*r = *t.rec
	r.UpstreamIDs = slices.Clone(r.UpstreamIDs)
	r.Tags = slices.Clone(r.Tags)
	r.Attempts = slices.Clone(r.Attempts)
	r.Route.Considered = slices.Clone(r.Route.Considered)
	r.Notes = slices.Clone(r.Notes)
	r.Findings = slices.Clone(r.Findings)
	t.fill(r)
	r.Taken = t.base.Add(time.Since(t.base))
	return r
}

// fill copies what the timeline keeps outside the record. The last token is read after the gaps, so that every
// gap that is seen lies before it.
func (t *Timeline) fill(r *Record) {
	r.ID, r.Phase = t.ID(), t.Phase()
	for m := range t.marks {
		r.marks[m] = t.marks[m].Load()
	}
	r.hist, r.Gaps = t.gaps.Load().freeze()
	r.marks[LastToken] = t.last.Load()
	if r.hist != nil {
		r.hist.sum = time.Duration(r.marks[LastToken] - r.marks[FirstToken])
	}
	r.TBT = r.hist.summary()
}

// Finish ends the request: exactly once, from its owner. It stamps Finish, closes an attempt left open, moves the
// record into the ring and runs the sinks. A second call is a misuse and returns the first one's record.
func (t *Timeline) Finish(outcome Outcome, e *ErrorInfo) *Record {
	t.mu.Lock()
	if r := t.done.Load(); r != nil {
		t.mu.Unlock()
		t.book.misuse("finish twice id=" + r.ID)
		return r
	}
	t.stamp(Finish, time.Since(t.base))
	r := t.rec
	r.Outcome, r.Error = outcome, e
	if outcome == OK || outcome == ClientError {
		t.SetPhase(PhaseFinished)
	}
	t.closeAttempt(outcome)
	t.fill(r)
	t.gaps.Swap(nil).release()
	t.hook.Store(nil)
	t.done.Store(r)
	t.mu.Unlock()
	t.book.finish(t, r)
	return r
}
