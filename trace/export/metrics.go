// Package export answers how others see what happened: as metrics, as a log line per request, as a waterfall in a
// terminal.
//
// It owns the metric families that follow from a finished trace.Record, with a bounded table of their series, and the
// goroutine that writes the log. Metrics.Finished and Log.Finished are sinks of trace.NewBook: any goroutine, they
// do not block. Waterfall writes to its caller's writer on its caller's goroutine.
//
// It never keeps a record, never shows prompt or answer text or header values, and takes label values only from
// names that come from the configuration or from closed lists; everything else is "other".
package export

import (
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tracegate/trace"
)

// other stands for a label value that is missing, not configured, or one too many.
const other = "other"

// Bucket edges in seconds. Every set holds the edges that dashboards and objectives are written against.
var (
	ttftEdges = []float64{.005, .01, .02, .03, .05, .075, .1, .15, .2, .3, .5, .75, 1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30,
		45, 60, 90, 120, 180, 300, 600}
	durationEdges = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 90, 120, 180, 300, 600, 1200, 1800}
	tpotEdges     = []float64{.001, .002, .005, .01, .015, .02, .03, .05, .075, .1, .15, .2, .3, .5, .75, 1, 2, 5, 10, 30}
	stallEdges    = []float64{.05, .1, .2, .3, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600}
	overheadEdges = []float64{.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25,
		.5, 1, 5}
)

// Options of NewMetrics. The zero value is ready.
type Options struct {
	Version, Commit string // for llm_gateway_build_info
	// Combinations caps the distinct (tenant, model, deployment) and likewise the (model, deployment) that get series
	// of their own; later ones count as "other". 0 is 5,000.
	Combinations int
}

// Metrics are the families that follow from finished records.
type Metrics struct {
	requests      *prometheus.CounterVec
	duration      *prometheus.HistogramVec
	ttft          *prometheus.HistogramVec
	tpot          *prometheus.HistogramVec
	stall         *prometheus.HistogramVec
	tokens        *prometheus.CounterVec
	interruptions *prometheus.CounterVec
	timeouts      *prometheus.CounterVec
	aborts        *prometheus.CounterVec
	attempts      *prometheus.CounterVec
	retries       *prometheus.CounterVec
	overhead      *prometheus.HistogramVec
	overflow      prometheus.Counter

	limit   int
	mu      sync.Mutex
	stages  [stages]prometheus.Observer     // guarded by mu; each made when it is first measured
	lines   map[lineKey]*line               // guarded by mu
	pairs   map[pairKey]*pair               // guarded by mu
	aborted map[abortKey]prometheus.Counter // guarded by mu
}

// NewMetrics makes the families and registers them.
func NewMetrics(reg prometheus.Registerer, o Options) *Metrics {
	if o.Combinations <= 0 {
		o.Combinations = 5000
	}
	m := &Metrics{limit: o.Combinations, lines: map[lineKey]*line{}, pairs: map[pairKey]*pair{},
		aborted: map[abortKey]prometheus.Counter{}}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		reg.MustRegister(v)
		return v
	}
	histogram := func(name, help string, edges []float64, labels ...string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: edges}, labels)
		reg.MustRegister(v)
		return v
	}
	m.requests = counter("llm_requests_total", "Finished requests.",
		"tenant", "model", "deployment", "dialect", "outcome", "code")
	m.duration = histogram("llm_request_duration_seconds", "Time from the last byte of the request to the end.",
		durationEdges, "tenant", "model", "deployment", "outcome")
	m.ttft = histogram("llm_ttft_seconds", "Time from the last byte of the request to the first generated content of a stream.",
		ttftEdges, "tenant", "model", "deployment")
	m.tpot = histogram("llm_tpot_seconds", "Mean time per output token of a stream after its first.",
		tpotEdges, "model", "deployment")
	m.stall = histogram("llm_stream_stall_seconds", "Longest gap between content events of a stream.",
		stallEdges, "model", "deployment")
	m.tokens = counter("llm_tokens_total", "Tokens by type; the input excludes cached ones.",
		"tenant", "model", "deployment", "type", "source")
	m.interruptions = counter("llm_stream_interruptions_total", "Streams broken before their end, by who broke them.",
		"model", "deployment", "side", "phase")
	m.timeouts = counter("llm_timeouts_total", "Limits that fired, on attempts and on requests.",
		"model", "deployment", "kind")
	m.aborts = counter("llm_upstream_aborts_total", "Attempts whose connection was closed by us.",
		"deployment", "reason")
	m.attempts = counter("llm_attempts_total", "Attempts by their number within the request.",
		"model", "deployment", "attempt", "result")
	m.retries = counter("llm_retries_total", "Attempts after the first of their request. Over finished requests: how much we amplify.",
		"model", "deployment")
	m.overhead = histogram("llm_gateway_overhead_seconds", "The gateway's own time per stage of a request.",
		overheadEdges, "stage")
	m.overflow = prometheus.NewCounter(prometheus.CounterOpts{Name: "llm_gateway_label_overflow_total",
		Help: "Finished requests that were counted under other because there are too many label combinations."})
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "llm_gateway_build_info", Help: "Always 1.",
		ConstLabels: prometheus.Labels{"version": o.Version, "commit": o.Commit, "go": runtime.Version()}})
	build.Set(1)
	reg.MustRegister(m.overflow, build, tbtCollector{m})
	return m
}

const (
	stageAdmit = iota
	stagePick
	stageConnect
	stageRelay
	stages
)

var stageNames = [stages]string{"admit", "pick", "connect", "relay"}

// observeOverhead takes what the record says of our own time; the wait in a queue and for the limiter's store are
// other people's. How long the client took to send its request is not our time either.
func (m *Metrics) observeOverhead(r *trace.Record) {
	enqueued, ok := r.Offset(trace.Enqueue)
	if !ok {
		return
	}
	if admitted, ok := r.Offset(trace.Admit); ok {
		m.observeStage(stageAdmit, max(admitted-enqueued-max(r.Limiter.Wait, 0), 0))
	}
	m.observeStage(stagePick, r.PickTime)
	for i := range r.Attempts {
		m.observeStage(stageConnect, r.Attempts[i].Connect)
	}
	m.observeStage(stageRelay, r.RelayTime)
}

// observeStage leaves out what was not measured: a stage that nobody measures has no series.
func (m *Metrics) observeStage(stage int, d time.Duration) {
	if d < 0 {
		return
	}
	if m.stages[stage] == nil {
		m.stages[stage] = m.overhead.WithLabelValues(stageNames[stage])
	}
	m.stages[stage].Observe(d.Seconds())
}
