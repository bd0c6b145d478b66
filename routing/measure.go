package routing

import (
	"math"
	"sync/atomic"
	"time"
)

// start lies years before the process's own, so that the clock of a test's
// bubble, which stands at the year 2000, lies behind it too.
var start = time.Now().Add(-50 * 365 * 24 * time.Hour)

// clock is the monotonic time in nanoseconds; never 0, which stands for never.
func clock() int64 { return int64(time.Since(start)) }

// average is a moving average of positive numbers. Reading it is one load, for
// Pick reads many; writers need the lock of the struct that it is in.
type average struct {
	bits atomic.Uint64 // of the float; 0 = no sample yet
	n    int64         // samples, while that matters
}

// value is 0 where nothing has been measured.
func (a *average) value() float64 { return math.Float64frombits(a.bits.Load()) }

// blend gives the new sample its share of the average.
func (a *average) blend(v, share float64) {
	if old := a.value(); old > 0 {
		v = old + share*(v-old)
	}
	a.bits.Store(math.Float64bits(max(v, math.SmallestNonzeroFloat64)))
}

// steadyShare is the share of a sample once there are many.
const steadyShare = 0.05

// count blends by number: the mean of the first samples, then a moving one.
func (a *average) count(v float64) {
	a.n++
	a.blend(v, max(1/float64(a.n), steadyShare))
}

const (
	// fading is the time in which a sample loses 63 % of its say to one new sample.
	fading = int64(5 * time.Second)
	// stale is the age from which a measurement says nothing any more about an
	// engine: the next sample replaces it, and it is worth a request to get one.
	stale = int64(10 * time.Second)
)

// timed is an average that newer samples outweigh the more the older it is.
type timed struct {
	average
	last    atomic.Int64 // when the newest sample came
	renewed atomic.Int64 // when it last was new: the first, in place of a stale one, or half of what it was
	mark    float64      // what it was at most fading ago
	marked  int64
}

func (t *timed) add(v float64, now int64) {
	share := 1.0
	if age := now - t.last.Load(); age < stale {
		share = max(1-math.Exp(-float64(age)/float64(fading)), steadyShare)
	} else {
		t.renewed.Store(now)
	}
	t.blend(v, share)
	t.last.Store(now)
	if t.value() < t.mark/2 {
		t.renewed.Store(now)
		t.marked = 0
	}
	if now-t.marked >= fading {
		t.mark, t.marked = t.value(), now
	}
}

// minute counts tokens in the last 60 seconds, in steps of one. Writers hold the
// lock of Live. Readers need none within the second of the last write or look.
type minute struct {
	slots  [60]int64
	second atomic.Int64 // that the sum is right for
	sum    atomic.Int64
}

// advance forgets what is older than a minute.
func (m *minute) advance(second int64) {
	last := m.second.Load()
	if second <= last {
		return
	}
	sum := m.sum.Load()
	for s := max(last+1, second-int64(len(m.slots))+1); s <= second; s++ {
		slot := &m.slots[s%int64(len(m.slots))]
		sum -= *slot
		*slot = 0
	}
	m.sum.Store(sum)
	m.second.Store(second)
}

// add counts n tokens; negative ones correct an estimate that was too high.
func (m *minute) add(n, now int64) {
	m.advance(now / int64(time.Second))
	m.slots[m.second.Load()%int64(len(m.slots))] += n
	m.sum.Add(n)
}

const (
	leastRatio, mostRatio = 0.25, 4 // beyond these an upstream counts something else
	ratioSamples          = 8       // fewer say nothing yet
)

// ratio is how many tokens an upstream reports for one that we estimate. Long
// prompts weigh more, because it decides about long ones.
type ratio struct {
	reported, guessed average
	learned           atomic.Uint64 // bits of the float; 0 = too few samples
}

func (r *ratio) add(reported int64, guess int) {
	g := float64(guess)
	r.reported.count(min(max(float64(reported), leastRatio*g), mostRatio*g))
	r.guessed.count(g)
	if r.guessed.n >= ratioSamples {
		r.learned.Store(math.Float64bits(r.reported.value() / r.guessed.value()))
	}
}

// scale is n in the upstream's tokens.
func (r *ratio) scale(n int) int {
	bits := r.learned.Load()
	if bits == 0 {
		return n
	}
	return int(math.Ceil(float64(n) * math.Float64frombits(bits)))
}

// guessedOutput stands in for the mean answer before there is one.
const guessedOutput = 500

// meanOutput is how many tokens an answer of this model has.
func (l *ModelLive) meanOutput() float64 {
	if mean := l.output.value(); mean > 0 {
		return mean
	}
	return guessedOutput
}

// expect is how many tokens will be generated for a request.
func (l *ModelLive) expect(a *Ask) float64 {
	if mean := l.meanOutput(); a.Output <= 0 || mean < float64(a.Output) {
		return mean
	}
	return float64(a.Output)
}

// answered learns from an answer's length.
func (l *ModelLive) answered(tokens int64) {
	l.mu.Lock()
	l.output.count(float64(tokens))
	l.mu.Unlock()
}
