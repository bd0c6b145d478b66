package trace

import (
	"encoding/json"
	"fmt"
	"time"
)

// UnmarshalJSON reads what MarshalJSON wrote. The histogram of the gaps is not part of it; their summary is.
func (r *Record) UnmarshalJSON(b []byte) error {
	var d document
	if err := json.Unmarshal(b, &d); err != nil {
		return fmt.Errorf("cannot read timeline: %w", err)
	}
	*r = *NewRecord(d.Open.Time)
	r.ID, r.ClientID, r.UpstreamIDs = d.ID, string(d.ClientID), d.UpstreamIDs
	r.Tenant, r.KeyID, r.Model, r.AskedModel = string(d.Tenant), string(d.KeyID), string(d.Model), string(d.AskedModel)
	r.Dialect, r.UpstreamDialect, r.Stream = d.Dialect, string(d.UpstreamDialect), d.Stream
	r.Client = Client{string(d.Client.Agent), string(d.Client.Session), int(d.Client.RetryCount)}
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

// times are the fields of the marks, in the order of the marks.
func (d *document) times() [numMarks]*instant {
	return [numMarks]*instant{&d.Enqueue, &d.Admit, &d.Pick, &d.Dispatch, &d.Headers, &d.FirstByte, &d.Commit,
		&d.FirstToken, &d.LastToken, &d.Finish}
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
