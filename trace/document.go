package trace

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// MarshalJSON renders the record as the timeline of the admin API.
func (r *Record) MarshalJSON() ([]byte, error) {
	d := document{
		ID: r.ID, ClientID: word(r.ClientID), UpstreamIDs: r.UpstreamIDs,
		Tenant: word(r.Tenant), KeyID: word(r.KeyID), Model: word(r.Model), AskedModel: word(r.AskedModel),
		Dialect: r.Dialect, UpstreamDialect: word(r.UpstreamDialect), Stream: r.Stream,
		Client: clientDoc{word(r.Client.Agent), word(r.Client.Session), r.Client.RetryCount}, Tags: r.Tags,
		Outcome: word(r.Outcome), Phase: r.Phase, Side: word(r.Side), Limit: word(r.Limit), Status: present(r.Status),
		Open: instant{r.Opened}, Snapshot: instant{r.Taken},
		TTFT: maybe(r.TTFT()), Duration: maybe(r.Duration()), Queue: maybe(r.Queue()), TPOT: maybe(r.TPOT()),
		TBT: r.TBT.document(),
		Tokens: tokensDoc{count(r.Tokens.Input), count(r.Tokens.Output), count(r.Tokens.CacheRead),
			count(r.Tokens.CacheWrite), count(r.Tokens.Reasoning), word(r.Tokens.Source)},
		Cost: measured(r.Cost), FinishReason: word(r.FinishReason),
		Limiter: limiterDoc{word(r.Limiter.Decision), word(r.Limiter.Dimension), millis(r.Limiter.Wait)},
		Route:   routeDoc{Strategy: word(r.Route.Strategy)},
		Engine:  engineDoc{count(r.Engine.Waiting), count(r.Engine.Running), measured(r.Engine.KVUsed)},
		Gaps:    r.Gaps, WriteStall: millis(r.WriteStall), PickWork: millis(r.PickTime),
		RelayWork: millis(r.RelayTime), Findings: r.Findings,
	}
	if r.Error != nil {
		d.Error = &errorDoc{r.Error.Kind, r.Error.Message}
	}
	for m, p := range d.times() {
		p.Time = r.At(Mark(m))
	}
	for i := range r.Attempts {
		d.Attempts = append(d.Attempts, r.attemptDocument(&r.Attempts[i]))
	}
	for _, n := range r.Notes {
		d.Notes = append(d.Notes, noteDoc(n))
	}
	for _, c := range r.Route.Considered {
		d.Route.Considered = append(d.Route.Considered, consideredDoc{c.Deployment, finite(c.Score), word(c.Excluded)})
	}
	return json.Marshal(&d)
}

// times are the fields of the marks, in the order of the marks.
func (d *document) times() [numMarks]*instant {
	return [numMarks]*instant{&d.Enqueue, &d.Admit, &d.Pick, &d.Dispatch, &d.Headers, &d.FirstByte, &d.Commit,
		&d.FirstToken, &d.LastToken, &d.Finish}
}

func (b TBT) document() tbtDoc {
	if b.Count == 0 {
		return tbtDoc{0, Unknown, Unknown, Unknown, Unknown, 0}
	}
	return tbtDoc{b.Count, millis(b.P50), millis(b.P90), millis(b.P99), millis(b.Max), b.Stalls}
}

func (r *Record) attemptDocument(a *Attempt) attemptDoc {
	return attemptDoc{
		N: a.N, Deployment: a.Deployment, Model: word(a.Model), Start: r.wall(a.Start), Connect: millis(a.Connect),
		Sent: millis(a.Sent), Headers: millis(a.Headers), FirstByte: millis(a.FirstByte), FirstToken: millis(a.FirstToken),
		End: r.wall(a.End), Outcome: word(a.Result), Fault: word(a.Fault), Status: present(a.Status),
		UpstreamID: word(a.UpstreamID), AbortSent: r.wall(a.AbortSent), AbortReason: word(a.AbortReason),
	}
}

// wall renders an offset from Opened; Unknown is no time.
func (r *Record) wall(d time.Duration) instant {
	if d < 0 {
		return instant{}
	}
	return instant{r.Opened.UTC().Add(d)}
}

func maybe(d time.Duration, ok bool) millis {
	if !ok {
		return Unknown
	}
	return millis(d)
}

func present(status int) *int {
	if status == 0 {
		return nil
	}
	return &status
}

