package trace

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// layout is RFC 3339 with all nine digits of the nanoseconds.
const layout = "2006-01-02T15:04:05.000000000Z07:00"

// MarshalJSON renders the record as the timeline of the admin API.
func (r *Record) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }

// markKeys are the names of the marks' times.
var markKeys = [numMarks]string{"enqueue_time", "admit_time", "pick_time", "dispatch_time", "headers_time",
	"first_byte_time", "commit_time", "first_token_time", "last_token_time", "finish_time"}

// AppendJSON appends the timeline's JSON to dst: the answer of the admin API, the line of a store or an export. Every
// field is always there; what is not known is null, arrays are never null. It is written by hand because every
// request is stored: encoding/json takes ten times as long.
func (r *Record) AppendJSON(dst []byte) []byte {
	if dst == nil {
		dst = make([]byte, 0, 3072)
	}
	e := encoder{b: append(dst, '{')}
	e.text("id", r.ID)
	e.word("client_request_id", r.ClientID)
	e.words("upstream_request_ids", r.UpstreamIDs)
	e.word("tenant", r.Tenant)
	e.word("key_id", r.KeyID)
	e.word("model", r.Model)
	e.word("asked_model", r.AskedModel)
	e.text("dialect", r.Dialect)
	e.word("upstream_dialect", r.UpstreamDialect)
	e.flag("stream", r.Stream)
	e.open("client", '{')
	e.word("agent", r.Client.Agent)
	e.word("session", r.Client.Session)
	e.count("retry_count", int64(r.Client.RetryCount))
	e.close('}')
	e.words("tags", r.Tags)
	e.word("outcome", string(r.Outcome))
	e.text("phase", string(r.Phase))
	e.word("side", string(r.side()))
	e.failure(r.Error)
	e.word("limit", r.Limit)
	e.status(r.Status)
	e.instant("open_time", r.Opened)
	for m, key := range markKeys {
		e.instant(key, r.At(Mark(m)))
	}
	e.instant("snapshot_time", r.Taken)
	e.measures(r)
	e.attempts(r)
	e.decisions(r)
	e.open("gaps", '[')
	for _, g := range r.Gaps {
		e.comma()
		e.gap(g)
	}
	e.close(']')
	e.millis("write_stall_ms", r.WriteStall)
	e.millis("pick_work_ms", r.PickTime)
	e.millis("relay_work_ms", r.RelayTime)
	e.words("findings", r.Findings)
	e.close('}')
	return e.b
}

// encoder appends JSON. A method with a key writes the key and its value.
type encoder struct{ b []byte }

func (e *encoder) measures(r *Record) {
	e.maybe("ttft_ms", r.TTFT)
	e.maybe("duration_ms", r.Duration)
	e.maybe("queue_ms", r.Queue)
	e.maybe("tpot_ms", r.TPOT)
	tbt := r.TBT
	if tbt.Count == 0 {
		tbt = TBT{P50: Unknown, P90: Unknown, P99: Unknown, Max: Unknown}
	}
	e.open("tbt", '{')
	e.count("count", tbt.Count)
	e.millis("p50_ms", tbt.P50)
	e.millis("p90_ms", tbt.P90)
	e.millis("p99_ms", tbt.P99)
	e.millis("max_ms", tbt.Max)
	e.count("stalls", tbt.Stalls)
	e.close('}')
	e.open("tokens", '{')
	e.count("input", r.Tokens.Input)
	e.count("output", r.Tokens.Output)
	e.count("cache_read", r.Tokens.CacheRead)
	e.count("cache_write", r.Tokens.CacheWrite)
	e.count("reasoning", r.Tokens.Reasoning)
	e.word("source", r.Tokens.Source)
	e.close('}')
	e.number("cost", r.Cost)
	e.word("finish_reason", r.FinishReason)
}

func (e *encoder) attempts(r *Record) {
	e.open("attempts", '[')
	for i := range r.Attempts {
		a := &r.Attempts[i]
		e.open("", '{')
		e.count("n", int64(a.N))
		e.text("deployment", a.Deployment)
		e.word("model", a.Model)
		e.instant("start", r.wall(a.Start))
		e.millis("connect_ms", a.Connect)
		e.millis("sent_ms", a.Sent)
		e.millis("headers_ms", a.Headers)
		e.millis("first_byte_ms", a.FirstByte)
		e.millis("first_token_ms", a.FirstToken)
		e.instant("end", r.wall(a.End))
		e.word("outcome", string(a.Result))
		e.word("fault", a.Fault)
		e.status(a.Status)
		e.word("upstream_request_id", a.UpstreamID)
		e.instant("abort_sent", r.wall(a.AbortSent))
		e.word("abort_reason", string(a.AbortReason))
		e.close('}')
	}
	e.close(']')
}

