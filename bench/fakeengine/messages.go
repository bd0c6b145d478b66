package fakeengine

import "fmt"

// messages writes /v1/messages, which vLLM makes out of its chat stream.
type messages struct {
	buf   []byte
	block kind // of the begun block
	begun bool
	index int
	stop  string
}

// stopReasons are Anthropic's names; an abort has none.
var stopReasons = map[string]string{
	"stop": `"end_turn"`, "length": `"max_tokens"`, "tool_calls": `"tool_use"`,
}

func (m *messages) open(*exchange) {}

func (m *messages) begin(x *exchange, l *lane) {
	m.send(x, evPlain, "message_start",
		`{"type":"message_start","message":{"id":%s,"type":"message","role":"assistant","content":[],"model":%s,"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":0}}}`,
		quote(x.id), quote(x.c.model), l.q.prompt)
}

func (m *messages) token(x *exchange, l *lane, p piece, reason string) {
	switch {
	case p.kind == kindNothing:
	case p.kind == kindToolName:
		m.endBlock(x)
		m.startBlock(x, kindToolArgs, fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":{}}`, quote(x.answer.calls[p.call].id), quote(p.text)), evContent)
	case p.text == "": // half a character
	default:
		m.delta(x, p)
	}
	if reason != "" {
		m.stop = reason
	}
}

func (m *messages) delta(x *exchange, p piece) {
	if !m.begun || m.block != p.kind {
		m.endBlock(x)
		first := `{"type":"text","text":""}`
		if p.kind == kindReasoning {
			first = `{"type":"thinking","thinking":""}`
		}
		m.startBlock(x, p.kind, first, evPlain)
	}
	key, name := "text_delta", "text"
	switch p.kind {
	case kindReasoning:
		key, name = "thinking_delta", "thinking"
	case kindToolArgs:
		key, name = "input_json_delta", "partial_json"
	}
	b := append(m.buf[:0], "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\""...)
	b = append(b, key...)
	b = append(b, `","`...)
	b = append(b, name...)
	b = append(b, `":`...)
	b = appendString(b, p.text)
	m.buf = fmt.Appendf(b, "},\"index\":%d}\n\n", m.index)
	x.out.emit(x, m.buf, evContent)
}

func (m *messages) startBlock(x *exchange, k kind, block string, ev eventKind) {
	m.block, m.begun = k, true
	m.send(x, ev, "content_block_start", `{"type":"content_block_start","content_block":%s,"index":%d}`, block, m.index)
}

func (m *messages) endBlock(x *exchange) {
	if !m.begun {
		return
	}
	if m.block == kindReasoning {
		m.send(x, evPlain, "content_block_delta", `{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"%016x%016x"},"index":%d}`,
			mix(x.answer.seed), mix(x.answer.seed+1), m.index)
	}
	m.send(x, evPlain, "content_block_stop", `{"type":"content_block_stop","index":%d}`, m.index)
	m.begun = false
	m.index++
}

func (m *messages) finish(_ *exchange, _ *lane, reason string) { m.stop = reason }

func (m *messages) close(x *exchange) {
	m.endBlock(x)
	usage := ""
	if x.fault(NoUsage) == nil {
		usage = `,"usage":` + m.usage(x)
	}
	m.send(x, evPlain, "message_delta", `{"type":"message_delta","delta":{"stop_reason":%s,"stop_sequence":null}%s}`, m.reason(), usage)
	m.send(x, evTerminal, "message_stop", `{"type":"message_stop"}`)
}

func (m *messages) reason() string {
	if r, ok := stopReasons[m.stop]; ok {
		return r
	}
	return "null"
}

// usage has cache fields only with the details flag; the input is then without them.
func (m *messages) usage(x *exchange) string {
	prompt, cached, completion, _ := x.totals()
	if !x.e.o.UsageDetails {
		return fmt.Sprintf(`{"input_tokens":%d,"output_tokens":%d}`, prompt, completion)
	}
	return fmt.Sprintf(`{"input_tokens":%d,"output_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d}`, prompt-cached, completion, cached)
}

func (m *messages) send(x *exchange, k eventKind, name, format string, args ...any) {
	m.buf = namedEvent(m.buf[:0], name, format, args...)
	x.out.emit(x, m.buf, k)
}

func (m *messages) done(*exchange) {}

// fail is what the converter makes of an engine's death: it cannot parse the error, and says so.
func (m *messages) fail(x *exchange, message string) {
	if message == deathMessage {
		const input = "input_value={'error': {'message': 'En...am': None, 'code': 500}}, input_type=dict]\n    For further information visit https://errors.pydantic.dev/2.14/v/missing"
		message = "2 validation errors for ChatCompletionStreamResponse\nmodel\n  Field required [type=missing, " + input + "\nchoices\n  Field required [type=missing, " + input
	}
	x.out.head(x)
	x.out.put(x, namedEvent(nil, "error", `{"type":"error","error":{"type":"internal_error","message":%s}}`, quote(message)))
}

func (m *messages) body(x *exchange) []byte {
	l := x.lanes[0]
	m.stop = x.finishReason(l)
	b := fmt.Appendf(nil, `{"id":%s,"type":"message","role":"assistant","content":[`, quote(x.id))
	comma := func() {
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
	}
	if text := x.answer.text(0, l.sent, kindReasoning); text != "" {
		b = fmt.Appendf(b, `{"type":"thinking","thinking":%s,"signature":"%016x%016x"}`, quote(text), mix(x.answer.seed), mix(x.answer.seed+1))
	}
	if text := x.answer.text(0, l.sent, kindText); text != "" {
		comma()
		b = fmt.Appendf(b, `{"type":"text","text":%s}`, quote(text))
	}
	for i, t := range x.answer.calls {
		comma()
		b = fmt.Appendf(b, `{"type":"tool_use","id":%s,"name":%s,"input":%s}`, quote(t.id), quote(t.name), x.answer.toolInput(l.sent, i))
	}
	b = fmt.Appendf(b, `],"model":%s,"stop_reason":%s`, quote(x.c.model), m.reason())
	if x.fault(NoUsage) == nil {
		b = fmt.Appendf(b, `,"usage":%s`, m.usage(x))
	}
	return append(b, '}')
}
