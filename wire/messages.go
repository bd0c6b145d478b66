package wire

import "tracegate/sse"

// messages is Anthropic's Messages, count_tokens included.
type messages struct{}

func (messages) Name() string { return "messages" }

func (messages) Observe(o *Observation, ev sse.Event) Kind {
	if k := o.match(&ev); k != 0 {
		return k
	}
	k, data := o.frame(&ev)
	if data == nil {
		if string(ev.Name) == "message_stop" {
			o.ended = true
			k |= o.end()
		}
		return k
	}
	seen, m := observeMessage(o, data, ev.Name)
	o.learn(k|seen, data, &m)
	return o.content(k | seen)
}

// observeMessage reads one event. What it is, its JSON says; the event's name counts only where the JSON has no type.
func observeMessage(o *Observation, data, name []byte) (k Kind, m marks) {
	c, ok := o.openEvent(data)
	if !ok {
		return 0, m
	}
	typ := name
	var delta messageDelta
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "type":
			if raw, ok := c.str(); ok {
				typ = raw
			}
		case "message":
			k |= readMessage(o, &c)
		case "delta", "content_block":
			delta.read(&c, &m)
		case "usage":
			if o.readUsage(&c, netInput) {
				k |= UsageSeen
			}
		case "error":
			k |= o.readError(&c)
		default:
			c.skip()
		}
	}
	if c.bad {
		o.Malformed++
	}
	switch string(typ) {
	case "content_block_delta", "content_block_start":
		k |= delta.content
	case "message_delta":
		o.nullStop = delta.nullStop
		if k |= o.finished(delta.stop); k&Finish != 0 {
			o.ended = true
		}
	case "message_stop":
		o.ended = true
		k |= o.end()
	case "error":
		k |= o.fail(&Failure{Type: "error"})
	}
	return k, m
}

// messageDelta is the delta or the content_block of an event.
type messageDelta struct {
	content  Kind
	stop     []byte
	nullStop bool
}

// read takes in a delta. Which of its texts are content, their names say: a signature is none, nor is the name of a
// tool, which comes before its arguments.
func (d *messageDelta) read(c *cursor, m *marks) {
	if !c.object() {
		return
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "text", "thinking", "partial_json":
			raw, ok := c.str()
			d.content |= m.text(c, raw, ok)
		case "stop_reason":
			d.nullStop = c.peek() == 'n'
			d.stop, _ = c.str()
		default:
			c.skip()
		}
	}
}

// readMessage reads the message object of message_start.
func readMessage(o *Observation, c *cursor) (k Kind) {
	if !c.object() {
		return 0
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "id":
			o.readID(c)
		case "model":
			o.readModel(c)
		case "usage":
			if o.readUsage(c, netInput) {
				k |= UsageSeen
			}
		default:
			c.skip()
		}
	}
	return k
}

func (messages) ObserveBody(o *Observation, body []byte) {
	c := cursor{b: body}
	if c.peek() != '{' {
		o.Malformed++
		return
	}
	c.object()
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "id":
			o.readID(&c)
		case "model":
			o.readModel(&c)
		case "usage":
			o.readUsage(&c, netInput)
		case "error":
			o.readError(&c)
		case "stop_reason":
			o.nullStop = c.peek() == 'n'
			raw, _ := c.str()
			o.finished(raw)
		case "content":
			o.content(composite(&c))
			o.ended = true
		case "input_tokens": // count_tokens: what was counted was not spent
			c.skip()
			o.ended = true
		default:
			c.skip()
		}
	}
	o.endBody(c.bad)
}

func (messages) AppendErrorBody(dst []byte, e Error) []byte { return appendAnthropicError(dst, e) }

func (messages) AppendErrorEvent(dst []byte, e Error, _ *Observation) []byte {
	dst = append(dst, "event: error\ndata: "...)
	return append(appendAnthropicError(dst, e), "\n\n"...)
}

func (messages) AppendKeepalive(dst []byte) []byte {
	return append(dst, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...)
}

func (messages) requestKeys() requestKeys {
	return requestKeys{maxTokens: [2]string{"max_tokens"}, maxTokensAdd: "max_tokens", metadata: true}
}
