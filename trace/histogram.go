package trace

import (
	"math/bits"
	"time"
)

// Buckets is the number of buckets of a gap histogram, the last one without an upper edge.
const Buckets = 64

// Stall is the silence between two content events from which on a gap counts as a stall. It is one of the edges.
const Stall = time.Second

const (
	us = time.Microsecond
	ms = time.Millisecond
	s  = time.Second
)

// edges are the inclusive upper bounds of the buckets but the last, about 25 % apart where tokens flow and coarser
// at both ends. The metric's edges (10 30 50 100 200 500 ms) are among them, so that merging is exact.
var edges = [Buckets - 1]time.Duration{
	100 * us, 200 * us, 300 * us, 500 * us, 700 * us,
	1 * ms, 1250 * us, 1600 * us, 2 * ms, 2500 * us, 3 * ms, 4 * ms, 5 * ms, 6500 * us, 8 * ms,
	10 * ms, 12500 * us, 16 * ms, 20 * ms, 25 * ms, 30 * ms, 40 * ms, 50 * ms, 65 * ms, 80 * ms,
	100 * ms, 125 * ms, 160 * ms, 200 * ms, 250 * ms, 300 * ms, 400 * ms, 500 * ms, 650 * ms, 800 * ms,
	1 * s, 1250 * ms, 1600 * ms, 2 * s, 2500 * ms, 3 * s, 4 * s, 5 * s, 6500 * ms, 8 * s,
	10 * s, 13 * s, 16 * s, 20 * s, 25 * s, 30 * s, 40 * s, 50 * s, 60 * s, 80 * s,
	100 * s, 120 * s, 160 * s, 200 * s, 250 * s, 300 * s, 400 * s, 600 * s,
}

// Edges returns the inclusive upper bounds of the buckets 0..Buckets-2; the last bucket has none.
func Edges() []time.Duration { return edges[:] }

// The cells of the look-up table: eight per power of two from 2^16 ns (65 us) up to 2^40 ns (over 1,000 s). A cell is
// at most 12.5 % wide and the edges are at least 20 % apart, so one comparison after the look-up decides.
const (
	firstExp = 17 // bits.Len64 of the lowest value with a cell of its own
	lastExp  = 40
)

var cells = func() (c [(lastExp - firstExp + 1) * 8]uint8) {
	for i := range c {
		low := time.Duration(8+i%8) << (firstExp + i/8 - 4)
		b := 0
		for b < len(edges) && edges[b] < low {
			b++
		}
		c[i] = uint8(b)
	}
	return c
}()

// Bucket returns the bucket that holds a gap of d.
func Bucket(d time.Duration) int {
	if d <= edges[0] {
		return 0
	}
	if d > edges[len(edges)-1] {
		return Buckets - 1
	}
	exp := bits.Len64(uint64(d))
	b := int(cells[(exp-firstExp)<<3|int(d>>(exp-4))&7])
	if d > edges[b] {
		b++
	}
	return b
}

// Histogram is a finished distribution of gaps: only the span of buckets that hold any.
type Histogram struct {
	low    int
	counts []uint32
	sum    time.Duration
	max    time.Duration
}

// Each calls f for every bucket that holds gaps, from short to long.
func (h *Histogram) Each(f func(bucket int, n uint32)) {
	if h == nil {
		return
	}
	for i, n := range h.counts {
		if n > 0 {
			f(h.low+i, n)
		}
	}
}

// Sum is the exact total of all gaps, Max the exact longest one.
func (h *Histogram) Sum() time.Duration { return h.sum }

// Max is the exact longest gap.
func (h *Histogram) Max() time.Duration { return h.max }

// Count is the number of gaps.
func (h *Histogram) Count() (n int64) {
	h.Each(func(_ int, k uint32) { n += int64(k) })
	return n
}

// Over is the number of gaps longer than d, which must be one of the edges.
func (h *Histogram) Over(d time.Duration) (n int64) {
	from := Bucket(d)
	h.Each(func(b int, k uint32) {
		if b > from {
			n += int64(k)
		}
	})
	return n
}

// Quantile returns the q-quantile (0..1), interpolated between the edges of its bucket, or up to Max in the bucket that
// holds it; 0 when empty.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h == nil {
		return 0
	}
	rank := q * float64(h.Count())
	seen := 0.0
	for i, n := range h.counts {
		if n == 0 || seen+float64(n) < rank {
			seen += float64(n)
			continue
		}
		low, high := span(h.low+i, h.max)
		return low + time.Duration(float64(high-low)*(rank-seen)/float64(n))
	}
	return h.max
}

// span returns the edges of a bucket that holds gaps; no gap lies above the longest one.
func span(bucket int, longest time.Duration) (low, high time.Duration) {
	if bucket > 0 {
		low = edges[bucket-1]
	}
	if bucket == Buckets-1 {
		return low, max(low, longest)
	}
	return low, min(edges[bucket], longest)
}

func (h *Histogram) summary() TBT {
	if h == nil {
		return TBT{}
	}
	return TBT{Count: h.Count(), P50: h.Quantile(0.5), P90: h.Quantile(0.9), P99: h.Quantile(0.99), Max: h.max,
		Stalls: h.Over(Stall)}
}
