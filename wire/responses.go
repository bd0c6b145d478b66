package wire

import (
	"bytes"
	"strconv"

	"tracegate/sse"
)

// responses is OpenAI's Responses.
type responses struct{}

func (responses) Name() string { return "responses" }

func (responses) Observe(o *Observation, ev sse.Event) Kind {
	if k := o.match(&ev); k != 0 {
		return k
	}
	k, data := o.frame(&ev)
	if data == nil {
		// The name is enough to know the last event when a generated picture made it too large to be read.
		return k | o.responseEvent(ev.Name, responseState{})
	}
	seen, m := observeResponse(o, data, ev.Name)
	o.learn(k|seen, data, &m)
	return o.content(k | seen)
}

// observeResponse reads one event. What it is, its JSON says; the event's name counts only where the JSON has no type.
func observeResponse(o *Observation, data, name []byte) (k Kind, m marks) {
	c, ok := o.openEvent(data)
	if !ok {
		return 0, m
	}
	typ := name
	var state responseState
	var delta Kind
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "type":
			if raw, ok := c.str(); ok {
				typ = raw
			}
		case "sequence_number":
			if n, ok := c.integer(); ok {
				o.Sequence, o.HasSequence = n, true
				m.add(c.i-digits(n), c.i, numberHole)
			}
		case "delta":
			if c.peek() == '"' {
				raw, ok := c.str()
				delta = m.text(&c, raw, ok)
			} else {
				delta = composite(&c)
			}
		case "response":
			state.read(o, &c)
		case "usage":
			if o.readUsage(&c, grossInput) {
				state.kind |= UsageSeen
			}
		case "error":
			k |= o.readError(&c)
		case "obfuscation":
			m.pad(&c)
		default:
			c.skip()
		}
	}
	if c.bad {
		o.Malformed++
	}
	if bytes.HasPrefix(typ, []byte("response.")) && bytes.HasSuffix(typ, []byte(".delta")) {
		k |= delta
	}
	if string(typ) == "error" { // its code and message are beside its type
		k |= o.fail(ReadFailure(0, data))
	}
	return k | o.responseEvent(typ, state), m
}

func digits(n int64) int {
	var text [20]byte
	return len(strconv.AppendInt(text[:0], n, 10))
}

// responseEvent takes in what an event of that type means for the whole answer.
func (o *Observation) responseEvent(typ []byte, state responseState) Kind {
	k := state.kind
	switch string(typ) {
	case "response.completed", "response.incomplete":
		o.ended = true
		reason := state.reason
		if len(reason) == 0 {
			reason = typ[len("response."):]
		}
		return k | o.finished(reason) | o.end()
	case "response.failed":
		o.finished([]byte("failed"))
		return k | o.fail(&Failure{Code: "server_error", Status: 500}) | o.end()
	case "response.cancelled":
		return k | o.finished([]byte("cancelled")) | o.end()
	}
	return k
}

// responseState is what a response object says of itself.
type responseState struct {
	kind           Kind
	status, reason []byte
}

// read takes in the response object of an event, or the body of an answer that is not streamed.
func (s *responseState) read(o *Observation, c *cursor) {
	if !c.object() {
		return
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "id":
			o.readID(c)
		case "model":
			o.readModel(c)
		case "created_at":
			o.readCreated(c)
		case "status":
			s.status, _ = c.str()
		case "incomplete_details":
			s.readReason(c)
		case "output":
			o.content(composite(c))
		case "usage":
			if o.readUsage(c, grossInput) {
				s.kind |= UsageSeen
			}
		case "metrics":
			o.readTimings(c)
		case "error":
			s.kind |= o.readError(c)
		default:
			c.skip()
		}
	}
}

func (s *responseState) readReason(c *cursor) {
	if !c.object() {
		return
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		if raw, ok := memberText(key, "reason", c); ok {
			s.reason = raw
		}
	}
}

func (responses) ObserveBody(o *Observation, body []byte) {
	c := cursor{b: body}
	if c.peek() != '{' {
		o.Malformed++
		return
	}
	var state responseState
	state.read(o, &c)
	switch string(state.status) {
	case "failed":
		o.responseEvent([]byte("response.failed"), state)
	case "cancelled":
		o.responseEvent([]byte("response.cancelled"), state)
	case "queued", "in_progress": // background mode: the answer to this request is whole
		o.ended = true
	case "completed", "incomplete":
		o.responseEvent([]byte("response.completed"), state)
	}
	o.endBody(c.bad)
}

func (responses) AppendErrorBody(dst []byte, e Error) []byte { return appendOpenAIError(dst, e) }

func (responses) AppendErrorEvent(dst []byte, e Error, o *Observation) []byte {
	return appendResponseFailed(dst, e, o)
}

// AppendKeepalive appends a data event of its own type: Codex does not count comments. It has no sequence number, so
// that those of the stream stay without a gap.
func (responses) AppendKeepalive(dst []byte) []byte {
	return append(dst, "event: keepalive\ndata: {\"type\":\"keepalive\"}\n\n"...)
}

func (responses) requestKeys() requestKeys {
	return requestKeys{maxTokens: [2]string{"max_output_tokens"}, maxTokensAdd: "max_output_tokens",
		session: "prompt_cache_key"}
}
