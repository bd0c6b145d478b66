package wire

import "tracegate/sse"

// completions is OpenAI's older text completion. Its chunks have text in place of delta, and no role chunk.
type completions struct{}

func (completions) Name() string { return "completions" }

func (completions) Observe(o *Observation, ev sse.Event) Kind {
	if k := o.match(&ev); k != 0 {
		return k
	}
	return observeChunkEvent(o, &ev)
}

func (completions) ObserveBody(o *Observation, body []byte) { observeChunkBody(o, body) }

func (completions) AppendErrorBody(dst []byte, e Error) []byte { return appendOpenAIError(dst, e) }

func (completions) AppendErrorEvent(dst []byte, e Error, _ *Observation) []byte {
	return appendOpenAIEvent(dst, e)
}

func (completions) AppendKeepalive(dst []byte) []byte { return append(dst, commentKeepalive...) }

func (completions) requestKeys() requestKeys {
	return requestKeys{maxTokens: [2]string{"max_tokens"}, maxTokensAdd: "max_tokens", usageOption: true}
}
