package trace

import "time"

// Unknown stands in a count or a duration of a Record for "not known"; it is rendered as null, never as 0.
const Unknown = -1

// Record is everything known about one request. Inside Timeline.Edit its owner fills it in; once Finish returned it,
// or Snapshot did, it is immutable and may be read from any goroutine. Empty strings and Unknown are rendered as null.
// Make one with NewRecord: the zero value would claim zeros that nobody measured.
type Record struct {
	ID          string   // ours: 26 characters, or the client's where its tenant may set ids
	ClientID    string   // what the client sent as X-Request-Id
	UpstreamIDs []string // what we sent, the answer's x-request-id or request-id, the body's id

	Tenant, KeyID            string
	Model                    string // the configured name; empty when the asked one is unknown
	AskedModel               string // the client's own text: never a label
	Dialect, UpstreamDialect string
	Stream                   bool
	Client                   Client
	Tags                     []string

	Outcome      Outcome
	Phase        Phase
	Side         Side // who broke the stream; empty: by the outcome, see Interruption
	Error        *ErrorInfo
	Limit        string // the setting that ended it, with its value: timeouts.first_token=120s
	Status       int    // HTTP status of the answer, 499 when the client left first; 0 when none
	FinishReason string
	Tokens       Tokens
	Cost         float64 // Unknown when not priced

	ReportedTTFT time.Duration // what the upstream itself reported, for answers that are no streams; else Unknown
	WriteStall   time.Duration // time that writes waited for the client
	PickTime     time.Duration // our own work to choose a deployment, without waiting; Unknown when not measured
	RelayTime    time.Duration // our own work on the answer, without waiting; Unknown when not measured

	Attempts []Attempt
	Limiter  LimiterVerdict
	Route    Route
	Engine   EngineState
	Notes    []Note
	Findings []string // ids of findings that name this request

	TBT  TBT
	Gaps []Gap // the longest gaps between content events, in order of time

	Opened time.Time // the request's first sign; every offset counts from here
	Taken  time.Time // when this copy of a running request was made; zero for a finished one

	marks  [numMarks]int64 // offset in ns + 1; 0 is missing
	hist   *Histogram
	serial uint64 // order of opening in this process
}

// Client is what the client says about itself.
type Client struct {
	Agent      string
	Session    string
	RetryCount int // what its SDK claims: x-stainless-retry-count; Unknown when it sends none
}

// ErrorInfo is a failure in two words and a sentence. It never holds prompt text.
type ErrorInfo struct {
	Kind    string
	Message string
}

// Tokens are disjoint counts: Input excludes cached tokens in every dialect. Unknown where nobody said.
type Tokens struct {
	Input, Output, CacheRead, CacheWrite, Reasoning int64
	Source                                          string // SourceUpstream or SourceEstimated; empty: none known
}

// Attempt is one try at one deployment. Durations count from Start; Unknown when it did not come to that.
type Attempt struct {
	N          int
	Deployment string
	Model      string        // where a fallback left the request's model; else empty
	Start      time.Duration // since Record.Opened
	Connect    time.Duration // how long dialling took; 0 on a reused connection
	Sent       time.Duration // dispatch
	Headers    time.Duration
	FirstByte  time.Duration
	FirstToken time.Duration
	End        time.Duration // since Record.Opened; Unknown while it runs
	Result     Result
	Fault      string // the kind of failure; empty when there was none
	Status     int    // the upstream's; 0 when none came
	UpstreamID string // what its answer called it

	AbortSent   time.Duration // since Record.Opened; Unknown when we did not abort it
	AbortReason AbortReason
}

// LimiterVerdict is what the limiter said.
type LimiterVerdict struct {
	Decision  string        // allow, deny, degraded
	Dimension string        // rpm, tpm, inflight, budget: what denied
	Wait      time.Duration // time in the decision, Redis included; Unknown when not asked
}

// Route is how the deployment was chosen.
type Route struct {
	Strategy   string
	Considered []Considered
}

// Considered is one deployment that was looked at. Excluded is the reason for leaving it out, else empty.
type Considered struct {
	Deployment string
	Score      float64
	Excluded   string
}

// EngineState is what the engine's newest sample said at dispatch. Unknown without one.
type EngineState struct {
	Waiting, Running int64
	KVUsed           float64 // 0..1
}

// Note is what a translation or a cap did.
type Note struct {
	Setting string
	Action  string // NoteDropped, NoteChanged, NoteEstimated
	Reason  string
}

// TBT sums up the gaps between content events. The durations mean something only when Count > 0.
type TBT struct {
	Count              int64
	P50, P90, P99, Max time.Duration
	Stalls             int64 // gaps over one second
}

