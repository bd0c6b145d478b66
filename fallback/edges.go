package fallback

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Edge is one way that requests took from a model to another, as GET /api/v1/state shows it.
type Edge struct {
	From     string    `json:"from"`
	To       string    `json:"to"`
	Reason   Kind      `json:"reason"`
	Count    int64     `json:"count"`
	LastTime time.Time `json:"last_time"`
}

// Edges counts fallbacks. Any goroutine may call its methods; the zero value
// is ready. Names come from the configuration, so it does not grow for ever.
type Edges struct {
	mu   sync.Mutex // guards seen
	seen map[edgeKey]*edgeCount
}

type edgeKey struct {
	from, to string
	reason   Kind
}

type edgeCount struct {
	answered, failed int64
	last             time.Time
}

// Count counts one fallback by its result.
func (e *Edges) Count(from, to string, reason Kind, answered bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := edgeKey{from, to, reason}
	c := e.seen[k]
	if c == nil {
		if e.seen == nil {
			e.seen = map[edgeKey]*edgeCount{}
		}
		c = &edgeCount{}
		e.seen[k] = c
	}
	if answered {
		c.answered++
	} else {
		c.failed++
	}
	c.last = time.Now().UTC()
}

// All are the edges, sorted by from, to and reason.
func (e *Edges) All() []Edge {
	all := []Edge{}
	e.each(func(k edgeKey, c edgeCount) {
		all = append(all, Edge{From: k.from, To: k.to, Reason: k.reason, Count: c.answered + c.failed, LastTime: c.last})
	})
	return all
}

// Each calls f for each edge and result that has been counted, in the order of
// All, the answered ones first. f is called without a lock.
func (e *Edges) Each(f func(from, to string, reason Kind, answered bool, n int64)) {
	e.each(func(k edgeKey, c edgeCount) {
		if c.answered > 0 {
			f(k.from, k.to, k.reason, true, c.answered)
		}
		if c.failed > 0 {
			f(k.from, k.to, k.reason, false, c.failed)
		}
	})
}

func (e *Edges) each(f func(edgeKey, edgeCount)) {
	type row struct {
		edgeKey
		edgeCount
	}
	e.mu.Lock()
	rows := make([]row, 0, len(e.seen))
	for k, c := range e.seen {
		rows = append(rows, row{k, *c})
	}
	e.mu.Unlock()
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.reason, b.reason))
	})
	for _, r := range rows {
		f(r.edgeKey, r.edgeCount)
	}
}
