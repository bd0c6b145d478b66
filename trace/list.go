package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sort is the order of a listing.
type Sort string

// The orders. The empty one is Newest.
const (
	Newest      Sort = "newest"
	SlowestTTFT Sort = "slowest_ttft"
	SlowestAll  Sort = "slowest_total"
	Costliest   Sort = "costliest"
)

// The bounds of a page.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// Query selects records. Empty fields select everything.
type Query struct {
	Model, Tenant string
	Deployment    string // of any attempt
	Outcome       Outcome
	Tag, Session  string
	Since, Until  time.Time // of the enqueue, or the opening where there is none: since <= t < until
	MinTTFT       time.Duration
	Sort          Sort
	Cursor        string // the next of the page before
	Limit         int    // 0 is DefaultLimit; at most MaxLimit
}

// Check returns what is wrong with the query's sort, cursor or limit, in words for the one who asked.
func (q Query) Check() error {
	switch q.Sort {
	case "", Newest, SlowestTTFT, SlowestAll, Costliest:
	default:
		return fmt.Errorf("cannot sort by sort=%s: allowed are newest, slowest_ttft, slowest_total, costliest", q.Sort)
	}
	if q.Limit < 0 || q.Limit > MaxLimit {
		return fmt.Errorf("cannot return limit=%d: allowed are 1 to %d", q.Limit, MaxLimit)
	}
	if _, err := parseCursor(q.Cursor); err != nil {
		return fmt.Errorf("cannot read cursor=%q: %w", q.Cursor, err)
	}
	return nil
}

// Match says whether the record is selected, whatever the page.
func (q *Query) Match(r *Record) bool {
	if q.Model != "" && r.Model != q.Model || q.Tenant != "" && r.Tenant != q.Tenant ||
		q.Outcome != "" && r.Outcome != q.Outcome || q.Session != "" && r.Client.Session != q.Session {
		return false
	}
	if q.Tag != "" && !slices.Contains(r.Tags, q.Tag) {
		return false
	}
	if q.Deployment != "" && !slices.ContainsFunc(r.Attempts, func(a Attempt) bool { return a.Deployment == q.Deployment }) {
		return false
	}
	if q.MinTTFT > 0 {
		if d, ok := r.TTFT(); !ok || d < q.MinTTFT {
			return false
		}
	}
	began := r.At(Enqueue)
	if began.IsZero() {
		began = r.Opened
	}
	return (q.Since.IsZero() || !began.Before(q.Since)) && (q.Until.IsZero() || began.Before(q.Until))
}

// List returns one page of the selected records, running and finished, and the cursor of the next page, empty at the
// end. Newest lists the running ones first (latest opened first), then the finished ones (latest finished first). The
// other orders put records without the value last; a running one counts as long as it has lasted. A query that
// Check refuses is read as if the refused part were absent.
func (b *Book) List(q Query) (page []*Record, next string) {
	limit := q.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	limit = min(limit, MaxLimit)
	from, err := parseCursor(q.Cursor)
	if err != nil {
		from = place{}
	}
	b.mu.Lock()
	running := slices.Clone(b.running)
	finished, number := b.finished.newest()
	b.mu.Unlock()

	switch q.Sort {
	case SlowestTTFT, SlowestAll, Costliest:
		return listBy(q, running, finished, from, limit)
	}
	return listNewest(q, running, finished, number, from, limit)
}

// place is where a page begins: behind the entry it names. kind 'r' is a running one by its serial, 'f' a finished
// one by its number in the ring, 'v' a value with the serial that breaks ties. The zero place is the beginning.
type place struct {
	kind  byte
	value int64
	n     uint64
}

func (p place) String() string {
	return string(p.kind) + strconv.FormatInt(p.value, 36) + "." + strconv.FormatUint(p.n, 36)
}

func parseCursor(s string) (p place, err error) {
	if s == "" {
		return place{}, nil
	}
	value, n, ok := strings.Cut(s[1:], ".")
	if !ok || !strings.Contains("rfv", s[:1]) {
		return place{}, fmt.Errorf("not one of ours")
	}
	p.kind = s[0]
	if p.value, err = strconv.ParseInt(value, 36, 64); err == nil {
		p.n, err = strconv.ParseUint(n, 36, 64)
	}
	if err != nil {
		return place{}, fmt.Errorf("not one of ours")
	}
	return p, nil
}

func listNewest(q Query, running []*Timeline, finished []*Record, number uint64, from place, limit int) (page []*Record, next string) {
	var at place
	if from.kind != 'f' {
		slices.SortFunc(running, func(a, b *Timeline) int { return cmp.Compare(b.serial, a.serial) })
		for _, t := range running {
			if from.kind == 'r' && t.serial >= from.n || !t.matches(&q) {
				continue
			}
			r := t.Snapshot()
			if !q.Match(r) { // it has moved on meanwhile
				continue
			}
			if len(page) == limit {
				return page, at.String()
			}
			page = append(page, r)
			at = place{kind: 'r', n: t.serial}
		}
	}
	for i, r := range finished {
		n := number - uint64(i)
		if from.kind == 'f' && n >= from.n || !q.Match(r) {
			continue
		}
		if len(page) == limit {
			return page, at.String()
		}
		page = append(page, r)
		at = place{kind: 'f', n: n}
	}
	return page, ""
}

func (t *Timeline) matches(q *Query) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done.Load() == nil { // the marks that the query looks at live outside the record while it runs
		t.rec.marks[Enqueue] = t.marks[Enqueue].Load()
		t.rec.marks[FirstToken] = t.marks[FirstToken].Load()
	}
	return q.Match(t.rec)
}

type ranked struct {
	value int64
	n     uint64
	rec   *Record
	live  *Timeline
}

func listBy(q Query, running []*Timeline, finished []*Record, from place, limit int) (page []*Record, next string) {
	var all []ranked
	add := func(x ranked) {
		if from.kind == 'v' && (x.value > from.value || x.value == from.value && x.n >= from.n) {
			return
		}
		all = append(all, x)
	}
	for _, r := range finished {
		if q.Match(r) {
			add(ranked{value: rank(r, q.Sort), n: r.serial, rec: r})
		}
	}
	for _, t := range running {
		if t.matches(&q) {
			add(ranked{value: t.rank(q.Sort), n: t.serial, live: t})
		}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(b.n, a.n))
	})
	for i := range min(limit, len(all)) {
		r := all[i].rec
		if r == nil {
			r = all[i].live.Snapshot()
		}
		page = append(page, r)
	}
	if len(all) > limit {
		last := all[limit-1]
		next = place{kind: 'v', value: last.value, n: last.n}.String()
	}
	return page, next
}

// rank is the value that a record is ordered by; -1 when it has none.
func rank(r *Record, by Sort) int64 {
	switch by {
	case SlowestTTFT:
		if d, ok := r.TTFT(); ok {
			return int64(d)
		}
	case SlowestAll:
		if d, ok := r.Duration(); ok {
			return int64(d)
		}
	case Costliest:
		if r.Cost >= 0 {
			return int64(r.Cost * 1e9)
		}
	}
	return -1
}

func (t *Timeline) rank(by Sort) int64 {
	if by == SlowestAll {
		return max(int64(time.Since(t.base))+1-t.marks[Enqueue].Load(), 0)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return rank(t.rec, by)
}
