package proxy

import (
	"errors"
	"time"

	"tracegate/fallback"
	"tracegate/proxy/h1"
	"tracegate/trace"
	"tracegate/wire"
)

// settle takes the exchange out of the reach of abort, before the last bytes
// are written: a client that leaves when it has them has its answer (Codex
// closes its connection on the terminal event of every turn). It returns why
// the exchange was aborted before that.
func (x *exchange) settle() *fault {
	if !x.state.CompareAndSwap(active, ended) {
		return x.abortFault()
	}
	return nil
}

// errUnfinished: the stream's framing ended, its answer did not.
var errUnfinished = errors.New("the stream ended before its answer was complete")

// What an upstream may say of its answer inside it.
const (
	reported        = "the upstream reported an error inside its answer: "
	upstreamAborted = "the upstream aborted the request"
)

// lastWords writes the last bytes of a stream and says how the answer ended.
func (x *exchange) lastWords(o *output, out []byte) *fault {
	a := &x.at
	if ev, ok := a.parser.End(); ok {
		a.bare = x.route.dialect.Observe(&a.seen, ev)&wire.Failed != 0 && ev.Stray != nil || a.bare
	}
	if !a.terminal && (a.seen.Complete() || a.seen.Failure != nil) {
		out = a.piece.held // the upstream's last words, without the blank line that ends an event
	}
	switch {
	case a.seen.Failure != nil && a.bare:
		// The bytes pass, but a parser of events does not see them. They may lack the end of their line.
		if f := o.write(append(append([]byte(nil), out...), "\n\n"...)); f != nil {
			return f
		}
		return x.ofUpstream(fallback.ErrorEvent, trace.StreamInterrupted, reported+a.seen.Failure.Message)
	case a.seen.Failure != nil:
		return x.passFailure(o, out, reported+a.seen.Failure.Message)
	case a.seen.Aborted():
		return x.passFailure(o, out, upstreamAborted)
	case !a.seen.Complete():
		if f := o.write(out); f != nil {
			return f
		}
		return x.cut(errUnfinished)
	}
	if f := x.settle(); f != nil {
		return f
	}
	return o.write(out)
}

// passFailure relays an error in the upstream's own words, to the end that the
// upstream gave it: the client can see that it is one.
func (x *exchange) passFailure(o *output, out []byte, what string) *fault {
	if f := x.settle(); f != nil {
		return f
	}
	if f := o.write(out); f != nil {
		return f
	}
	f := x.ofUpstream(fallback.ErrorEvent, trace.StreamInterrupted, what)
	f.status, f.clean = x.at.status, true
	return f
}

// cut is what a broken answer means once it has begun.
func (x *exchange) cut(err error) *fault {
	if x.aborted() != "" {
		return x.abortFault()
	}
	outcome := trace.StreamInterrupted
	if x.at.answer == answerStream && x.timeline.LastToken().IsZero() {
		outcome = trace.UpstreamError
	}
	if err == errUnfinished {
		return x.ofUpstream(fallback.Cut, outcome, err.Error())
	}
	f := x.ofUpstream(fallback.Cut, outcome, whatBroke[h1.KindCut])
	f.detail = x.named(err.Error())
	return f
}

// farewell bounds the writing of an error event to a client that may not be reading.
const farewell = time.Second

// failAnswer ends an answer that has begun and failed: the upstream is let go
// at once, the client gets the dialect's error event where one can stand.
func (x *exchange) failAnswer(o *output, f *fault) {
	x.endAttempt(f)
	if x.canExplain(f) {
		if x.conn != nil {
			x.conn.SetStall(farewell)
		}
		e := f.wire(x.timeline.ID())
		_ = o.write(x.route.dialect.AppendErrorEvent(nil, e, &x.at.seen)) // the connection is closed next, whatever comes of it
	}
	x.finish(f.outcome, f)
}

// canExplain: an error event is a whole event between others, sent to a client
// that is there, and only one is sent.
func (x *exchange) canExplain(f *fault) bool {
	a := &x.at
	switch {
	case f.clean, f.kind == fallback.ClientGone, f.kind == fallback.WriteStall:
		return false
	case a.answer == answerWhole && !x.begun, a.answer == answerOpaque:
		return false
	case a.seen.Failure != nil && !a.bare && x.begun && a.answer == answerStream:
		return false
	}
	return !a.piece.loose
}