func measured(f float64) *float64 {
	if f < 0 || finite(f) != f {
		return nil
	}
	return &f
}

// finite keeps JSON valid whatever a score was divided by.
func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// UnmarshalJSON reads what MarshalJSON wrote. The histogram of the gaps is not part of it; their summary is.
func (r *Record) UnmarshalJSON(b []byte) error {
	d := document{Cost: nil}
	if err := json.Unmarshal(b, &d); err != nil {
		return fmt.Errorf("cannot read timeline: %w", err)
	}
	*r = *NewRecord(d.Open.Time)
	r.ID, r.ClientID, r.UpstreamIDs = d.ID, string(d.ClientID), d.UpstreamIDs
	r.Tenant, r.KeyID, r.Model, r.AskedModel = string(d.Tenant), string(d.KeyID), string(d.Model), string(d.AskedModel)
	r.Dialect, r.UpstreamDialect, r.Stream = d.Dialect, string(d.UpstreamDialect), d.Stream
	r.Client = Client{string(d.Client.Agent), string(d.Client.Session), d.Client.RetryCount}
	r.Tags, r.Findings, r.Gaps = d.Tags, d.Findings, d.Gaps
	r.Outcome, r.Phase, r.Side = Outcome(d.Outcome), d.Phase, Side(d.Side)
	if d.Error != nil {
		r.Error = &ErrorInfo{d.Error.Kind, d.Error.Message}
	}
	r.Limit, r.Status, r.FinishReason = string(d.Limit), deref(d.Status), string(d.FinishReason)
	r.Tokens = Tokens{int64(d.Tokens.Input), int64(d.Tokens.Output), int64(d.Tokens.CacheRead),
		int64(d.Tokens.CacheWrite), int64(d.Tokens.Reasoning), string(d.Tokens.Source)}
	r.Cost, r.Engine.KVUsed = orUnknown(d.Cost), orUnknown(d.Engine.KVUsed)
	r.Engine.Waiting, r.Engine.Running = int64(d.Engine.Waiting), int64(d.Engine.Running)
	r.Limiter = LimiterVerdict{string(d.Limiter.Decision), string(d.Limiter.Dimension), time.Duration(d.Limiter.Wait)}
	r.Route.Strategy = string(d.Route.Strategy)
	r.WriteStall, r.PickTime, r.RelayTime = time.Duration(d.WriteStall), time.Duration(d.PickWork), time.Duration(d.RelayWork)
	r.TBT = d.TBT.summary()
	r.Taken = d.Snapshot.Time
	for m, p := range d.times() {
		if !p.IsZero() {
			r.Stamp(Mark(m), p.Time)
		}
	}
	if !r.Stream {
		r.ReportedTTFT = time.Duration(d.TTFT)
	}
	for i := range d.Attempts {
		r.Attempts = append(r.Attempts, r.attempt(&d.Attempts[i]))
	}
	for _, n := range d.Notes {
		r.Notes = append(r.Notes, Note(n))
	}
	for _, c := range d.Route.Considered {
		r.Route.Considered = append(r.Route.Considered, Considered{c.Deployment, c.Score, string(c.Excluded)})
	}
	return nil
}

func (d tbtDoc) summary() TBT {
	if d.Count == 0 {
		return TBT{}
	}
	return TBT{d.Count, time.Duration(d.P50), time.Duration(d.P90), time.Duration(d.P99), time.Duration(d.Max), d.Stalls}
}

func (r *Record) attempt(d *attemptDoc) Attempt {
	return Attempt{
		N: d.N, Deployment: d.Deployment, Model: string(d.Model), Start: r.offset(d.Start), Connect: time.Duration(d.Connect),
		Sent: time.Duration(d.Sent), Headers: time.Duration(d.Headers), FirstByte: time.Duration(d.FirstByte),
		FirstToken: time.Duration(d.FirstToken), End: r.offset(d.End), Result: Result(d.Outcome), Fault: string(d.Fault),
		Status: deref(d.Status), UpstreamID: string(d.UpstreamID), AbortSent: r.offset(d.AbortSent),
		AbortReason: AbortReason(d.AbortReason),
	}
}

func (r *Record) offset(i instant) time.Duration {
	if i.IsZero() {
		return Unknown
	}
	return max(i.Sub(r.Opened), 0)
}

func deref(p *int) int {
	if p == nil {
		return 0
	}
	return *p
}

func orUnknown(p *float64) float64 {
	if p == nil {
		return Unknown
	}
	return *p
}
