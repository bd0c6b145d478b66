package proxy

import (
	"bytes"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

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
	message    string // for the client: it never tells of addresses or of our credentials
	detail     string // for the timeline and the log; "" = message
	outcome    trace.Outcome
	kind       fallback.Kind // of the attempt that failed; "" for our own refusals
	limit      string        // the setting that decided, with its value; "" = none
	retryAfter time.Duration // 0 = none
	asked      time.Duration // the patience that an upstream asked for; 0 = none
	noRetry    bool          // asking again cannot help
	allow      string        // the methods that the path takes, of a 405
	hangUp     bool          // the connection cannot be used any further
	relay      bool          // the upstream's own status and body are the answer
	clean      bool          // the client has got all that the upstream sent, its end included
}

// told is all that is known of a fault, for the operator. An upstream that
// quotes our credential back to us does not get it into a timeline.
func (x *exchange) told(f *fault) string {
	text := f.message
	if f.detail != "" {
		text = f.detail
	}
	if x.at.up != nil {
		if key := x.at.up.spec.APIKey.Reveal(); key != "" {
			text = strings.ReplaceAll(text, key, "[credential]")
		}
	}
	return text
}

func refusal(status int, code, message string) *fault {
	return &fault{status: status, code: code, message: message, outcome: trace.Refused}
}

// ofUpstream is a fault of the deployment's answer, or of the way to it.
func (x *exchange) ofUpstream(kind fallback.Kind, outcome trace.Outcome, what string) *fault {
	return &fault{status: 502, kind: kind, outcome: outcome, message: x.named(what)}
}

// named says of which deployment what is told.
func (x *exchange) named(what string) string { return "deployment " + x.at.name() + ": " + what }

// lastRefusal is a refusal after which the connection cannot be used: bytes
// that were not read stand on it, or nobody knows where they end.
func lastRefusal(status int, code, message string) *fault {
	f := refusal(status, code, message)
	f.hangUp = true
	return f
}

const saturatedRetry = time.Second

// saturated is a refusal for want of room: it passes with time.
func saturated(message string) *fault {
	return &fault{status: 503, message: message, outcome: trace.Refused, retryAfter: saturatedRetry}
}

// Error makes a fault a value that a step can return beside the errors of the
// connection.
func (f *fault) Error() string { return f.message }

// errorKind is its kind in a timeline.
func (f *fault) errorKind() string {
	if f.kind != "" {
		return string(f.kind)
	}
	if f.code != "" {
		return f.code
	}
	return strconv.Itoa(f.status)
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
			_ = x.conn.SetWriteDeadline(time.Time{}) // abort's, which would outlive this answer
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
	x.copyHead(r)
	if isJSON(a.whole) || a.encoded() {
		r.SetBodyRaw(a.whole)
		return
	}
	r.Header.SetContentType("application/json")
	e := wire.Error{Status: a.status, Message: x.words(), RequestID: x.timeline.ID()}
	r.SetBodyRaw(x.route.dialect.AppendErrorBody(nil, e))
}

// isJSON: an object or an array; that is all that is needed to tell JSON from a page.
func isJSON(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n")
	return len(body) > 0 && (body[0] == '{' || body[0] == '[')
}

// words are what a page or plain text says, without its tags, the first KiB of it.
func (x *exchange) words() string {
	if said := wire.ReadFailure(x.at.status, x.at.whole).Message; said != "" {
		return said
	}
	return "the upstream gave no reason"
}

// mend keeps a bug in one exchange from taking every stream of the process
// with it: the server recovers only inside answers.
func (x *exchange) mend(ctx *fasthttp.RequestCtx) {
	bug := recover()
	if bug == nil {
		return
	}
	f := x.gw.bugFound(x.timeline.ID(), bug)
	ctx.Response.Reset()
	f.write(&ctx.Response, x.route.dialect, x.timeline.ID())
	x.ownHeaders(&ctx.Response.Header)
	if !x.over {
		x.finish(f.outcome, f)
	}
}

// mendOther does the same for what is no exchange, or not yet.
func (g *Gateway) mendOther(ctx *fasthttp.RequestCtx) {
	bug := recover()
	if bug == nil {
		return
	}
	id := trace.NewID()
	ctx.Response.Reset()
	g.bugFound(id, bug).write(&ctx.Response, wire.Chat, id)
	setOwn(&ctx.Response.Header, id, 0)
}

// bugFound logs a panic and is what its client is told.
func (g *Gateway) bugFound(id string, bug any) *fault {
	g.log.Error("an exchange panicked", "id", id, "panic", bug, "stack", string(debug.Stack()))
	return &fault{status: 500, message: "the gateway failed", outcome: trace.UpstreamError, hangUp: true}
}
