package routing

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Percentiles of a duration in milliseconds; null where nothing was measured.
type Percentiles struct {
	P50 *float64 `json:"p50"`
	P99 *float64 `json:"p99"`
}

// Counts are finished attempts by how they ended, since the process began.
type Counts struct {
	OK           int64 `json:"ok"`
	Fault        int64 `json:"fault"`
	Backpressure int64 `json:"backpressure"`
	ClientError  int64 `json:"client_error"`
	ClientAbort  int64 `json:"client_abort"`
}

// Share is what a deployment took of its model's traffic, 0 to 1; null before any. Tokens are those of answers whose
// usage is known, and null for a deployment whose answers never told it.
type Share struct {
	Requests *float64 `json:"requests"`
	Tokens   *float64 `json:"tokens"`
}

// EngineState is what the engine says about itself; fresh is false while nothing is scraped.
type EngineState struct {
	Fresh     bool     `json:"fresh"`
	Running   *float64 `json:"running"`
	Waiting   *float64 `json:"waiting"`
	KVUsed    *float64 `json:"kv_used"`
	PrefixHit *float64 `json:"prefix_hit"`
	Version   *string  `json:"version"`
}

// Capabilities are what a deployment can do; null is unknown.
type Capabilities struct {
	Dialects     []string `json:"dialects"`
	HeadersFirst *bool    `json:"headers_first"`
	Abort        string   `json:"abort"`
	CachedTokens *bool    `json:"cached_tokens"`
}

// DeploymentState is a deployment in GET /api/v1/state.
type DeploymentState struct {
	Name         string       `json:"name"`
	Model        string       `json:"model"`
	Track        string       `json:"track"`
	State        string       `json:"state"`
	Since        time.Time    `json:"since"`
	Until        *time.Time   `json:"until"`
	Reason       *string      `json:"reason"`
	LastFaults   []LastFault  `json:"last_faults"`
	Inflight     int64        `json:"inflight"`
	Queue        int          `json:"queue"`
	Weight       int          `json:"weight"`
	Share        Share        `json:"share"`
	Counts       Counts       `json:"counts"`
	TTFT         Percentiles  `json:"ttft_ms"`
	TBT          Percentiles  `json:"tbt_ms"`
	Engine       EngineState  `json:"engine"`
	Capabilities Capabilities `json:"capabilities"`
}

// States of a deployment; the words are the public contract's.
const (
	StateReady    = "ready"
	StateDraining = "draining" // its weight is 0: it gets no requests, those under way go on
)

// QueueState is a model's waiting room; MaxWaiting is 0 where nobody waits.
type QueueState struct {
	Waiting    int `json:"waiting"`
	MaxWaiting int `json:"max_waiting"`
}

// ModelState is a model in GET /api/v1/state.
type ModelState struct {
	Name        string            `json:"name"`
	Strategy    string            `json:"strategy"`
	Queue       QueueState        `json:"queue"`
	Deployments []DeploymentState `json:"deployments"`
}

// State describes every model and deployment at this moment.
func (t *Table) State() []ModelState {
	states := make([]ModelState, 0, len(t.models))
	for _, m := range t.models {
		s := ModelState{Name: m.Name(), Strategy: Strategy}
		var requests, tokens int64
		for _, d := range m.Deployments {
			requests += d.Live.requests.Load()
			tokens += d.Live.tokens.Load()
		}
		for _, d := range m.Deployments {
			s.Deployments = append(s.Deployments, d.state(requests, tokens))
		}
		states = append(states, s)
	}
	return states
}

func (d *Deployment) state(modelRequests, modelTokens int64) DeploymentState {
	l := d.Live
	state := StateReady
	if d.Spec.Weight <= 0 {
		state = StateDraining
	}
	requests := l.requests.Load()
	tokens := share(l.tokens.Load(), modelTokens)
	if requests > 0 && l.told.Load() == 0 {
		tokens = nil
	}
	headersFirst := d.Spec.Profile.HeadersFirst
	return DeploymentState{
		Name: d.Name(), Model: d.Model, Track: d.Spec.Track,
		State: state, Since: l.since,
		LastFaults: l.lastFaults(),
		Inflight:   l.inflight.Load(), Weight: d.Spec.Weight,
		Share: Share{Requests: share(requests, modelRequests), Tokens: tokens},
		Counts: Counts{OK: l.ok.Load(), Fault: l.fault.Load(), Backpressure: l.pressure.Load(),
			ClientError: l.client.Load(), ClientAbort: l.abort.Load()},
		Capabilities: Capabilities{Dialects: d.Spec.Dialects, HeadersFirst: &headersFirst, Abort: d.Spec.Profile.Abort},
	}
}

func share(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	s := float64(part) / float64(whole)
	return &s
}

// Collector exports llm_inflight_requests for the table that current returns.
type Collector struct {
	current  func() *Table
	inflight *prometheus.Desc
}

// NewCollector makes a collector over the table in force.
func NewCollector(current func() *Table) *Collector {
	return &Collector{current: current, inflight: prometheus.NewDesc("llm_inflight_requests",
		"Requests that a deployment is working on now.", []string{"model", "deployment"}, nil)}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) { ch <- c.inflight }

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.current().Deployments(func(d *Deployment) {
		ch <- prometheus.MustNewConstMetric(c.inflight, prometheus.GaugeValue,
			float64(d.Live.Inflight()), d.Model, d.Name())
	})
}