// decisions writes what limiter, translation and routing decided, and on what.
func (e *encoder) decisions(r *Record) {
	e.open("limiter", '{')
	e.word("decision", r.Limiter.Decision)
	e.word("dimension", r.Limiter.Dimension)
	e.millis("wait_ms", r.Limiter.Wait)
	e.close('}')
	e.open("notes", '[')
	for _, n := range r.Notes {
		e.open("", '{')
		e.text("setting", n.Setting)
		e.text("action", n.Action)
		e.text("reason", n.Reason)
		e.close('}')
	}
	e.close(']')
	e.open("route", '{')
	e.word("strategy", r.Route.Strategy)
	e.open("considered", '[')
	for _, c := range r.Route.Considered {
		e.open("", '{')
		e.text("deployment", c.Deployment)
		e.key("score")
		e.float(c.Score)
		e.word("excluded", c.Excluded)
		e.close('}')
	}
	e.close(']')
	e.close('}')
	e.open("engine", '{')
	e.count("waiting", r.Engine.Waiting)
	e.count("running", r.Engine.Running)
	e.number("kv_used", r.Engine.KVUsed)
	e.close('}')
}

func (e *encoder) failure(info *ErrorInfo) {
	if info == nil {
		e.null("error")
		return
	}
	e.open("error", '{')
	e.text("kind", info.Kind)
	e.text("message", info.Message)
	e.close('}')
}

// wall turns an offset from Opened into a time; Unknown is none.
func (r *Record) wall(d time.Duration) time.Time {
	if d < 0 {
		return time.Time{}
	}
	return r.Opened.Add(d)
}

func (e *encoder) comma() {
	if c := e.b[len(e.b)-1]; c != '{' && c != '[' {
		e.b = append(e.b, ',')
	}
}

// key writes a key, none where the value stands in an array.
func (e *encoder) key(key string) {
	e.comma()
	if key != "" {
		e.b = append(append(append(e.b, '"'), key...), '"', ':')
	}
}

func (e *encoder) open(key string, bracket byte) {
	e.key(key)
	e.b = append(e.b, bracket)
}

func (e *encoder) close(bracket byte) { e.b = append(e.b, bracket) }

func (e *encoder) null(key string) {
	e.key(key)
	e.b = append(e.b, "null"...)
}

func (e *encoder) flag(key string, v bool) {
	e.key(key)
	e.b = strconv.AppendBool(e.b, v)
}

func (e *encoder) text(key, s string) {
	e.key(key)
	e.quote(s)
}

// word writes a string that is null when empty.
func (e *encoder) word(key, s string) {
	if s == "" {
		e.null(key)
		return
	}
	e.text(key, s)
}

func (e *encoder) words(key string, list []string) {
	e.open(key, '[')
	for _, s := range list {
		e.text("", s)
	}
	e.close(']')
}

// quote writes a string; all but plain ASCII is left to encoding/json.
func (e *encoder) quote(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic("BUG: json: a string cannot be marshalled: " + err.Error())
			}
			e.b = append(e.b, quoted...)
			return
		}
	}
	e.b = append(append(append(e.b, '"'), s...), '"')
}

func (e *encoder) count(key string, n int64) {
	if n < 0 {
		e.null(key)
		return
	}
	e.key(key)
	e.b = strconv.AppendInt(e.b, n, 10)
}

func (e *encoder) status(status int) {
	if status == 0 {
		status = Unknown
	}
	e.count("status", int64(status))
}

// number writes a measured value that is null when negative or no number.
func (e *encoder) number(key string, f float64) {
	if !(f >= 0) || math.IsInf(f, 0) {
		e.null(key)
		return
	}
	e.key(key)
	e.float(f)
}

// float keeps the JSON valid whatever a score was divided by.
func (e *encoder) float(f float64) {
	format := byte('f')
	switch a := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		f = 0
	case a != 0 && (a < 1e-6 || a >= 1e21):
		format = 'e'
	}
	e.b = strconv.AppendFloat(e.b, f, format, -1, 64)
}

func (e *encoder) instant(key string, at time.Time) {
	if at.IsZero() {
		e.null(key)
		return
	}
	e.key(key)
	e.b = append(at.UTC().AppendFormat(append(e.b, '"'), layout), '"')
}

func (e *encoder) maybe(key string, f func() (time.Duration, bool)) {
	d, ok := f()
	if !ok {
		d = Unknown
	}
	e.millis(key, d)
}

// millis writes a duration in milliseconds with its exact fraction; null when negative.
func (e *encoder) millis(key string, d time.Duration) {
	if d < 0 {
		e.null(key)
		return
	}
	e.key(key)
	e.bareMillis(d)
}

func (e *encoder) bareMillis(d time.Duration) {
	e.b = strconv.AppendInt(e.b, int64(d/time.Millisecond), 10)
	rest := int64(d % time.Millisecond)
	if rest == 0 {
		return
	}
	e.b = append(e.b, '.')
	for digit := int64(100000); rest > 0; digit /= 10 {
		e.b = append(e.b, byte('0'+rest/digit))
		rest %= digit
	}
}

func (e *encoder) gap(g Gap) {
	e.b = append(e.b, '[')
	e.bareMillis(g.Offset())
	e.b = append(e.b, ',')
	e.bareMillis(g.Length())
	e.b = append(e.b, ']')
}
