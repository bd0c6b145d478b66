package proxy

import (
	"errors"
	"io"
	"time"

	"tracegate/fallback"
	"tracegate/proxy/h1"
	"tracegate/trace"
	"tracegate/wire"
)

// run drives the exchange until its answer begins, or says why there is none.
// It also returns nil at the keep-alive instant, with no answer yet: the
// caller gives the client a sign of life and calls it again.
func (x *exchange) run() *fault {
	for !x.answering() {
		if !x.at.open {
			if owed, f := x.place(); owed || f != nil {
				return f
			}
		}
		owed, f := x.try()
		if f != nil {
			f = x.again(f)
		}
		if owed || f != nil {
			return f
		}
	}
	x.at.permit.Content(x.firstTokenTime())
	x.countFallback(true)
	return nil
}

// answering says that the answer of an attempt is going to the client, or may.
func (x *exchange) answering() bool { return x.at.open && x.at.answer != answerNone }

// firstTokenTime is how long the attempt took to its first token; negative
// where the answer does not stream.
func (x *exchange) firstTokenTime() time.Duration {
	a := &x.at
	first := x.timeline.LastToken()
	if a.answer != answerStream || first.IsZero() {
		return -1
	}
	a.first = first
	return first.Sub(a.began)
}

// try drives the attempt until its answer begins or it fails.
func (x *exchange) try() (owed bool, f *fault) {
	for x.at.answer == answerNone {
		err := x.advance()
		if err == nil {
			continue
		}
		if errors.As(err, &f) {
			return false, f
		}
		if !errors.Is(err, h1.ErrPaused) {
			return false, x.failure(err)
		}
		if owed, f = x.paused(); owed || f != nil {
			return owed, f
		}
	}
	return false, nil
}

// advance takes the attempt one step further. Each step may return
// h1.ErrPaused and is called again.
func (x *exchange) advance() error {
	a := &x.at
	until, _ := x.deadlines.next(a.step, time.Time{})
	switch a.step {
	case stepConnect:
		if err := a.call.Connect(until); err != nil {
			return err
		}
		x.timeline.SetPhase(trace.PhaseWaitingHeaders)
		x.drainable.Store(a.up.spec.DrainOnClientAbort > 0)
		a.step = stepSend
	case stepSend:
		if err := a.call.Write(until, a.request, a.body); err != nil {
			return err
		}
		a.step = stepHead
	case stepHead:
		if a.head == nil {
			a.head = headOf()
		}
		if err := a.call.ReadHead(until, a.head); err != nil {
			return err
		}
		x.timeline.Mark(trace.Headers)
		a.status, a.upstreamID = a.head.StatusCode(), upstreamRequestID(a.head)
		a.encoding = string(a.head.Peek("Content-Encoding"))
		a.step = stepBody
		if x.expectsEvents() {
			a.step = stepContent
		}
	case stepContent:
		return x.firstContent(until)
	case stepBody:
		return x.readWhole(until)
	}
	return nil
}

// paused is asked after a wait ended without what was waited for: a limit may
// have passed, the client may be owed a sign of life, or somebody called.
func (x *exchange) paused() (owed bool, f *fault) {
	if x.aborted() != "" {
		return false, x.pausedByAbort()
	}
	switch l := x.deadlines.due(time.Now(), x.at.step, x.lastContent()); l {
	case noLimit:
		return false, nil
	case limitKeepalive:
		return true, nil
	default:
		return false, x.deadlines.fault(l, x.head.EstimatedTokens)
	}
}

// lastContent is when the silence that idle bounds began.
func (x *exchange) lastContent() time.Time {
	if x.at.step == stepUnread {
		return x.at.lastRead
	}
	return x.timeline.LastToken()
}

// pausedByAbort: the client has left, but the answer may be read on for a
// while to learn its cost.
func (x *exchange) pausedByAbort() *fault {
	d := &x.deadlines
	if x.aborted() != trace.AbortClientGone || !x.drainable.Load() {
		return x.abortFault()
	}
	now := time.Now()
	if d.drained.IsZero() {
		d.drained = now.Add(x.at.up.spec.DrainOnClientAbort)
		d.keepalive = 0
		return nil
	}
	if l := d.due(now, x.at.step, x.lastContent()); l != noLimit {
		return x.abortFault()
	}
	return nil
}

// expectsEvents says whether the answer that begins is to be read as an event
// stream. What the client asked for decides; the content type does not, for
// engines and resellers get it wrong. firstContent looks at the first byte.
func (x *exchange) expectsEvents() bool {
	return x.streams() && x.at.status == 200 && !x.at.encoded()
}

// firstContent reads the stream up to its first content. Until then nothing
// has been sent, so a failure can still become a status, or another attempt.
func (x *exchange) firstContent(until time.Time) error {
	a := &x.at
	b, err := a.call.Next(until)
	if err != nil {
		return x.endedBeforeContent(err)
	}
	if a.events == 0 && len(a.pending) == 0 && len(a.piece.held) == 0 && isJSON(b) { // the first byte of all
		a.whole = append(a.whole, b...)
		a.step = stepBody
		return nil
	}
	x.timeline.Mark(trace.FirstByte)
	out, saw := x.look(b)
	a.pending = append(a.pending, out...)
	a.events += saw.events
	switch {
	case saw.tokens > 0:
	case saw.kinds&wire.Failed != 0:
		return x.reportedFailure()
	case a.stopped:
		return x.emptyStream()
	case a.terminal && a.seen.Aborted():
		return x.ofUpstream(fallback.ErrorEvent, trace.UpstreamError, upstreamAborted)
	case !a.terminal && len(a.pending) < pendingLimit && !a.piece.loose:
		return nil
	}
	a.answer = answerStream
	return nil
}

// pendingLimit bounds what is held of a stream before its first content; a
// longer preface begins the answer.
const pendingLimit = 1 << 20

// endedBeforeContent: the stream ended, or broke, before any content.
func (x *exchange) endedBeforeContent(err error) error {
	a := &x.at
	if err != io.EOF {
		return err
	}
	if ev, ok := a.parser.End(); ok {
		x.route.dialect.Observe(&a.seen, ev)
		if a.seen.Failure != nil {
			return x.reportedFailure()
		}
	}
	if a.seen.Complete() {
		a.answer, a.terminal = answerStream, true
		return nil
	}
	if a.events == 0 || a.seen.Terminated() {
		return x.emptyStream()
	}
	return x.ofUpstream(fallback.Cut, trace.UpstreamError, "the stream ended before its first token")
}

func (x *exchange) emptyStream() *fault {
	return x.ofUpstream(fallback.Empty, trace.EmptyStream, "the stream ended without any content")
}

// reportedFailure is an error object inside a 200, before any content.
func (x *exchange) reportedFailure() *fault {
	why := x.at.seen.Failure
	kind, _ := fallback.Classify(fallback.Failure{Kind: fallback.ErrorEvent})
	if why.Status != 0 {
		kind, _ = fallback.Classify(fallback.Failure{Status: why.Status, JSON: true, Message: []byte(why.Code + " " + why.Type + " " + why.Message)})
	}
	return &fault{status: 502, kind: kind, outcome: trace.UpstreamError,
		message: "deployment " + x.at.name() + " answered 200 with an error: " + why.Message}
}
