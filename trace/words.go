package trace

// Outcome is how a request ended, in one word. Empty while it runs.
type Outcome string

// The outcomes.
const (
	OK                Outcome = "ok"
	ClientAbort       Outcome = "client_abort"
	Refused           Outcome = "refused"        // by us, before dispatch
	ClientError       Outcome = "client_error"   // the upstream's 4xx, relayed
	UpstreamError     Outcome = "upstream_error" // also an answer cut before its first content
	TimeoutConnect    Outcome = "timeout_connect"
	TimeoutFirstToken Outcome = "timeout_first_token"
	TimeoutIdle       Outcome = "timeout_idle"
	TimeoutTotal      Outcome = "timeout_total"
	StreamInterrupted Outcome = "stream_interrupted" // cut after content
	EmptyStream       Outcome = "empty_stream"       // an empty 200 or a lone [DONE]
	WriteStall        Outcome = "write_stall"
	QueueTimeout      Outcome = "queue_timeout"
)

// Outcomes lists every outcome, in the order of the documentation.
var Outcomes = []Outcome{OK, ClientAbort, Refused, ClientError, UpstreamError, TimeoutConnect, TimeoutFirstToken,
	TimeoutIdle, TimeoutTotal, StreamInterrupted, EmptyStream, WriteStall, QueueTimeout}

// Phase is where a request stands, or stood at its end.
type Phase string

// The phases, in order.
const (
	PhaseAdmit             Phase = "admit"
	PhaseQueue             Phase = "queue"
	PhaseConnect           Phase = "connect"
	PhaseWaitingHeaders    Phase = "waiting_headers"
	PhaseWaitingFirstToken Phase = "waiting_first_token"
	PhaseStreaming         Phase = "streaming"
	PhaseFinished          Phase = "finished"
)

// Phases lists every phase, in order.
var Phases = []Phase{PhaseAdmit, PhaseQueue, PhaseConnect, PhaseWaitingHeaders, PhaseWaitingFirstToken, PhaseStreaming,
	PhaseFinished}

// AbortReason is why an attempt's connection was closed by us before its answer was complete.
type AbortReason string

// The abort reasons.
const (
	AbortClientGone        AbortReason = "client_gone"
	AbortTimeoutFirstToken AbortReason = "timeout_first_token"
	AbortTimeoutIdle       AbortReason = "timeout_idle"
	AbortTimeoutTotal      AbortReason = "timeout_total"
	AbortWriteStall        AbortReason = "write_stall"
	AbortDrain             AbortReason = "drain"
	AbortOperator          AbortReason = "operator"
)

// AbortReasons lists every abort reason.
var AbortReasons = []AbortReason{AbortClientGone, AbortTimeoutFirstToken, AbortTimeoutIdle, AbortTimeoutTotal,
	AbortWriteStall, AbortDrain, AbortOperator}

// Side is who broke a stream.
type Side string

// The sides.
const (
	SideClient   Side = "client"
	SideGateway  Side = "gateway"
	SideUpstream Side = "upstream"
	SideNetwork  Side = "network"
)

// Sides lists every side.
var Sides = []Side{SideClient, SideGateway, SideUpstream, SideNetwork}

// Result is how one attempt ended: the verdict on the deployment. Empty while it runs.
type Result string

// The results.
const (
	ResultOK           Result = "ok"
	ResultFault        Result = "fault"
	ResultBackpressure Result = "backpressure"
	ResultNotTheirs    Result = "not_theirs"
	ResultClientAbort  Result = "client_abort"
)

// Results lists every result.
var Results = []Result{ResultOK, ResultFault, ResultBackpressure, ResultNotTheirs, ResultClientAbort}

// Dialects lists the API dialects that a record can name.
var Dialects = []string{"messages", "chat", "completions", "responses", "embeddings", "other"}

// Where the token counts come from.
const (
	SourceUpstream  = "upstream"
	SourceEstimated = "estimated"
)

// What a translation or a cap did to a setting.
const (
	NoteDropped   = "dropped"
	NoteChanged   = "changed"
	NoteEstimated = "estimated"
)