// NewRecord returns a record in which nothing is known but when it began.
func NewRecord(opened time.Time) *Record {
	return &Record{
		Dialect: "other", Phase: PhaseAdmit, Opened: opened,
		Client: Client{RetryCount: Unknown},
		Tokens: Tokens{Input: Unknown, Output: Unknown, CacheRead: Unknown, CacheWrite: Unknown, Reasoning: Unknown},
		Cost:   Unknown, ReportedTTFT: Unknown, PickTime: Unknown, RelayTime: Unknown,
		Limiter: LimiterVerdict{Wait: Unknown},
		Engine:  EngineState{Waiting: Unknown, Running: Unknown, KVUsed: Unknown},
	}
}

// Stamp sets a mark of a record that is being rebuilt or made for a test; a running request is stamped by
// Timeline.Mark alone.
func (r *Record) Stamp(m Mark, at time.Time) { r.marks[m] = int64(max(at.Sub(r.Opened), 0)) + 1 }

// Offset returns the time from Opened to the mark, and whether the mark was reached.
func (r *Record) Offset(m Mark) (time.Duration, bool) {
	v := r.marks[m]
	return time.Duration(v - 1), v != 0
}

// At returns the wall time of the mark in UTC: Opened plus the monotonic offset. Zero when it was not reached.
func (r *Record) At(m Mark) time.Time {
	d, ok := r.Offset(m)
	if !ok {
		return time.Time{}
	}
	return r.Opened.UTC().Add(d)
}

// TTFT is first token - enqueue of a stream. Another answer has one only where the upstream reports it.
func (r *Record) TTFT() (time.Duration, bool) {
	if !r.Stream {
		return r.ReportedTTFT, r.ReportedTTFT >= 0
	}
	return r.between(Enqueue, FirstToken)
}

// Duration is finish - enqueue, or finish - opened for a request that was refused before it was read.
// It is missing while the request runs.
func (r *Record) Duration() (time.Duration, bool) {
	if d, ok := r.between(Enqueue, Finish); ok {
		return d, true
	}
	return r.Offset(Finish)
}

// Queue is the wait for a deployment: first pick - admit, or finish - admit where none was picked.
func (r *Record) Queue() (time.Duration, bool) {
	if d, ok := r.between(Admit, Pick); ok {
		return d, true
	}
	return r.between(Admit, Finish)
}

// TPOT is (last token - first token) / (output tokens - 1) of a stream.
func (r *Record) TPOT() (time.Duration, bool) {
	d, ok := r.between(FirstToken, LastToken)
	if !ok || !r.Stream || r.Tokens.Output < 2 {
		return 0, false
	}
	return d / time.Duration(r.Tokens.Output-1), true
}

// Elapsed is the time from Opened to the finish, or to the moment this copy was made.
func (r *Record) Elapsed() time.Duration {
	if d, ok := r.Offset(Finish); ok {
		return d
	}
	return max(r.Taken.Sub(r.Opened), 0)
}

// Interruption says whether a stream was broken after we began to work on it, and by whom: Side where its owner set it,
// else the usual one for the outcome.
func (r *Record) Interruption() (Side, bool) {
	if !r.Stream || r.marks[Send] == 0 && r.marks[Commit] == 0 {
		return "", false
	}
	if r.Side != "" && r.Outcome != OK {
		return r.Side, true
	}
	switch r.Outcome {
	case ClientAbort, WriteStall:
		return SideClient, true
	case StreamInterrupted, EmptyStream:
		return SideUpstream, true
	case TimeoutIdle, TimeoutTotal:
		return SideGateway, r.marks[FirstToken] != 0
	}
	return "", false
}

// side is what is told of who broke it: the interruption's, also where only its outcome says so.
func (r *Record) side() Side {
	if side, ok := r.Interruption(); ok {
		return side
	}
	return r.Side
}

// Running says whether the request had not finished when this copy was made.
func (r *Record) Running() bool { return r.marks[Finish] == 0 }

// Deployment is the last attempt's, empty when nothing was dispatched.
func (r *Record) Deployment() string {
	if len(r.Attempts) == 0 {
		return ""
	}
	return r.Attempts[len(r.Attempts)-1].Deployment
}

// Histogram is the distribution of the gaps between content events; nil when there was none, and for a record that
// was read back from JSON.
func (r *Record) Histogram() *Histogram { return r.hist }

func (r *Record) between(from, to Mark) (time.Duration, bool) {
	a, b := r.marks[from], r.marks[to]
	if a == 0 || b == 0 {
		return 0, false
	}
	return time.Duration(b - a), true
}
