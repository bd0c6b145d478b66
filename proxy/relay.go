package proxy

import (
	"errors"
	"io"
	"time"

	"github.com/valyala/fasthttp"

	"tracegate/fallback"
	"tracegate/proxy/h1"
	"tracegate/proxy/hangup"
	"tracegate/trace"
	"tracegate/wire"
)

// relay gives the server the head of the answer and a body whose WriteTo goes
// on from here, on this same goroutine, after Serve has returned.
func (x *exchange) relay(ctx *fasthttp.RequestCtx) {
	r := &ctx.Response
	a := &x.at
	x.ownHeaders(&r.Header)
	if x.route.kind == routeCountTokens {
		r.Header.Set("X-Gateway-Token-Source", "upstream")
	}
	length := -1
	switch a.answer {
	case answerNone: // the keep-alive instant came first
		x.unbuffered(&r.Header)
	case answerWhole:
		x.copyHead(r)
		length = len(a.whole)
	default:
		x.copyHead(r)
		x.unbuffered(&r.Header)
		if n := a.head.ContentLength(); a.answer == answerOpaque && n >= 0 && !x.streams() { // with a length the server would not flush every read
			length = n
		}
	}
	x.sent = r.StatusCode()
	if x.gw.mode.Load() == refusing {
		r.SetConnectionClose()
	}
	a.releaseHead()
	if a.answer == answerWhole && a.status == 204 { // the server would not call WriteTo
		x.finish(trace.OK, nil)
		return
	}
	r.SetBodyStream((*body)(x), length)
}

// unbuffered asks the proxies before us to pass events on as they come.
func (x *exchange) unbuffered(h *fasthttp.ResponseHeader) {
	if !x.streams() {
		return
	}
	if len(h.ContentType()) == 0 {
		h.SetContentType("text/event-stream")
	}
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
}

// body is the exchange as the server sees it: something that writes itself.
// Each Write of w is one chunk and one flush. An error from WriteTo closes the
// client's connection without the terminating chunk, so that a cut answer
// never looks complete.
type body exchange

// SupportsBodyWriteTo implements fasthttp.BodyWriterTo.
func (b *body) SupportsBodyWriteTo() bool { return true }

// Read is never called: the server uses WriteTo.
func (b *body) Read([]byte) (int, error) { panic("BUG: the answer is written, not read") }

// Close is called by the server when it is done with the answer, whatever
// happened. An exchange that has not ended by then never began its answer
// (HEAD), or its relay panicked.
func (b *body) Close() error {
	x := (*exchange)(b)
	if !x.over {
		x.finish(trace.UpstreamError, &fault{status: 500, kind: fallback.Protocol, message: "the gateway failed inside the answer"})
	}
	return nil
}

// WriteTo writes the answer until its end.
func (b *body) WriteTo(w io.Writer) (int64, error) {
	x := (*exchange)(b)
	o := output{x: x, w: w}
	f := x.writeAnswer(&o)
	if f == nil {
		x.finish(trace.OK, nil)
		return o.written, nil
	}
	x.failAnswer(&o, f)
	if f.clean {
		return o.written, nil
	}
	return o.written, errCut
}

// errCut makes the server close the connection without the end of the body.
var errCut = errors.New("the answer was cut")

// writeAnswer goes on with run until there is something to write, then writes it.
func (x *exchange) writeAnswer(o *output) *fault {
	if x.conn != nil {
		x.conn.SetStall(x.deadlines.limits.WriteStall)
	}
	for !x.answering() {
		if f := x.keepalive(o); f != nil {
			return f
		}
		if f := x.run(); f != nil {
			return f
		}
	}
	x.timeline.Mark(trace.Commit)
	switch x.at.answer {
	case answerWhole:
		return x.writeWhole(o)
	case answerOpaque:
		return x.copyUnread(o)
	default:
		return x.stream(o)
	}
}

// output counts what the client was sent and tells why a write failed.
type output struct {
	x       *exchange
	w       io.Writer
	written int64
}

func (o *output) write(p []byte) *fault {
	if len(p) == 0 {
		return nil
	}
	if o.x.drained() {
		return nil // nobody is there to read it
	}
	n, err := o.w.Write(p)
	o.written += int64(n)
	o.x.begun = true
	if err == nil {
		return nil
	}
	return o.x.unwritable(err)
}

