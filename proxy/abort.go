package proxy

import (
	"context"
	"time"

	"tracegate/configs"
	"tracegate/fallback"
	"tracegate/trace"
)

// The life of an exchange as seen from other goroutines. It leaves active
// once: to aborting+i by whoever calls abort first, where i is the reason's
// place in reasons, or to ended by its owner.
const (
	active int32 = iota
	ended
	aborting
)

var reasons = [...]trace.AbortReason{trace.AbortClientGone, trace.AbortOperator, trace.AbortDrain}

func aborted(reason trace.AbortReason) int32 {
	for i, r := range reasons {
		if r == reason {
			return aborting + int32(i)
		}
	}
	panic("BUG: an exchange is not aborted from outside for " + string(reason))
}

// clientLeft is called from the connection's watcher.
func (x *exchange) clientLeft() { x.abort(trace.AbortClientGone) }

// abort ends the exchange from any goroutine, in any phase, at once: it wakes
// every wait and closes the upstream connection. Only the first call counts,
// and none after the exchange has ended.
//
// Writes to a client that has left fail from here on. One that is still there
// gets what is being written and why nothing follows, if it takes them within a
// farewell: a write that is broken off would leave no room for the last words.
//
// After a client's leaving, a metered upstream may be read on for a while to
// learn what the answer cost; then only the writes are cut.
func (x *exchange) abort(reason trace.AbortReason) {
	if !x.state.CompareAndSwap(active, aborted(reason)) {
		return
	}
	switch {
	case x.conn == nil:
	case reason == trace.AbortClientGone:
		x.conn.CutWrites()
	default:
		_ = x.conn.SetWriteDeadline(time.Now().Add(farewell)) // a closed connection says so in Write
	}
	x.cutCall(reason)
	if wake := x.wake.Load(); wake != nil {
		select {
		case *wake <- struct{}{}:
		default: // it is awake already
		}
	}
}

// cutCall closes the connection of the attempt under way, or wakes its owner
// where the answer is to be read on. begin calls it too, for an abort that
// came before the call was there to be seen.
func (x *exchange) cutCall(reason trace.AbortReason) {
	c := x.call.Load()
	if c == nil {
		return
	}
	if reason == trace.AbortClientGone && x.drainable.Load() {
		c.Wake()
		return
	}
	x.timeline.AbortSent(reason)
	c.Abort()
}

// aborted is why the exchange is being aborted, "" while it is not.
func (x *exchange) aborted() trace.AbortReason {
	if s := x.state.Load(); s >= aborting {
		return reasons[s-aborting]
	}
	return ""
}

// abortFault is what an abort means for the request.
func (x *exchange) abortFault() *fault {
	outcome := trace.UpstreamError
	if !x.timeline.LastToken().IsZero() {
		outcome = trace.StreamInterrupted
	}
	switch x.aborted() {
	case trace.AbortOperator:
		return &fault{status: 503, kind: fallback.OperatorAbort, outcome: outcome, noRetry: true,
			message: "the request was ended by an operator"}
	case trace.AbortDrain:
		return &fault{status: 503, kind: fallback.GatewayDrained, outcome: outcome, retryAfter: saturatedRetry, hangUp: true,
			message: "the gateway shut down before the answer was complete: drain.timeout"}
	default:
		return clientGone()
	}
}

func clientGone() *fault {
	return &fault{status: 499, kind: fallback.ClientGone, outcome: trace.ClientAbort, hangUp: true,
		message: "the client closed its connection"}
}

// abortReasons are the faults for which an attempt ends by our own hand.
var abortReasons = map[fallback.Kind]trace.AbortReason{
	fallback.ClientGone:        trace.AbortClientGone,
	fallback.OperatorAbort:     trace.AbortOperator,
	fallback.GatewayDrained:    trace.AbortDrain,
	fallback.TimeoutFirstToken: trace.AbortTimeoutFirstToken,
	fallback.TimeoutIdle:       trace.AbortTimeoutIdle,
	fallback.TimeoutTotal:      trace.AbortTimeoutTotal,
	fallback.WriteStall:        trace.AbortWriteStall,
}

const abortRequestLimit = 2 * time.Second

// tellEngine posts the id of an aborted request to an engine that frees it
// only seconds after its connection closed (SGLang: 2 s for streams, 4 s for
// others). It runs beside the exchange, for at most abortRequestLimit.
func (x *exchange) tellEngine(up *upstream, rid string) {
	if up.spec.Profile.Abort != configs.AbortRequest {
		return
	}
	g := x.gw
	g.background.Add(1)
	go func() { // ends by its limit, or when the gateway closes
		defer g.background.Done()
		ctx, cancel := context.WithTimeout(g.stopped, abortRequestLimit)
		defer cancel()
		if err := up.abortRequest(ctx, rid); err != nil {
			g.log.Warn("cannot abort request at the engine", "deployment", up.spec.Name, "rid", rid, "error", err)
		}
	}()
}
