package fakeengine

import "fmt"

// completions writes /v1/completions.
type completions struct {
	buf []byte
}

const completionObject = "text_completion"

func (c *completions) open(*exchange) {}

func (c *completions) begin(*exchange, *lane) {} // there is no role chunk

func (c *completions) token(x *exchange, l *lane, p piece, reason string) {
	b := append(x.choice(c.buf[:0], completionObject, l), `,"text":`...)
	b = appendString(b, p.text)
	b = append(b, `,"logprobs":null,"finish_reason":`...)
	if reason == "" {
		b = append(b, `null`...)
	} else {
		b = appendString(b, reason)
	}
	b = append(b, `,"stop_reason":null,"prompt_token_ids":null,"token_ids":null`...)
	kind := evContent
	if p.text == "" {
		kind = evPlain
	}
	c.buf = x.endChoice(b, l, reason)
	x.out.emit(x, c.buf, kind)
}

func (c *completions) finish(x *exchange, l *lane, reason string) {
	c.token(x, l, piece{}, reason)
}

func (c *completions) close(x *exchange) { x.endChunks(completionObject) }

func (c *completions) done(x *exchange) { x.doneMarker() }

func (c *completions) fail(x *exchange, message string) { x.errorChunk(message) }

func (c *completions) body(x *exchange) []byte {
	b := x.wholeHead(completionObject)
	for i, l := range x.lanes {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"index":%d,"text":%s,"logprobs":null,"finish_reason":%s,"stop_reason":null,"token_ids":null,"prompt_logprobs":null,"prompt_token_ids":null,"routed_experts":null}`,
			l.index, quote(x.answer.text(l.index, l.sent, kindText)), quote(x.finishReason(l)))
	}
	return x.endWhole(b, `,"kv_transfer_params":null,"ec_transfer_params":null`)
}