// drained says that the client has left and the answer is read for its usage alone.
func (x *exchange) drained() bool { return !x.deadlines.drained.IsZero() }

// unwritable: the client takes no more bytes.
func (x *exchange) unwritable(err error) *fault {
	if x.aborted() == "" && errors.Is(err, hangup.ErrStalled) {
		limit := "timeouts.write_stall=" + x.deadlines.limits.WriteStall.String()
		return &fault{status: 499, kind: fallback.WriteStall, outcome: trace.WriteStall, hangUp: true, limit: limit,
			message: "the client's socket accepted no byte within " + limit}
	}
	if x.aborted() == "" {
		x.clientLeft() // a failed write is how some departures are seen first
	}
	return x.abortFault()
}

// keepalive gives a silent client a sign of life where bytes may stand.
func (x *exchange) keepalive(o *output) *fault {
	x.deadlines.lastSign = time.Now()
	x.timeline.Mark(trace.Commit)
	if x.answering() && !x.at.piece.mayInsert(&x.at.parser) {
		return nil
	}
	return o.write(x.route.dialect.AppendKeepalive(nil))
}

func (x *exchange) writeWhole(o *output) *fault {
	a := &x.at
	if x.begun { // a keep-alive has begun an event stream, and this is none
		return &fault{status: 502, kind: fallback.Protocol, outcome: trace.UpstreamError,
			message: "deployment " + a.name() + " answered a stream request without a stream"}
	}
	x.releaseBody()
	if f := x.settle(); f != nil {
		return f
	}
	return o.write(a.whole)
}

// copyUnread passes bytes on without looking at them.
func (x *exchange) copyUnread(o *output) *fault {
	a := &x.at
	b := a.whole
	a.whole = nil
	a.step = stepUnread
	x.releaseBody()
	for {
		if f := o.write(b); f != nil {
			return f
		}
		a.lastRead = time.Now()
		var err error
		for b, err = nil, h1.ErrPaused; errors.Is(err, h1.ErrPaused); {
			until, _ := x.deadlines.next(stepUnread, a.lastRead)
			if b, err = a.call.Next(until); errors.Is(err, h1.ErrPaused) {
				if _, f := x.paused(); f != nil {
					return f
				}
			}
		}
		if err == io.EOF {
			return x.settle()
		}
		if err != nil {
			return x.cut(err)
		}
	}
}

// stream relays events: read, look, write, until the dialect's terminal event.
func (x *exchange) stream(o *output) *fault {
	a := &x.at
	out := a.pending
	a.pending = nil
	x.releaseBody()
	for {
		if a.terminal {
			return x.lastWords(o, out)
		}
		if f := o.write(out); f != nil {
			return f
		}
		if a.stopped {
			return x.cut(errUnfinished)
		}
		b, f := x.nextPiece(o)
		if f != nil {
			return f
		}
		if b == nil {
			return x.lastWords(o, nil)
		}
		var saw look
		if out, saw = x.look(b); saw.tokens == 0 {
			x.deadlines.lastSign = time.Now()
		}
	}
}

// look takes in what one read of the stream says and returns what of it may be sent.
func (x *exchange) look(b []byte) (out []byte, saw look) {
	a := &x.at
	out, saw, a.stopped = a.piece.cut(b, &a.parser, x.route.dialect, &a.seen)
	a.bare = a.bare || saw.bare
	if saw.tokens > 0 {
		x.timeline.Tokens(saw.tokens)
		a.tokens += saw.tokens
		a.step = stepStream
	}
	a.terminal = saw.kinds&wire.Terminal != 0 && !a.stopped
	return out, saw
}

// nextPiece waits for more of the stream; nil without a fault is its end.
func (x *exchange) nextPiece(o *output) ([]byte, *fault) {
	a := &x.at
	for {
		if a.until.IsZero() {
			a.until, _ = x.deadlines.next(a.step, x.timeline.LastToken())
		}
		b, err := a.call.Next(a.until)
		switch {
		case err == nil:
			return b, nil
		case err == io.EOF:
			return nil, nil
		case !errors.Is(err, h1.ErrPaused):
			return nil, x.cut(err)
		}
		a.until = time.Time{}
		if last := x.timeline.LastToken(); last.After(x.deadlines.lastSign) {
			x.deadlines.lastSign = last
		}
		owed, f := x.paused()
		if f == nil && owed {
			f = x.keepalive(o)
		}
		if f != nil {
			return nil, f
		}
	}
}
