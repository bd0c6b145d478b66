package proxy

import (
	"bytes"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"tracegate/fallback"
	"tracegate/trace"
	"tracegate/wire"
)

// fault is why a request gets no answer of a model, or not a whole one. This
// file alone turns it into the client's dialect.
type fault struct {
	status     int
	code       string // of the OpenAI envelope; "" = by status
	message    string
	outcome    trace.Outcome
	kind       fallback.Kind // of the attempt that failed; "" for our own refusals
	limit      string        // the setting that decided, with its value; "" = none
	retryAfter time.Duration // 0 = none
	noRetry    bool          // asking again cannot help
	allow      string        // the methods that the path takes, of a 405
	hangUp     bool          // the connection cannot be used any further
	relay      bool          // the upstream's own status and body are the answer
	clean      bool          // the client has got all that the upstream sent, its end included
}

func refusal(status int, code, message string) *fault {
	return &fault{status: status, code: code, message: message, outcome: trace.Refused}
}

const saturatedRetry = time.Second

// saturated is a refusal for want of room: it passes with time.
func saturated(message string) *fault {
	return &fault{status: 503, message: message, outcome: trace.Refused, retryAfter: saturatedRetry}
}

func (f *fault) wire(id string) wire.Error {
	return wire.Error{Status: f.status, Code: f.code, Message: f.message, RequestID: id}
}

// refuse answers a request with a fault and finishes its exchange. Nothing of
// an answer has been sent.
func (x *exchange) refuse(ctx *fasthttp.RequestCtx, f *fault) {
	if x.aborted() != "" {
		f = x.abortFault()
		if f.kind != fallback.ClientGone && x.conn != nil {
			x.conn.ResumeWrites() // abort cut them
		}
	}
	r := &ctx.Response
	if f.relay {
		x.relayRefusal(r)
		f.retryHeaders(&r.Header)
	} else {
		f.write(r, x.route.dialect, x.timeline.ID())
	}
	x.ownHeaders(&r.Header)
	if x.gw.mode.Load() == refusing {
		r.SetConnectionClose()
	}
	x.finish(f.outcome, f)
}

// write puts the fault into a response, in the client's dialect.
func (f *fault) write(r *fasthttp.Response, dialect wire.Dialect, id string) {
	r.SetStatusCode(f.status)
	r.Header.SetContentType("application/json")
	r.SetBodyRaw(dialect.AppendErrorBody(nil, f.wire(id)))
	f.retryHeaders(&r.Header)
	if f.allow != "" {
		r.Header.Set("Allow", f.allow)
	}
	if f.hangUp {
		r.SetConnectionClose()
	}
}

func (f *fault) retryHeaders(h *fasthttp.ResponseHeader) {
	if f.retryAfter > 0 {
		seconds := int64((f.retryAfter + time.Second - 1) / time.Second)
		h.Set("Retry-After", strconv.FormatInt(seconds, 10))
		h.Set("X-Should-Retry", "true")
	} else if f.noRetry {
		h.Set("X-Should-Retry", "false")
	}
}

// relayRefusal gives the client the upstream's own words: unchanged where they
// are JSON, in the client's envelope where they are a page or plain text.
func (x *exchange) relayRefusal(r *fasthttp.Response) {
	a := &x.at
	r.SetStatusCode(a.status)
	x.copyResponseHead(&r.Header, a.head, a.passAccount())
	if isJSON(a.whole) || a.encoded() {
		r.SetBodyRaw(a.whole)
		return
	}
	r.Header.SetContentType("application/json")
	e := wire.Error{Status: a.status, Message: words(a.whole), RequestID: x.timeline.ID()}
	r.SetBodyRaw(x.route.dialect.AppendErrorBody(nil, e))
}

// isJSON: an object or an array; that is all that is needed to tell JSON from a page.
func isJSON(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n")
	return len(body) > 0 && (body[0] == '{' || body[0] == '[')
}

const quotedLimit = 1 << 10

// words are the first KiB of what an upstream said, cut at a character.
func words(body []byte) string {
	body = bytes.TrimSpace(body)
	if len(body) > quotedLimit {
		body = body[:quotedLimit]
		for len(body) > 0 {
			if r, n := utf8.DecodeLastRune(body); r != utf8.RuneError || n != 1 {
				break
			}
			body = body[:len(body)-1]
		}
	}
	if len(body) == 0 {
		return "the upstream gave no reason"
	}
	return string(body)
}
