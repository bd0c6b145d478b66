package proxy

import (
	"testing"
	"testing/synctest"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// drain_on_client_abort reads a metered answer on after its client left, for
// its usage, within the limit.

func TestUsageIsReadAfterTheClientLeft(t *testing.T) {
	inBubbles(t, func(t *testing.T, d dialectCase, stream bool) {
		r := newRig(t, setup{memory: true, deployment: "drain_on_client_abort: 10s"})
		_, rec := r.leaveAfter(500*time.Millisecond, d.path, d.body(stream, "hello")) // 64 tokens, about a second
		equal(t, "outcome", rec.Outcome, trace.ClientAbort)
		equal(t, "status", rec.Status, 499)
		equal(t, "output tokens", rec.Tokens.Output, 64)
		equal(t, "token source", rec.Tokens.Source, trace.SourceUpstream)
		equal(t, "attempts", len(rec.Attempts), 1)
		equal(t, "attempt's result", rec.Attempts[0].Result, trace.ResultClientAbort)
		synctest.Wait()
		l, _ := r.engine.Request(rec.ID + "-a1")
		equal(t, "outcome at the engine", l.Outcome, fakeengine.OutcomeFinished)
		equal(t, "finished when the engine had", rec.At(trace.Finish).Sub(l.Finished), 0)
	})
}

func TestDrainingEndsAtItsLimit(t *testing.T) {
	inBubbles(t, func(t *testing.T, d dialectCase, stream bool) {
		r := newRig(t, setup{memory: true, deployment: "drain_on_client_abort: 10s", config: "keepalive: 1s"})
		left, rec := r.leaveAfter(500*time.Millisecond, d.path, d.longAnswer(stream))
		phase := trace.PhaseWaitingHeaders
		if stream {
			phase = trace.PhaseStreaming
		}
		isClientAbort(t, r, rec, phase, 1)
		equal(t, "read on for", rec.At(trace.Finish).Sub(left), 10*time.Second)
		synctest.Wait()
		l, _ := r.engine.Request(rec.ID + "-a1")
		equal(t, "outcome at the engine", l.Outcome, fakeengine.OutcomeClientGone)
		equal(t, "the engine saw it after", l.ClientGone.Sub(left), 10*time.Second)
	})
}

// TestNothingIsDrainedBeforeItIsSent: an attempt without a connection costs nothing.
func TestNothingIsDrainedBeforeItIsSent(t *testing.T) {
	isLetGoWhileDialling(t, "drain_on_client_abort: 10s, timeouts: {connect: 60s}")
}
