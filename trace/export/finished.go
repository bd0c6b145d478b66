package export

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tracegate/trace"
)

// lineKey, pairKey and abortKey find the series of a record without a look-up by label values.
type lineKey struct{ tenant, model, deployment string }

type pairKey struct{ model, deployment string }

type abortKey struct {
	deployment string
	reason     trace.AbortReason
}

// line holds the series of one tenant, model and deployment, made when they are first needed.
type line struct {
	lineKey
	ttft     prometheus.Observer
	requests map[requestKey]prometheus.Counter
	duration map[trace.Outcome]prometheus.Observer
	tokens   map[tokenKey]prometheus.Counter
}

// tableSize bounds the tables by what a record says: an upstream may invent status numbers without end. Their labels
// are bounded anyway; beyond the table they are looked up each time.
const tableSize = 1000

type requestKey struct {
	dialect string
	outcome trace.Outcome
	status  int
}

type tokenKey struct{ kind, source string }

// pair holds the series of one model and deployment.
type pair struct {
	pairKey
	tpot, stall   prometheus.Observer
	interruptions map[interruptionKey]prometheus.Counter
	timeouts      map[string]prometheus.Counter
	attempts      map[attemptKey]prometheus.Counter
	retries       prometheus.Counter
	gaps          *gapSeries
}

type interruptionKey struct {
	side  trace.Side
	phase trace.Phase
}

type attemptKey struct {
	n      int
	result trace.Result
}

// Finished counts one finished record. It is a sink.
func (m *Metrics) Finished(r *trace.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.line(lineKey{orOther(r.Tenant), orOther(r.Model), orOther(r.Deployment())})
	p := m.pair(pairKey{l.model, l.deployment})
	m.countRequest(l, r)
	m.countStream(l, p, r)
	m.countTokens(l, r)
	m.countAttempts(p, r)
	m.observeOverhead(r)
}

func (m *Metrics) countRequest(l *line, r *trace.Record) {
	key := requestKey{r.Dialect, r.Outcome, r.Status}
	c := l.requests[key]
	if c == nil {
		c = m.requests.WithLabelValues(l.tenant, l.model, l.deployment,
			known(r.Dialect, trace.Dialects), known(r.Outcome, trace.Outcomes), code(r.Status))
		if len(l.requests) < tableSize {
			l.requests[key] = c
		}
	}
	c.Inc()
	if d, ok := r.Duration(); ok {
		o := l.duration[r.Outcome]
		if o == nil {
			o = m.duration.WithLabelValues(l.tenant, l.model, l.deployment, known(r.Outcome, trace.Outcomes))
			if len(l.duration) < tableSize {
				l.duration[r.Outcome] = o
			}
		}
		o.Observe(d.Seconds())
	}
}

// countStream observes what only streams have: an answer in one piece never enters these series.
func (m *Metrics) countStream(l *line, p *pair, r *trace.Record) {
	if !r.Stream {
		return
	}
	if d, ok := r.TTFT(); ok {
		if l.ttft == nil {
			l.ttft = m.ttft.WithLabelValues(l.tenant, l.model, l.deployment)
		}
		l.ttft.Observe(d.Seconds())
	}
	if d, ok := r.TPOT(); ok {
		if p.tpot == nil {
			p.tpot = m.tpot.WithLabelValues(p.model, p.deployment)
		}
		p.tpot.Observe(d.Seconds())
	}
	if h := r.Histogram(); h != nil {
		if p.gaps == nil {
			p.gaps = new(gapSeries)
			p.stall = m.stall.WithLabelValues(p.model, p.deployment)
		}
		p.gaps.merge(h)
		p.stall.Observe(h.Max().Seconds())
	}
	if side, ok := r.Interruption(); ok {
		key := interruptionKey{side, r.Phase}
		c := p.interruptions[key]
		if c == nil {
			c = m.interruptions.WithLabelValues(p.model, p.deployment, known(side, trace.Sides), known(r.Phase, trace.Phases))
			p.interruptions[key] = c
		}
		c.Inc()
	}
}

func (m *Metrics) countTokens(l *line, r *trace.Record) {
	for _, t := range [...]struct {
		kind string
		n    int64
	}{
		{"input", r.Tokens.Input}, {"output", r.Tokens.Output}, {"cache_read", r.Tokens.CacheRead},
		{"cache_write", r.Tokens.CacheWrite}, {"reasoning", r.Tokens.Reasoning},
	} {
		if t.n <= 0 {
			continue
		}
		source := trace.SourceUpstream
		if r.Tokens.Source != trace.SourceUpstream {
			source = trace.SourceEstimated
		}
		key := tokenKey{t.kind, source}
		c := l.tokens[key]
		if c == nil {
			c = m.tokens.WithLabelValues(l.tenant, l.model, l.deployment, t.kind, source)
			l.tokens[key] = c
		}
		c.Add(float64(t.n))
	}
}

