package fakeengine

import "fmt"

// chat writes /v1/chat/completions.
type chat struct {
	buf []byte
}

const chatChunk = "chat.completion.chunk"

func (c *chat) open(*exchange) {}

func (c *chat) begin(x *exchange, l *lane) {
	b := x.choice(c.buf[:0], chatChunk, l)
	b = append(b, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
	b = x.runningUsage(b, l, 0)
	c.buf = append(b, `,"prompt_token_ids":null,"prompt_text":null}`+"\n\n"...)
	x.out.emit(x, c.buf, evPlain)
}

func (c *chat) token(x *exchange, l *lane, p piece, reason string) {
	if p.kind == kindNothing && reason == "" {
		return // the parser holds the token back
	}
	b := append(x.choice(c.buf[:0], chatChunk, l), `,"delta":`...)
	b = c.delta(b, x, p)
	kind := evContent
	if p.kind == kindNothing || p.text == "" {
		kind = evPlain
	}
	c.tail(x, l, b, reason, kind)
}

func (c *chat) finish(x *exchange, l *lane, reason string) {
	b := append(x.choice(c.buf[:0], chatChunk, l), `,"delta":{}`...)
	c.tail(x, l, b, reason, evPlain)
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
	c.buf = x.endChoice(append(b, `,"token_ids":null`...), l, reason)
	x.out.emit(x, c.buf, kind)
}

func (c *chat) delta(b []byte, x *exchange, p piece) []byte {
	switch p.kind {
	case kindNothing:
		return append(b, `{}`...)
	case kindReasoning:
		b = append(b, '{')
		b = appendString(b, x.e.reasoningField())
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

// reasoningField is the key of the thoughts.
func (e *Engine) reasoningField() string {
	if e.o.Flavor == SGLang {
		return "reasoning_content"
	}
	return "reasoning"
}

func (c *chat) close(x *exchange) { x.endChunks(chatChunk) }

func (c *chat) done(x *exchange) { x.doneMarker() }

func (c *chat) fail(x *exchange, message string) { x.errorChunk(message) }

func (c *chat) body(x *exchange) []byte {
	b := x.wholeHead("chat.completion")
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
		b = appendString(b, x.e.reasoningField())
		b = append(b, ':')
		if x.answer.reasoning > 0 {
			b = appendString(b, x.answer.text(l.index, l.sent, kindReasoning))
		} else {
			b = append(b, `null`...)
		}
		b = fmt.Appendf(b, `},"logprobs":null,"finish_reason":%s,"stop_reason":null,"token_ids":null,"routed_experts":null}`, quote(x.finishReason(l)))
	}
	return x.endWhole(b, `,"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null,"kv_transfer_params":null,"ec_transfer_params":null`)
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
