package wire

import "tracegate/sse"

type rawUsage struct{}
type shapeSet struct{}

func (s *shapeSet) emptied() shapeSet { return shapeSet{} }

type none struct{}

func (none) Observe(o *Observation, ev sse.Event) Kind                   { return 0 }
func (none) ObserveBody(o *Observation, body []byte)                     {}
func (none) AppendErrorBody(dst []byte, e Error) []byte                  { return dst }
func (none) AppendErrorEvent(dst []byte, e Error, o *Observation) []byte { return dst }
func (none) AppendKeepalive(dst []byte) []byte                           { return dst }
func (none) requestKeys() requestKeys                                    { return requestKeys{} }

type messages struct{ none }

func (messages) Name() string { return "messages" }

type chat struct{ none }

func (chat) Name() string { return "chat" }

type completions struct{ none }

func (completions) Name() string { return "completions" }

type responses struct{ none }

func (responses) Name() string { return "responses" }

type embeddings struct{ none }

func (embeddings) Name() string { return "embeddings" }

type other struct{ none }

func (other) Name() string { return "other" }

// Error is an error that the gateway itself reports to a client.
type Error struct {
	// Status is the HTTP status; Type and Code are derived from it per dialect when they are empty.
	Status     int
	Type, Code string
	// Message is plain text, any bytes; RequestID is left out where it is empty.
	Message, RequestID string
}

// Head is what the gateway needs to know of a request body.
type Head struct {
	Model            string
	HasModel, Stream bool
	MaxTokens        int64
	IncludeUsage     bool
	Session          string
	EstimatedTokens  int
}

// BadBody says why a request body cannot be accepted.
type BadBody struct {
	Offset  int
	Message string
}

func (e *BadBody) Error() string                     { return e.Message }
func ReadHead(d Dialect, body []byte, h *Head) error { return nil }

// Rewrite says which fields of a request to set.
type Rewrite struct {
	Model         string
	MaxTokens     int64
	IncludeUsage  bool
	RIDField, RID string
}

func (h *Head) NeedsRewrite(r Rewrite) bool                        { return false }
func (h *Head) AppendRewritten(dst, body []byte, r Rewrite) []byte { return append(dst, body...) }

// ReadFailure reads the error of an upstream's answer that is no 2xx, in whatever envelope or text it came.
func ReadFailure(status int, body []byte) *Failure { return nil }
