package wire

import "tracegate/sse"

// other is every route that is passed through by its model alone: rerank, score, tokenize, audio. What its answers mean
// is not known, so the end of the body is the end of the answer.
type other struct{}

func (other) Name() string { return "other" }

func (other) Observe(o *Observation, ev sse.Event) Kind { return observeOpaque(o, &ev) }

// observeOpaque reads an event of a stream of unknown meaning: any data is content, unless it is an error.
func observeOpaque(o *Observation, ev *sse.Event) Kind {
	k, data := o.frame(ev)
	if data == nil {
		return k
	}
	o.ended = true
	if isDone(data) {
		return k | o.end()
	}
	k |= observeMembers(o, data)
	if k&Failed == 0 {
		k |= Content
	}
	return o.content(k)
}

// observeMembers takes in the members that mean the same everywhere.
func observeMembers(o *Observation, data []byte) (k Kind) {
	c := cursor{b: data}
	if c.peek() != '{' {
		return 0
	}
	c.object()
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "id":
			o.readID(&c)
		case "model":
			o.readModel(&c)
		case "usage":
			if o.readUsage(&c, grossInput) {
				k |= UsageSeen
			}
		case "error":
			k |= o.readError(&c)
		default:
			c.skip()
		}
	}
	return k
}

func (other) ObserveBody(o *Observation, body []byte) { observeOpaqueBody(o, body) }

// observeOpaqueBody reads a JSON answer of unknown meaning. An answer that is no JSON (audio) is whole as well.
func observeOpaqueBody(o *Observation, body []byte) {
	o.ended = true
	o.HasContent = len(body) > 0
	observeMembers(o, body)
}

func (other) AppendErrorBody(dst []byte, e Error) []byte { return appendOpenAIError(dst, e) }

func (other) AppendErrorEvent(dst []byte, e Error, _ *Observation) []byte {
	return appendOpenAIEvent(dst, e)
}

func (other) AppendKeepalive(dst []byte) []byte { return append(dst, commentKeepalive...) }

func (other) requestKeys() requestKeys { return requestKeys{} }
