// Package fallback answers: is there a next try, and may this deployment get it?
//
// It owns the meaning of a failed attempt: one table that turns what was seen
// (an error of the connection, a status, an error event) into a Kind and one of
// three verdicts. A fault is the deployment's, backpressure asks for patience,
// and not-theirs is nobody's but the client's.
//
// Everything here is a plain value: any goroutine may call any function.
//
// It never talks to an upstream, never writes to a client and never decides by
// the text of a message where a status or a typed cause decides; the few texts
// that must be read stand in texts.go.
package fallback

// Kind names why an attempt failed; the words are those of the public contract.
type Kind string

// The kinds of failure. The first block is what an attempt's connection or
// answer did, the second what the upstream said by its status.
const (
	Connect           Kind = "connect"
	DNS               Kind = "dns"
	TLS               Kind = "tls"
	TimeoutConnect    Kind = "timeout_connect"
	TimeoutFirstToken Kind = "timeout_first_token"
	TimeoutIdle       Kind = "timeout_idle"
	TimeoutTotal      Kind = "timeout_total"
	Cut               Kind = "cut"
	Empty             Kind = "empty"
	ErrorEvent        Kind = "error_event"
	Protocol          Kind = "protocol"

	Status5xx      Kind = "status_5xx"
	Draining       Kind = "draining"
	Pressure       Kind = "backpressure"
	Credential     Kind = "credential"
	NotFound       Kind = "not_found"
	ContextLength  Kind = "context_length"
	ClientError    Kind = "client_error"
	ClientGone     Kind = "client_gone"
	WriteStall     Kind = "write_stall"
	OperatorAbort  Kind = "operator"
	GatewayDrained Kind = "drain"
	NoPlace        Kind = "no_place" // no attempt was made: nothing was free
)

// Verdict says whose failure it was, which decides what the gate and the next
// try make of it.
type Verdict uint8

const (
	// None: not a failure of anybody that is counted (an engine shutting down in order).
	None Verdict = iota
	// Fault counts against the deployment.
	Fault
	// Backpressure is a healthy deployment that has no room just now.
	Backpressure
	// NotTheirs is the client's doing: its request, or its leaving.
	NotTheirs
)

// Failure is what was seen of an attempt that did not succeed.
type Failure struct {
	Kind    Kind   // of the connection or the answer; empty when Status decides
	Status  int    // the upstream's status, or the status that an error object inside a 200 names
	JSON    bool   // the body was a JSON object
	Message []byte // the upstream's words, for the few texts that must be read
}

// Classify gives the kind and the verdict of a failure. It is the only place
// where a status turns into a verdict.
func Classify(f Failure) (Kind, Verdict) {
	if f.Kind != "" {
		return f.Kind, verdictOf(f.Kind)
	}
	k := kindOfStatus(f)
	return k, verdictOf(k)
}

func kindOfStatus(f Failure) Kind {
	switch f.Status {
	case 429, 529:
		return Pressure
	case 503:
		if f.JSON {
			return Pressure
		}
		return Status5xx
	case 401, 402, 403:
		return Credential
	case 404:
		return NotFound
	case 400, 413, 422:
		if saysContextLength(f.Message) {
			return ContextLength
		}
		return ClientError
	}
	switch {
	case f.Status >= 500 && saysDraining(f.Message):
		return Draining
	case f.Status >= 500:
		return Status5xx
	case f.Status >= 400:
		return ClientError
	default:
		return Protocol // a status that no inference API answers a POST with
	}
}

func verdictOf(k Kind) Verdict {
	switch k {
	case Draining:
		return None
	case Pressure:
		return Backpressure
	case ContextLength, ClientError, NoPlace, ClientGone, WriteStall, OperatorAbort, GatewayDrained, TimeoutTotal:
		return NotTheirs
	default:
		return Fault
	}
}
