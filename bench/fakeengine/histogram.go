package fakeengine

import (
	"sort"
	"time"
)

// Bucket edges of the real server.
var (
	bucketsTokens    = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}
	bucketsIteration = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	bucketsN         = []float64{1, 2, 5, 10, 20}
	bucketsPreempt   = []float64{1, 2, 3, 4, 5, 10, 20}
	bucketsTTFT      = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	bucketsITL       = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	bucketsLatency   = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
)

// histogram is a Prometheus histogram. Guarded by the scheduler's mutex.
type histogram struct {
	edges  []float64
	counts []int64 // one more than edges
	sum    float64
}

func newHistogram(edges []float64) *histogram {
	return &histogram{edges: edges, counts: make([]int64, len(edges)+1)}
}

func (h *histogram) observe(v float64) {
	h.counts[sort.SearchFloat64s(h.edges, v)]++
	h.sum += v
}

// meters are the counters and histograms of one life of the engine.
type meters struct {
	started                               time.Time
	queries, hits                         int64
	prompt, promptCached                  int64
	generation, preemptions               int64
	stop, length, errors                  int64
	aborted                               int64 // SGLang shows them, vLLM does not count them
	rejectedReqs, rejectedTokens          int64
	http                                  map[httpKey]int64
	iteration, ttft, itl, tpot            *histogram
	e2e, queue, prefill, decode, infer    *histogram
	promptTokens, genTokens, computed     *histogram
	maxGen, paramsN, paramsMax, preempted *histogram
}

type httpKey struct{ handler, method, status string }

func newMeters() *meters {
	return &meters{
		started: time.Now(), http: make(map[httpKey]int64),
		iteration: newHistogram(bucketsIteration), ttft: newHistogram(bucketsTTFT),
		itl: newHistogram(bucketsITL), tpot: newHistogram(bucketsITL),
		e2e: newHistogram(bucketsLatency), queue: newHistogram(bucketsLatency), prefill: newHistogram(bucketsLatency),
		decode: newHistogram(bucketsLatency), infer: newHistogram(bucketsLatency),
		promptTokens: newHistogram(bucketsTokens), genTokens: newHistogram(bucketsTokens), computed: newHistogram(bucketsTokens),
		maxGen: newHistogram(bucketsTokens), paramsN: newHistogram(bucketsN), paramsMax: newHistogram(bucketsTokens),
		preempted: newHistogram(bucketsPreempt),
	}
}

// firstToken counts what vLLM counts with the first output, aborted requests included.
func (m *meters) firstToken(q *sequence, now time.Time) {
	m.ttft.observe(now.Sub(q.arrived).Seconds())
	m.prompt += int64(q.prompt)
	m.promptCached += int64(q.cached)
}

// finished counts what vLLM counts at the engine's own end of a request; aborts never come here.
func (m *meters) finished(q *sequence, now time.Time) {
	switch q.reason.Load() {
	case reasonLength:
		m.length++
	case reasonError:
		m.errors++
	default:
		m.stop++
	}
	m.e2e.observe(now.Sub(q.arrived).Seconds())
	m.queue.observe(q.scheduled.Sub(q.arrived).Seconds())
	m.prefill.observe(q.first.Sub(q.scheduled).Seconds())
	m.decode.observe(now.Sub(q.first).Seconds())
	m.infer.observe(now.Sub(q.scheduled).Seconds())
	if q.generated > 1 {
		m.tpot.observe(now.Sub(q.first).Seconds() / float64(q.generated-1))
	}
	m.promptTokens.observe(float64(q.prompt))
	m.genTokens.observe(float64(q.generated))
	m.computed.observe(float64(q.prompt - q.cached))
	m.maxGen.observe(float64(q.limit))
	m.paramsN.observe(1)
	m.paramsMax.observe(float64(q.limit))
	m.preempted.observe(float64(q.preemptions))
}
