package wire

import "tracegate/sse"

// chat is OpenAI's Chat Completions.
type chat struct{}

func (chat) Name() string { return "chat" }

func (chat) Observe(o *Observation, ev sse.Event) Kind {
	if k := o.match(&ev); k != 0 {
		return k
	}
	return observeChunkEvent(o, &ev)
}

// observeChunkEvent reads an event of a Chat or Completions stream. [DONE] does not mean success: it also follows an
// error, and is all that some failed answers consist of.
func observeChunkEvent(o *Observation, ev *sse.Event) Kind {
	k, data := o.frame(ev)
	if data == nil {
		return k
	}
	if isDone(data) {
		return k | o.end()
	}
	seen, m := observeChunk(o, data)
	o.learn(k|seen, data, &m)
	return k | seen
}

func (chat) ObserveBody(o *Observation, body []byte) { observeChunkBody(o, body) }

func observeChunkBody(o *Observation, body []byte) {
	before := o.Malformed
	observeChunk(o, body)
	if o.endBody(false); o.Malformed > before {
		o.choices = o.choices.emptied() // a broken answer is not whole, whatever its first half says
	}
}

func (chat) AppendErrorBody(dst []byte, e Error) []byte { return appendOpenAIError(dst, e) }

func (chat) AppendErrorEvent(dst []byte, e Error, _ *Observation) []byte {
	return appendOpenAIEvent(dst, e)
}

func (chat) AppendKeepalive(dst []byte) []byte { return append(dst, commentKeepalive...) }

func (chat) requestKeys() requestKeys {
	return requestKeys{maxTokens: [2]string{"max_completion_tokens", "max_tokens"}, maxTokensAdd: "max_tokens",
		session: "prompt_cache_key", usageOption: true}
}
