package routing

import (
	"time"

	"tracegate/fallback"
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
	Name         string           `json:"name"`
	Model        string           `json:"model"`
	Track        string           `json:"track"`
	State        string           `json:"state"`
	Since        time.Time        `json:"since"`
	Until        *time.Time       `json:"until"`
	Reason       *string          `json:"reason"`
	LastFaults   []LastFault      `json:"last_faults"`
	Story        []fallback.Event `json:"cooldown_story"` // what opened its gate and how trials went, newest last
	Inflight     int64            `json:"inflight"`
	Queue        int              `json:"queue"`
	Weight       int              `json:"weight"`
	Share        Share            `json:"share"`
	Counts       Counts           `json:"counts"`
	TTFT         Percentiles      `json:"ttft_ms"`
	TBT          Percentiles      `json:"tbt_ms"`
	Engine       EngineState      `json:"engine"`
	Capabilities Capabilities     `json:"capabilities"`
}

// Reasons why a deployment is drained. A gate has its own.
const (
	reasonWeight   = "weight 0"
	reasonOperator = "drained by an operator"
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
		s := ModelState{Name: m.Name(), Strategy: m.Strategy(),
			Queue: QueueState{Waiting: m.Live.Queue.Waiting(), MaxWaiting: m.Spec.Queue.MaxWaiting}}
		for _, d := range m.Deployments {
			s.Deployments = append(s.Deployments, d.State())
		}
		states = append(states, s)
	}
	return states
}

// traffic is what the model's deployments have had.
func (m *Model) traffic() (requests, tokens int64) {
	for _, d := range m.Deployments {
		requests += d.Live.requests.Load()
		tokens += d.Live.tokens.Load()
	}
	return requests, tokens
}

// State describes the deployment at this moment.
func (d *Deployment) State() DeploymentState {
	modelRequests, modelTokens := d.model.traffic()
	l := d.Live
	standing := d.standing()
	requests := l.requests.Load()
	tokens := share(l.tokens.Load(), modelTokens)
	if requests > 0 && l.told.Load() == 0 {
		tokens = nil
	}
	headersFirst := d.Spec.Profile.HeadersFirst
	return DeploymentState{
		Name: d.Name(), Model: d.Model, Track: d.Spec.Track,
		State: string(standing.State), Since: standing.Since,
		Until: known(standing.Until), Reason: said(standing.Reason),
		LastFaults: l.lastFaults(), Story: l.Gate.Story(),
		Inflight: l.inflight.Load(), Weight: d.Weight(),
		Share: Share{Requests: share(requests, modelRequests), Tokens: tokens},
		Counts: Counts{OK: l.ok.Load(), Fault: l.fault.Load(), Backpressure: l.pressure.Load(),
			ClientError: l.client.Load(), ClientAbort: l.abort.Load()},
		Capabilities: Capabilities{Dialects: d.Spec.Dialects, HeadersFirst: &headersFirst, Abort: d.Spec.Profile.Abort},
	}
}

// standing is the gate's, unless the file or an operator decides before it.
func (d *Deployment) standing() fallback.Standing {
	l := d.Live
	l.mu.Lock()
	changed := l.changed
	l.mu.Unlock()
	if changed.IsZero() {
		changed = l.since
	}
	switch {
	case l.drain.Load():
		return fallback.Standing{State: fallback.DrainingState, Since: changed, Reason: reasonOperator}
	case d.Weight() <= 0:
		return fallback.Standing{State: fallback.DrainingState, Since: changed, Reason: reasonWeight}
	}
	s := l.Gate.Standing()
	if s.State == fallback.Ready && s.Since.Before(changed) {
		s.Since = changed
	}
	s.Since = s.Since.UTC()
	return s
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func said(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func share(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	s := float64(part) / float64(whole)
	return &s
}
