package proxy

import (
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// bodyBudget bounds the request bodies in memory at once (limits.body_budget).
//
// Bytes are reserved when a head has been accepted and before its body is
// read. From there either the exchange claims the reservation and gives it
// back when the body is released, or the connection dies while the body is
// being read; the server does not tell of every such death, so an unclaimed
// reservation ends by itself once the body's read limit has passed.
type bodyBudget struct {
	limit int64

	mu      sync.Mutex
	used    int64                                   // guarded by mu
	pending map[*fasthttp.RequestHeader]reservation // guarded by mu; not yet claimed
	swept   time.Time                               // guarded by mu; when the expired ones were last looked for
}

type reservation struct {
	bytes   int64
	expires time.Time
	entry   entry // what the head decided: the server empties it when the body breaks
}

func newBodyBudget(limit int64) *bodyBudget {
	return &bodyBudget{limit: limit, pending: map[*fasthttp.RequestHeader]reservation{}}
}

// reserve takes n bytes for the body that follows h; false when there is no room.
// The header's address names the reservation: it is the same in the handler.
func (b *bodyBudget) reserve(h *fasthttp.RequestHeader, e entry, n int64, readLimit time.Duration) bool {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(h) // of an earlier request whose connection died
	if b.used+n > b.limit || now.Sub(b.swept) > sweepEvery {
		b.expire(now)
	}
	if n > 0 && b.used+n > b.limit {
		return false
	}
	b.used += n
	b.pending[h] = reservation{bytes: n, expires: now.Add(readLimit), entry: e}
	return true
}

// claim hands the reservation of h to the caller, who must give actual bytes
// back by release, and what the head decided. What was reserved above the
// actual size is given back at once. ok is false where nothing was reserved, or
// the reservation expired while the body was still coming; the actual bytes are
// counted all the same.
func (b *bodyBudget) claim(h *fasthttp.RequestHeader, actual int64) (e entry, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, ok := b.pending[h]
	if ok {
		delete(b.pending, h)
	}
	b.used += actual - r.bytes
	return r.entry, ok
}

// held says whether a reservation of h is pending, and what its head decided.
func (b *bodyBudget) held(h *fasthttp.RequestHeader) (e entry, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, ok := b.pending[h]
	return r.entry, ok
}

// forget gives back the reservation of a body that will not be read.
func (b *bodyBudget) forget(h *fasthttp.RequestHeader) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(h)
}

func (b *bodyBudget) release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.used < 0 {
		panic("BUG: more body bytes released than reserved")
	}
}

func (b *bodyBudget) drop(h *fasthttp.RequestHeader) {
	if r, ok := b.pending[h]; ok {
		delete(b.pending, h)
		b.used -= r.bytes
	}
}

// sweepEvery: what connections that died unnoticed have left is not kept for good.
const sweepEvery = time.Minute

func (b *bodyBudget) expire(now time.Time) {
	b.swept = now
	for h, r := range b.pending {
		if now.After(r.expires) {
			b.drop(h)
		}
	}
}

func (b *bodyBudget) inUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
