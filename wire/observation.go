package wire

// Observation is what an answer has said so far. The zero value is ready; it may be used again after Reset.
type Observation struct {
	// ID is the answer's id as the upstream gave it, Model the name of the model in the answer. Empty: not seen.
	ID, Model string
	// FinishReason is the last finish reason in the upstream's words: finish_reason, stop_reason, or for Responses
	// "completed", "cancelled", "failed" or the reason why the answer is incomplete.
	FinishReason string
	// Usage holds the token counts; a count that was not reported is not in Usage.Known.
	Usage Usage
	// Failure is the error that the answer reported inside itself, nil if none. It stays after the first.
	Failure *Failure
	// Created is the answer's creation time in Unix seconds, 0 if not seen.
	Created int64
	// Sequence is the last sequence_number (Responses); valid if HasSequence.
	Sequence    int64
	HasSequence bool
	// HasContent: content was seen, in an event or in a whole body.
	HasContent bool
	// ReportedTTFT is the engine's own time from scheduling to the first token, ReportedQueue its own time before
	// that, both in ms; valid if Reported. (vLLM with per-request metrics.)
	ReportedTTFT, ReportedQueue float64
	Reported                    bool
	// Malformed counts events or bodies with data that is not the JSON of the dialect. Uninspected counts events that
	// were too large to be read.
	Malformed, Uninspected int

	raw      rawUsage
	choices  choiceSet
	shapes   shapeSet
	ended    bool // the dialect's own mark that the answer is whole, where there are no choices
	terminal bool
	nullStop bool // Messages: message_delta came with stop_reason null
}

// Reset makes o ready for another answer.
func (o *Observation) Reset() {
	*o = Observation{choices: o.choices.emptied(), shapes: o.shapes.emptied()}
}

// Complete reports whether the answer is whole: every choice that began has its finish reason (Chat, Completions),
// message_delta with a stop reason or message_stop was seen (Messages), response.completed or response.incomplete was
// seen (Responses), anything was seen at all (Embeddings, Other). An answer that reported a failure is never complete,
// and a lone [DONE] is not either.
func (o *Observation) Complete() bool {
	return o.Failure == nil && (o.ended || o.choices.complete())
}

// Aborted reports that the engine threw the request out: finish reason "abort", a cancelled response, or a message
// that ended with its stop_reason explicitly null, which is how vLLM says abort in that dialect.
func (o *Observation) Aborted() bool {
	return o.FinishReason == "abort" || o.FinishReason == "cancelled" ||
		o.nullStop && o.terminal && o.FinishReason == ""
}

// Terminated reports whether the dialect's last event was seen, whatever it said.
func (o *Observation) Terminated() bool { return o.terminal }

// Failure is an error in the words of an upstream.
type Failure struct {
	// Status is the HTTP status that the error stands for: the answer's own, or the one its code or type names inside a
	// 200. 0: it names none.
	Status int
	// Type, Code and Message are the upstream's own, decoded, the message cut to 1 KiB. Empty: absent.
	Type, Code, Message string
}

// Fields says which counts of a Usage are known. An absent count is unknown, never 0.
type Fields uint8

// The counts of a Usage.
const (
	FieldInput Fields = 1 << iota
	FieldOutput
	FieldCacheRead
	FieldCacheWrite
	FieldReasoning
)

// Usage holds token counts. In every dialect Input excludes the tokens read from and written to a cache (so the classes
// input, cache read, cache write and output are disjoint), and Output includes Reasoning.
type Usage struct {
	Input, Output, CacheRead, CacheWrite, Reasoning int64
	// Known says which of them were reported; the others are 0 and mean nothing.
	Known Fields
}

// Has reports whether all of the counts f are known.
func (u Usage) Has(f Fields) bool { return u.Known&f == f }
