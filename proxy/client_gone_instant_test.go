package proxy

import (
	"bufio"
	"fmt"
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
	const stay = 1234 * time.Millisecond
	for _, s := range []struct {
		gone   string // where the engine is
		engine fakeengine.Options
		before string // a prompt that keeps the engine busy
	}{
		{"queued", fakeengine.Options{MaxNumSeqs: 1}, "FAKE-TOKENS-4000 first"},
		{"prefill", fakeengine.Options{PrefillRate: 1}, ""},
		{"decode", fakeengine.Options{}, ""},
	} {
		for _, d := range dialects {
			for _, stream := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/stream=%t", s.gone, d.name, stream), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r := newRig(t, setup{memory: true, engine: s.engine, config: "keepalive: 0"})
						if s.before != "" {
							first := r.send(dialects[1].path, strings.Replace(dialects[1].body(true, s.before), ":64,", ":4000,", 1))
							defer func() { _ = first.Close(); r.record() }()
							synctest.Wait()
						}
						c := r.send(d.path, d.longAnswer(stream))
						if stream { // in-memory connections hold a few writes only
							go discard(c)
						}
						<-time.After(stay)
						left := time.Now()
						_ = c.Close()
						rec := r.record()
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
	}
}

// TestClientLeavesWhileDialling: the dial ends with the client, not with its limit.
func TestClientLeavesWhileDialling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{memory: true, dial: neverAnswers, deployment: "timeouts: {connect: 60s}"})
		c := r.send("/v1/messages", dialects[0].body(true, "hello"))
		<-time.After(time.Second)
		left := time.Now()
		_ = c.Close()
		rec := r.record()
		isClientAbort(t, r, rec, trace.PhaseConnect, 1)
		equal(t, "finished after the client left", rec.At(trace.Finish).Sub(left), 0)
	})
}

func discard(c interface{ Read([]byte) (int, error) }) {
	br := bufio.NewReader(c)
	for {
		if _, err := br.ReadByte(); err != nil {
			return
		}
	}
}
