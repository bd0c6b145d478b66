package proxy

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// In virtual time: the upstream is let go at the very instant at which the
// client leaves, wherever the engine stands with the request.
func TestUpstreamIsLetGoAtOnce(t *testing.T) {
	for _, s := range []struct {
		gone   string // where the engine is
		engine fakeengine.Options
		before string // a prompt that keeps the engine busy
	}{
		{"queued", fakeengine.Options{MaxNumSeqs: 1}, "FAKE-TOKENS-4000 first"},
		{"prefill", fakeengine.Options{PrefillRate: 1}, ""},
		{"decode", fakeengine.Options{}, ""},
	} {
		t.Run(s.gone, func(t *testing.T) {
			inBubbles(t, func(t *testing.T, d dialectCase, stream bool) {
				r := newRig(t, setup{memory: true, engine: s.engine, config: "keepalive: 0"})
				if s.before != "" {
					first := r.send(dialects[1].path, strings.Replace(dialects[1].body(true, s.before), ":64,", ":4000,", 1))
					defer func() { _ = first.Close(); r.record() }()
					synctest.Wait()
				}
				left, rec := r.leaveAfter(1234*time.Millisecond, d.path, d.longAnswer(stream))
				phase := trace.PhaseWaitingHeaders
				if stream {
					phase = trace.PhaseWaitingFirstToken
				}
				if stream && s.gone == "decode" {
					phase = trace.PhaseStreaming
				}
				isClientAbort(t, r, rec, phase, 1)
				equal(t, "abort sent after the client left", rec.Opened.Add(rec.Attempts[0].AbortSent).Sub(left), 0)
				equal(t, "finished after the client left", rec.At(trace.Finish).Sub(left), 0)
				synctest.Wait()
				l, _ := r.engine.Request(rec.ID + "-a1")
				equal(t, "outcome at the engine", l.Outcome, fakeengine.OutcomeClientGone)
				equal(t, "where the engine was", l.GonePhase, s.gone)
				equal(t, "the engine saw it", l.ClientGone.Sub(left), 0)
			})
		})
	}
}

// leaveAfter sends a request, hangs up after a stay and returns what was recorded of it. In virtual time.
func (r *rig) leaveAfter(stay time.Duration, path, body string) (left time.Time, rec *trace.Record) {
	r.t.Helper()
	c := r.send(path, body)
	go io.Copy(io.Discard, c) // in-memory connections hold a few writes only
	<-time.After(stay)
	left = time.Now()
	_ = c.Close()
	return left, r.record()
}

// TestClientLeavesWhileDialling: the dial ends with the client, not with its limit.
func TestClientLeavesWhileDialling(t *testing.T) {
	isLetGoWhileDialling(t, "timeouts: {connect: 60s}")
}

// isLetGoWhileDialling: the attempt ends at the instant at which the client leaves.
func isLetGoWhileDialling(t *testing.T, deployment string) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{memory: true, dial: neverAnswers, deployment: deployment})
		left, rec := r.leaveAfter(time.Second, "/v1/messages", dialects[0].body(true, "hello"))
		isClientAbort(t, r, rec, trace.PhaseConnect, 1)
		equal(t, "finished after the client left", rec.At(trace.Finish).Sub(left), 0)
	})
}
