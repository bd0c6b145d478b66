package trace

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// stripLen is how many of the longest gaps a stream keeps with their place.
const stripLen = 64

// Units of the strip: a gap and its place fit into eight bytes. Gaps saturate after 71 minutes, places after 11 hours.
const (
	gapUnit    = time.Microsecond
	offsetUnit = 10 * time.Microsecond
)

// Gap is one of the longest silences between two content events of a stream.
type Gap struct{ offset, length uint32 }

// NewGap makes a Gap: offset is when it began, counted from the record's enqueue.
func NewGap(offset, length time.Duration) Gap {
	return Gap{offset: units(offset, offsetUnit), length: units(length, gapUnit)}
}

// Offset is when the gap began, counted from enqueue, to 10 us.
func (g Gap) Offset() time.Duration { return time.Duration(g.offset) * offsetUnit }

// Length is how long it lasted, to 1 us.
func (g Gap) Length() time.Duration { return time.Duration(g.length) * gapUnit }

func units(d, unit time.Duration) uint32 {
	return uint32(min(max((d+unit/2)/unit, 0), math.MaxUint32))
}

// gaps collects the gaps of one running stream. Its owner alone adds; any goroutine may read at the same time,
// because every cell is stored atomically and is right by itself: a reader misses at most the gap being added.
type gaps struct {
	counts [Buckets]atomic.Uint32
	strip  [stripLen]atomic.Uint64 // length << 32 | offset; 0 is empty
	max    atomic.Int64
	heap   [stripLen]uint8 // the owner's: places in strip, the shortest gap first
	n      int             // the owner's: used places
}

var gapsPool = sync.Pool{New: func() any { return new(gaps) }}

func (g *gaps) release() {
	if g == nil {
		return
	}
	*g = gaps{}
	gapsPool.Put(g)
}

// add counts one gap of length d that began at offset.
func (g *gaps) add(offset, d time.Duration) {
	g.counts[Bucket(d)].Add(1)
	if int64(d) > g.max.Load() {
		g.max.Store(int64(d))
	}
	if d < gapUnit {
		return // events of one read: nothing to see
	}
	gap := NewGap(offset, d)
	key := uint64(gap.length)<<32 | uint64(gap.offset)
	switch {
	case g.n < stripLen:
		g.strip[g.n].Store(key)
		g.heap[g.n] = uint8(g.n)
		g.n++
		g.up(g.n - 1)
	case key > g.key(0):
		g.strip[g.heap[0]].Store(key)
		g.down()
	}
}

func (g *gaps) key(i int) uint64 { return g.strip[g.heap[i]&(stripLen-1)].Load() }

func (g *gaps) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if g.key(parent) <= g.key(i) {
			return
		}
		g.heap[parent], g.heap[i] = g.heap[i], g.heap[parent]
		i = parent
	}
}

func (g *gaps) down() {
	moving := g.heap[0]
	key := g.key(0)
	i := 0
	for {
		child := 2*i + 1
		if child >= stripLen {
			break
		}
		ck := g.key(child)
		if child+1 < stripLen {
			if rk := g.key(child + 1); rk < ck {
				child, ck = child+1, rk
			}
		}
		if key <= ck {
			break
		}
		g.heap[i] = g.heap[child]
		i = child
	}
	g.heap[i] = moving
}

// freeze copies what was collected. The sum is not collected: the gaps lie end to end.
func (g *gaps) freeze() (*Histogram, []Gap) {
	if g == nil {
		return nil, nil
	}
	var counts [Buckets]uint32
	low, high := Buckets, -1
	for i := range counts {
		if counts[i] = g.counts[i].Load(); counts[i] > 0 {
			low, high = min(low, i), i
		}
	}
	if high < 0 {
		return nil, nil
	}
	var strip []Gap
	for i := range g.strip {
		if v := g.strip[i].Load(); v != 0 {
			if strip == nil {
				strip = make([]Gap, 0, stripLen)
			}
			strip = append(strip, Gap{offset: uint32(v), length: uint32(v >> 32)})
		}
	}
	slices.SortFunc(strip, func(a, b Gap) int { return cmp.Compare(a.offset, b.offset) })
	return &Histogram{low: low, counts: slices.Clone(counts[low : high+1]), max: time.Duration(g.max.Load())},
		slices.Clip(slices.Clone(strip))
}