// countAttempts counts every attempt at its own deployment, the limits that ended attempts, and the one that ended
// the request unless that was the last attempt's.
func (m *Metrics) countAttempts(last *pair, r *trace.Record) {
	counted := ""
	for i := range r.Attempts {
		a := &r.Attempts[i]
		p := last
		if a.Model != "" || a.Deployment != last.deployment {
			model := a.Model
			if model == "" {
				model = r.Model
			}
			p = m.pair(pairKey{orOther(model), orOther(a.Deployment)})
		}
		m.countAttempt(p, a)
		counted = limitOf[a.Fault]
		if counted != "" {
			m.countTimeout(p, counted)
		}
		if a.AbortReason != "" {
			m.countAbort(p.deployment, a.AbortReason)
		}
	}
	if kind := limitOf[string(r.Outcome)]; kind != "" && kind != counted {
		m.countTimeout(last, kind)
	}
}

func (m *Metrics) countAttempt(p *pair, a *trace.Attempt) {
	key := attemptKey{min(a.N, 10), a.Result}
	c := p.attempts[key]
	if c == nil {
		n := strconv.Itoa(key.n)
		if key.n == 10 {
			n = "10+"
		}
		c = m.attempts.WithLabelValues(p.model, p.deployment, n, known(a.Result, trace.Results))
		p.attempts[key] = c
	}
	c.Inc()
	if a.N == 1 {
		return
	}
	if p.retries == nil {
		p.retries = m.retries.WithLabelValues(p.model, p.deployment)
	}
	p.retries.Inc()
}

// limitOf names the limit behind an attempt's fault or a request's outcome.
var limitOf = map[string]string{
	"timeout_connect": "connect", "timeout_first_token": "first_token", "timeout_idle": "idle", "timeout_total": "total",
	"write_stall": "write_stall", "queue_timeout": "queue",
}

func (m *Metrics) countTimeout(p *pair, kind string) {
	c := p.timeouts[kind]
	if c == nil {
		c = m.timeouts.WithLabelValues(p.model, p.deployment, kind)
		p.timeouts[kind] = c
	}
	c.Inc()
}

func (m *Metrics) countAbort(deployment string, reason trace.AbortReason) {
	key := abortKey{deployment, reason}
	c := m.aborted[key]
	if c == nil {
		c = m.aborts.WithLabelValues(deployment, known(reason, trace.AbortReasons))
		m.aborted[key] = c
	}
	c.Inc()
}

// line finds the series of a key. Beyond the cap the tenant becomes other, beyond twice the cap everything does.
func (m *Metrics) line(key lineKey) *line {
	l := m.lines[key]
	if l != nil {
		return l
	}
	if len(m.lines) >= m.limit && key != (lineKey{other, other, other}) {
		m.overflow.Inc()
		key.tenant = other
		if l = m.lines[key]; l != nil {
			return l
		}
		if len(m.lines) >= 2*m.limit {
			key = lineKey{other, other, other}
			if l = m.lines[key]; l != nil {
				return l
			}
		}
	}
	l = &line{lineKey: key, requests: map[requestKey]prometheus.Counter{},
		duration: map[trace.Outcome]prometheus.Observer{}, tokens: map[tokenKey]prometheus.Counter{}}
	m.lines[key] = l
	return l
}

func (m *Metrics) pair(key pairKey) *pair {
	p := m.pairs[key]
	if p != nil {
		return p
	}
	if len(m.pairs) >= m.limit {
		key = pairKey{other, other}
		if p = m.pairs[key]; p != nil {
			return p
		}
	}
	p = &pair{pairKey: key, interruptions: map[interruptionKey]prometheus.Counter{},
		timeouts: map[string]prometheus.Counter{}, attempts: map[attemptKey]prometheus.Counter{}}
	m.pairs[key] = p
	return p
}

func orOther(name string) string {
	if name == "" {
		return other
	}
	return name
}

// known returns the word if it is one of the list, else other.
func known[W ~string](word W, list []W) string {
	for _, w := range list {
		if w == word {
			return string(w)
		}
	}
	return other
}

// code renders a status that has a name in HTTP, or is one that engines and proxies use; everything else is other.
func code(status int) string {
	if http.StatusText(status) == "" && status != 499 && status != 529 {
		return other
	}
	return strconv.Itoa(status)
}

// seconds renders edges as the metric has them: 10 ms is 0.01, not a sum of nanoseconds with a rounding error.
func seconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }
