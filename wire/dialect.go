// Package wire answers: what do these bytes mean in this API dialect?
//
// It owns the five dialects' knowledge: which fields of a request decide (Head), what an event of a streamed answer or a
// whole answer says (Observation), and the bytes of what a gateway writes by itself: errors, error events, keep-alives,
// edits of a few fields of a request.
//
// A Dialect and all functions may be used by any goroutine. A Head and an Observation belong to one exchange and are used
// by one goroutine at a time.
//
// It never changes a byte that it was not asked to change, never encodes again what it has decoded, never fails because
// of a field that it does not know, and keeps no text of a prompt or an answer.
package wire

import "tracegate/sse"

// A Dialect is one API's request, stream, answer and error format.
type Dialect interface {
	// Name is the dialect's name in configuration, timelines and metrics.
	Name() string
	// Observe takes note of one event of a streamed answer and returns what it was. It neither keeps nor changes ev.
	Observe(o *Observation, ev sse.Event) Kind
	// ObserveBody takes note of a whole answer with a JSON body: id, model, usage, finish reasons, or the error object.
	// A body that is no JSON object leaves o as it is and counts as Malformed.
	ObserveBody(o *Observation, body []byte)
	// AppendErrorBody appends the JSON body of an error answer.
	AppendErrorBody(dst []byte, e Error) []byte
	// AppendErrorEvent appends the complete event that says to a client that the answer has failed after it had begun.
	// It continues what o has seen (response id, sequence number); o may be nil. It never ends the stream as if it were
	// complete.
	AppendErrorEvent(dst []byte, e Error, o *Observation) []byte
	// AppendKeepalive appends what keeps a silent stream alive without meaning anything to the client's parser. It may
	// be written only at a boundary between events.
	AppendKeepalive(dst []byte) []byte

	requestKeys() requestKeys
}

// requestKeys names the request fields that differ between dialects. An empty name: the dialect has no such field.
type requestKeys struct {
	maxTokens    [2]string // the first one present wins; maxTokensAdd is inserted where there is none
	maxTokensAdd string
	session      string // a top-level string
	metadata     bool   // the session is in metadata.user_id
	usageOption  bool   // stream_options.include_usage exists
}

// The dialects.
var (
	Messages    Dialect = messages{}
	Chat        Dialect = chat{}
	Completions Dialect = completions{}
	Responses   Dialect = responses{}
	Embeddings  Dialect = embeddings{}
	Other       Dialect = other{}
)

var all = [...]Dialect{Messages, Chat, Completions, Responses, Embeddings, Other}

// All returns every dialect.
func All() []Dialect { return append([]Dialect(nil), all[:]...) }

// ByName returns the dialect called name, nil if there is none.
func ByName(name string) Dialect {
	for _, d := range all {
		if d.Name() == name {
			return d
		}
	}
	return nil
}

// Kind is the set of things that one event of a streamed answer was. 0 is an event that only accompanies the answer
// (message_start, a role chunk, a ping, a part's beginning or end).
type Kind uint16

const (
	// Content: generated content, of which the first event is the first token: text, reasoning, the name or arguments of
	// a tool call, refusal, audio.
	Content Kind = 1 << iota
	// UsageSeen: the event reported token counts.
	UsageSeen
	// UsageOnly: the chunk that stream_options.include_usage adds and nothing else. A client that did not ask for it
	// must not get it.
	UsageOnly
	// Finish: a choice, or the message, got its finish reason.
	Finish
	// Terminal: the dialect's last event.
	Terminal
	// Failed: the event says that the answer has failed; see Observation.Failure.
	Failed
)

var kindNames = [...]string{"content", "usage", "usage_only", "finish", "terminal", "failed"}

// String lists the kinds, for tests and logs.
func (k Kind) String() string {
	s := ""
	for i, name := range kindNames {
		if k&(1<<i) == 0 {
			continue
		}
		if s != "" {
			s += "+"
		}
		s += name
	}
	if s == "" {
		return "other"
	}
	return s
}
