package fakeengine

import (
	"fmt"
	"strconv"
)

// chat writes /v1/chat/completions.
type chat struct {
	buf []byte
}

func (c *chat) open(*exchange) {}

// prefix begins a chunk up to the value of choices.
func (c *chat) prefix(x *exchange) []byte {
	b := append(c.buf[:0], `data: {"id":`...)
	b = appendString(b, x.id)
	b = append(b, `,"object":"chat.completion.chunk","created":`...)
	b = strconv.AppendInt(b, x.born, 10)
	b = append(b, `,"model":`...)
	b = appendString(b, x.c.model)
	return append(b, `,"choices":[`...)
}

func (c *chat) begin(x *exchange, l *lane) {
	b := c.prefix(x)
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, int64(l.index), 10)
	b = append(b, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
	b = x.runningUsage(b, l, 0)
	b = append(b, `,"prompt_token_ids":null,"prompt_text":null}`...)
	c.send(x, b, evPlain)
}

func (c *chat) token(x *exchange, l *lane, p piece, reason string) {
	if p.kind == kindNothing && reason == "" {
		return // the parser holds the token back
	}
	b := c.prefix(x)
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, int64(l.index), 10)
	b = append(b, `,"delta":`...)
	b = c.delta(b, x, p)
	kind := evContent
	if p.kind == kindNothing || p.text == "" {
		kind = evPlain
	}
	c.tail(x, l, b, reason, kind)
}

func (c *chat) finish(x *exchange, l *lane, reason string) {
	b := c.prefix(x)
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, int64(l.index), 10)
	c.tail(x, l, append(b, `,"delta":{}`...), reason, evPlain)
}

// tail ends a chunk with one choice.
func (c *chat) tail(x *exchange, l *lane, b []byte, reason string, kind eventKind) {
	b = append(b, `,"logprobs":null,"finish_reason":`...)
	if reason == "" {
		b = append(b, `null`...)
	} else {
		b = appendString(b, reason)
		b = append(b, `,"stop_reason":null`...)
	}
	b = append(b, `,"token_ids":null}]`...)
	b = x.runningUsage(b, l, l.sent)
	if reason != "" && !x.c.usage {
		b = append(b, `,"system_fingerprint":`...)
		b = appendString(b, x.e.fingerprint())
	}
	c.send(x, append(b, '}'), kind)
}

func (c *chat) delta(b []byte, x *exchange, p piece) []byte {
	switch p.kind {
	case kindNothing:
		return append(b, `{}`...)
	case kindReasoning:
		b = append(b, '{')
		b = appendString(b, x.e.o.ReasoningField)
		b = append(b, ':')
		return append(appendString(b, p.text), '}')
	case kindToolName:
		return fmt.Appendf(b, `{"content":null,"tool_calls":[{"id":%s,"type":"function","index":%d,"function":{"name":%s}}]}`,
			quote(x.answer.calls[p.call].id), p.call, quote(p.text))
	case kindToolArgs:
		return fmt.Appendf(b, `{"content":null,"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, p.call, quote(p.text))
	}
	b = append(b, `{"content":`...)
	return append(appendString(b, p.text), '}')
}

func (c *chat) send(x *exchange, b []byte, kind eventKind) {
	b = append(b, "\n\n"...)
	c.buf = b
	x.out.emit(x, b, kind)
}

func (c *chat) close(x *exchange) {
	if x.c.usage && x.fault(NoUsage) == nil {
		b := append(c.prefix(x), `],"usage":`...)
		b = x.usage(b, false)
		b = append(b, `,"system_fingerprint":`...)
		b = appendString(b, x.e.fingerprint())
		if x.e.o.RequestMetrics {
			b = append(b, `,"metrics":`...)
			b = x.metrics(b, false)
		}
		c.send(x, append(b, '}'), evPlain)
	}
	c.done(x)
}

func (c *chat) done(x *exchange) { x.doneMarker() }

func (c *chat) fail(x *exchange, message string) { x.errorChunk(message) }

func (c *chat) body(x *exchange) []byte {
	b := fmt.Appendf(nil, `{"id":%s,"object":"chat.completion","created":%d,"model":%s,"choices":[`, quote(x.id), x.born, quote(x.c.model))
	for i, l := range x.lanes {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"index":%d,"message":{"role":"assistant","content":`, l.index)
		text := x.answer.text(l.index, l.sent, kindText)
		if text == "" && (x.answer.reasoning > 0 || len(x.answer.calls) > 0) {
			b = append(b, `null`...)
		} else {
			b = appendString(b, text)
		}
		b = append(b, `,"refusal":null,"annotations":null,"audio":null,"function_call":null`...)
		b = c.toolCalls(b, x, l)
		b = append(b, ',')
		b = appendString(b, x.e.o.ReasoningField)
		b = append(b, ':')
		if x.answer.reasoning > 0 {
			b = appendString(b, x.answer.text(l.index, l.sent, kindReasoning))
		} else {
			b = append(b, `null`...)
		}
		b = fmt.Appendf(b, `},"logprobs":null,"finish_reason":%s,"stop_reason":null,"token_ids":null,"routed_experts":null}`, quote(x.finishReason(l)))
	}
	b = fmt.Appendf(b, `],"service_tier":null,"system_fingerprint":%s`, quote(x.e.fingerprint()))
	if x.fault(NoUsage) == nil {
		b = x.usage(append(b, `,"usage":`...), true)
	}
	b = append(b, `,"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":`...)
	if x.e.o.RequestMetrics {
		return append(x.metrics(b, true), '}')
	}
	return append(b, `null}`...)
}

func (c *chat) toolCalls(b []byte, x *exchange, l *lane) []byte {
	if len(x.answer.calls) == 0 {
		return b
	}
	b = append(b, `,"tool_calls":[`...)
	for i, t := range x.answer.calls {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}`,
			quote(t.id), quote(t.name), quote(x.answer.toolArgs(l.sent, i)))
	}
	return append(b, ']')
}
