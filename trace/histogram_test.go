package trace

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEdgesHoldTheMetricsEdges(t *testing.T) {
	for _, want := range []time.Duration{10 * ms, 30 * ms, 50 * ms, 100 * ms, 200 * ms, 500 * ms, Stall} {
		if !slices.Contains(edges[:], want) {
			t.Errorf("no edge at %v", want)
		}
	}
	equal(t, "lowest", edges[0], 100*us)
	equal(t, "highest", edges[len(edges)-1], 600*s)
	for i := 1; i < len(edges); i++ {
		if ratio := float64(edges[i]) / float64(edges[i-1]); ratio < 1.19 {
			t.Errorf("edges %v and %v are %.2f apart: the look-up needs 1.19", edges[i-1], edges[i], ratio)
		}
	}
}

func TestBucketAgreesWithSearch(t *testing.T) {
	search := func(d time.Duration) int {
		i, _ := slices.BinarySearch(edges[:], d)
		return i
	}
	for _, e := range edges {
		for _, d := range []time.Duration{e - 1, e, e + 1} {
			equal(t, d.String(), Bucket(d), search(d))
		}
	}
	for _, d := range []time.Duration{-1, 0, 1, math.MaxInt64, 1 << 40, 1<<40 - 1, 1 << 41} {
		equal(t, d.String(), Bucket(d), search(d))
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(math.Exp(rapid.Float64Range(0, 29).Draw(t, "log")))
		if got, want := Bucket(d), search(d); got != want {
			t.Fatalf("Bucket(%v) = %d, want %d", d, got, want)
		}
	})
}

func TestGapsOfAStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewBook(1)
		tl := b.Open(noon)
		now := noon
		for _, m := range []Mark{Enqueue, Admit, Pick, Send, Headers} {
			tl.MarkAt(m, now)
		}
		var all []time.Duration
		first := true
		for range rapid.IntRange(1, 300).Draw(t, "reads") {
			gap := time.Duration(math.Exp(rapid.Float64Range(5, 25).Draw(t, "log")))
			n := rapid.IntRange(1, 3).Draw(t, "events")
			now = now.Add(gap)
			tl.TokensAt(n, now)
			if !first {
				all = append(all, gap)
			}
			first = false
			all = append(all, make([]time.Duration, n-1)...)
		}
		if got := tl.LastToken(); !got.Equal(now) {
			t.Fatalf("last token %v, want %v", got, now)
		}
		checkGaps(t, tl.Finish(OK, nil), all)
	})
}

func checkGaps(t *rapid.T, r *Record, all []time.Duration) {
	slices.Sort(all)
	var sum, longest time.Duration
	var counts [Buckets]uint32
	stalls := int64(0)
	for _, d := range all {
		sum, longest = sum+d, max(longest, d)
		counts[Bucket(d)]++
		if d > Stall {
			stalls++
		}
	}
	if len(all) == 0 {
		if r.Histogram() != nil || r.TBT.Count != 0 {
			t.Fatalf("gaps of a single token: %+v", r.TBT)
		}
		return
	}
	h := r.Histogram()
	if h.Sum() != sum || h.Max() != longest || r.TBT.Stalls != stalls || r.TBT.Count != int64(len(all)) || r.TBT.Max != longest {
		t.Fatalf("sum %v max %v %+v, want %v %v %d stalls of %d", h.Sum(), h.Max(), r.TBT, sum, longest, stalls, len(all))
	}
	var got [Buckets]uint32
	h.Each(func(b int, n uint32) { got[b] = n })
	if got != counts {
		t.Fatalf("counts %v, want %v", got, counts)
	}
	for q, value := range map[float64]time.Duration{0.5: r.TBT.P50, 0.9: r.TBT.P90, 0.99: r.TBT.P99} {
		exact := all[max(int(math.Ceil(q*float64(len(all))))-1, 0)]
		low, high := span(Bucket(exact), longest)
		if value < low || value > min(high, longest) {
			t.Fatalf("p%g = %v, exact %v lies in %v..%v", q*100, value, exact, low, high)
		}
	}
	checkStrip(t, r.Gaps, all)
}

// checkStrip: the strip holds exactly the longest gaps, in order of time, end to start.
func checkStrip(t *rapid.T, strip []Gap, sorted []time.Duration) {
	seen := slices.DeleteFunc(slices.Clone(sorted), func(d time.Duration) bool { return d < gapUnit })
	want := seen[max(len(seen)-stripLen, 0):]
	if len(strip) != len(want) {
		t.Fatalf("strip of %d, want %d", len(strip), len(want))
	}
	if !slices.IsSortedFunc(strip, func(a, b Gap) int { return cmp.Compare(a.Offset(), b.Offset()) }) {
		t.Fatalf("strip is not in order of time: %v", strip)
	}
	var got []time.Duration
	for _, g := range strip {
		got = append(got, g.Length())
	}
	slices.Sort(got)
	for i := range got {
		if d := got[i] - want[i]; d > gapUnit/2 || d < -gapUnit/2 {
			t.Fatalf("strip's gap %d is %v, want %v", i, got[i], want[i])
		}
	}
}

func TestQuantileIsInterpolatedAndNeverOverTheMaximum(t *testing.T) {
	h := &Histogram{low: Bucket(10 * ms), counts: []uint32{0, 4}, max: 12 * ms} // four gaps in (10 ms, 12.5 ms]
	equal(t, "median", h.Quantile(0.5), 11*ms)
	equal(t, "p75", h.Quantile(0.75), 11500*us)
	equal(t, "all", h.Quantile(1), 12*ms)
	alike := &Histogram{low: Bucket(20200 * us), counts: []uint32{4}, max: 20200 * us}
	equal(t, "median of gaps that are alike", alike.Quantile(0.5), 20100*us)
	two := &Histogram{low: Bucket(10 * ms), counts: []uint32{2, 2}, max: 12 * ms}
	equal(t, "a bucket below the longest gap's has both edges", two.Quantile(0.25), 9*ms)
	open := &Histogram{low: Buckets - 1, counts: []uint32{2}, max: 900 * s}
	equal(t, "half of the open bucket", open.Quantile(0.5), 750*s)
	equal(t, "nothing", (*Histogram)(nil).Quantile(0.5), 0)
}
