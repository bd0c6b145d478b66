package fakeengine

import (
	"fmt"
	"strconv"
)

// completions writes /v1/completions.
type completions struct {
	buf []byte
}

func (c *completions) open(*exchange) {}

func (c *completions) begin(*exchange, *lane) {} // there is no role chunk

// prefix begins a chunk up to the value of choices.
func (c *completions) prefix(x *exchange) []byte {
	b := append(c.buf[:0], `data: {"id":`...)
	b = appendString(b, x.id)
	b = append(b, `,"object":"text_completion","created":`...)
	b = strconv.AppendInt(b, x.born, 10)
	b = append(b, `,"model":`...)
	b = appendString(b, x.c.model)
	return append(b, `,"choices":[`...)
}

func (c *completions) token(x *exchange, l *lane, p piece, reason string) {
	b := append(c.prefix(x), `{"index":`...)
	b = strconv.AppendInt(b, int64(l.index), 10)
	b = append(b, `,"text":`...)
	b = appendString(b, p.text)
	b = append(b, `,"logprobs":null,"finish_reason":`...)
	if reason == "" {
		b = append(b, `null`...)
	} else {
		b = appendString(b, reason)
	}
	b = append(b, `,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]`...)
	b = x.runningUsage(b, l, l.sent)
	if reason != "" && !x.c.usage {
		b = append(b, `,"system_fingerprint":`...)
		b = appendString(b, x.e.fingerprint())
	}
	kind := evContent
	if p.text == "" {
		kind = evPlain
	}
	c.buf = append(b, "}\n\n"...)
	x.out.emit(x, c.buf, kind)
}

func (c *completions) finish(x *exchange, l *lane, reason string) {
	c.token(x, l, piece{}, reason)
}

func (c *completions) close(x *exchange) {
	if x.c.usage && x.fault(NoUsage) == nil {
		b := append(c.prefix(x), `],"usage":`...)
		b = append(x.usage(b, false), `,"system_fingerprint":`...)
		b = appendString(b, x.e.fingerprint())
		if x.e.o.RequestMetrics {
			b = x.metrics(append(b, `,"metrics":`...), false)
		}
		c.buf = append(b, "}\n\n"...)
		x.out.emit(x, c.buf, evPlain)
	}
	c.done(x)
}

func (c *completions) done(x *exchange) { x.doneMarker() }

func (c *completions) fail(x *exchange, message string) { x.errorChunk(message) }

// doneMarker ends a stream of chat or completions.
func (x *exchange) doneMarker() {
	if x.out.struck {
		x.out.put(x, []byte("data: [DONE]\n\n"))
		return
	}
	x.out.emit(x, []byte("data: [DONE]\n\n"), evTerminal)
}

// errorChunk is the in-stream failure of chat and completions. The marker follows all the same.
func (x *exchange) errorChunk(message string) {
	x.out.head(x)
	x.out.put(x, streamError(message))
	x.out.put(x, []byte("data: [DONE]\n\n"))
}

func (c *completions) body(x *exchange) []byte {
	b := fmt.Appendf(nil, `{"id":%s,"object":"text_completion","created":%d,"model":%s,"choices":[`, quote(x.id), x.born, quote(x.c.model))
	for i, l := range x.lanes {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"index":%d,"text":%s,"logprobs":null,"finish_reason":%s,"stop_reason":null,"token_ids":null,"prompt_logprobs":null,"prompt_token_ids":null,"routed_experts":null}`,
			l.index, quote(x.answer.text(l.index, l.sent, kindText)), quote(x.finishReason(l)))
	}
	b = fmt.Appendf(b, `],"service_tier":null,"system_fingerprint":%s`, quote(x.e.fingerprint()))
	if x.fault(NoUsage) == nil {
		b = x.usage(append(b, `,"usage":`...), true)
	}
	b = append(b, `,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":`...)
	if x.e.o.RequestMetrics {
		return append(x.metrics(b, true), '}')
	}
	return append(b, `null}`...)
}
