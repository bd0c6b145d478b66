package proxy

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/routing"
	"tracegate/trace"
)

// A client that takes no bytes is let go after timeouts.write_stall, and its
// upstream with it; a slow one is not.

// isWriteStall checks all that is recorded of a client that took no bytes; stalls
// is how many of them there were so far.
func isWriteStall(t *testing.T, r *rig, rec *trace.Record, stalls int64) {
	t.Helper()
	equal(t, "outcome", rec.Outcome, trace.WriteStall)
	equal(t, "phase", rec.Phase, trace.PhaseStreaming)
	if rec.Error == nil || rec.Error.Kind != "write_stall" {
		t.Fatalf("error %+v, want kind write_stall", rec.Error)
	}
	contains(t, "message", rec.Error.Message, "timeouts.write_stall=")
	equal(t, "attempts", len(rec.Attempts), 1)
	equal(t, "abort reason", rec.Attempts[0].AbortReason, trace.AbortWriteStall)
	equal(t, "attempt's result", rec.Attempts[0].Result, trace.ResultNotTheirs)
	equal(t, "counts", r.gateway.Table().State()[0].Deployments[0].Counts, routing.Counts{ClientError: stalls}) // not the upstream's fault
	if i, ok := rec.Interruption(); !ok || i != trace.SideClient {
		t.Errorf("interrupted by %q, want the client", i)
	}
}

func TestWriteStallFiresExactly(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		r := newRig(t, setup{memory: true, config: "keepalive: 0\ntimeouts: {write_stall: 7s}"})
		c := r.send(d.path, d.longAnswer(true))
		rec := r.record()
		isWriteStall(t, r, rec, 1)
		equal(t, "fired after the first refused write", rec.WriteStall, 7*time.Second)
		equal(t, "from the abort to the end", rec.At(trace.Finish).Sub(rec.Opened.Add(rec.Attempts[0].AbortSent)), 0)
		<-time.After(time.Second) // the engine lets go at its next step
		equal(t, "running at the engine", r.engine.Running(), 0)
		isCut(t, bufio.NewReader(c))
	})
}

// TestWriteStallOnSockets: the kernel's buffers take a lot first.
func TestWriteStallOnSockets(t *testing.T) {
	r := newRig(t, setup{config: "keepalive: 0\ntimeouts: {write_stall: 150ms}"})
	r.engine.Script(fakeengine.Fault{Kind: fakeengine.BigEvent, N: 12 << 20, After: 1})
	for i, d := range dialects[:2] {
		c := r.send(d.path, d.body(true, "hello"))
		rec := r.record()
		isWriteStall(t, r, rec, int64(i+1))
		isAtRest(t, r)
		_ = c.SetReadDeadline(time.Now().Add(patience))
		isCut(t, bufio.NewReader(c))
	}
}

// TestSlowReaderIsNotCut: one that takes a little within every stall limit gets all.
func TestSlowReaderIsNotCut(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		r := newRig(t, setup{memory: true, config: "keepalive: 0\ntimeouts: {write_stall: 7s, total: 24h, idle: 24h}"})
		c := r.send(d.path, strings.Replace(d.body(true, "FAKE-TOKENS-300 MARK-77"), ":64,", ":300,", 1))
		resp, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		buf := make([]byte, 1<<10)
		for {
			n, err := resp.Body.Read(buf)
			text.Write(buf[:n])
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("cut after %d bytes: %v", text.Len(), err)
			}
			<-time.After(time.Second)
		}
		rec := r.record()
		equal(t, "outcome", rec.Outcome, trace.OK)
		contains(t, "answer", text.String(), "MARK-77")
		if rec.WriteStall < 10*time.Second {
			t.Errorf("the writes waited only %s: the reader was not slow", rec.WriteStall)
		}
	})
}
