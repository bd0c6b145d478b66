package wire

import "tracegate/sse"

// embeddings is OpenAI's embeddings: one JSON answer, no stream, no generated tokens.
type embeddings struct{}

func (embeddings) Name() string { return "embeddings" }

func (embeddings) Observe(o *Observation, ev sse.Event) Kind { return observeOpaque(o, &ev) }

func (embeddings) ObserveBody(o *Observation, body []byte) { observeOpaqueBody(o, body) }

func (embeddings) AppendErrorBody(dst []byte, e Error) []byte { return appendOpenAIError(dst, e) }

func (embeddings) AppendErrorEvent(dst []byte, e Error, _ *Observation) []byte {
	return appendOpenAIEvent(dst, e)
}

func (embeddings) AppendKeepalive(dst []byte) []byte { return append(dst, commentKeepalive...) }

func (embeddings) requestKeys() requestKeys { return requestKeys{} }
