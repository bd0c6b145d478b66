package proxy

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"tracegate/trace"
)

// TestAbortInsideAWriteKeepsTheLastWords: an abort of ours finds the stream at
// a moment when the client takes no bytes. What was being written goes out
// whole, and the reason behind it, if the client reads on soon.
func TestAbortInsideAWriteKeepsTheLastWords(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		r := newRig(t, setup{memory: true, config: "keepalive: 0\ntimeouts: {write_stall: 1h}"})
		c := r.send(d.path, d.longAnswer(true))
		<-time.After(10 * time.Second) // long enough that the pipe is full
		equal(t, "found", r.book.Abort(r.only(), trace.AbortOperator), true)
		<-time.After(farewell / 2)
		equal(t, "running at the engine", r.engine.Running(), 0)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(resp.Body)
		equal(t, "the end", err, io.ErrUnexpectedEOF)
		if !bytes.Contains(rest, []byte("\n\n"+errorEvents[d.name])) || !bytes.Contains(rest, []byte("ended by an operator")) {
			t.Errorf("no error event of its own at the end of %q", rest[max(0, len(rest)-500):])
		}
		isOperatorAbort(t, r.record())
	})
}

// TestAbortDoesNotWaitForAClient that takes no bytes for longer than a farewell.
func TestAbortDoesNotWaitForAClient(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		r := newRig(t, setup{memory: true, config: "keepalive: 0\ntimeouts: {write_stall: 1h}"})
		c := r.send(d.path, d.longAnswer(true))
		<-time.After(10 * time.Second)
		aborted := time.Now()
		equal(t, "found", r.book.Abort(r.only(), trace.AbortOperator), true)
		rec := r.record()
		isOperatorAbort(t, rec)
		equal(t, "upstream let go after", rec.Opened.Add(rec.Attempts[0].AbortSent).Sub(aborted), 0)
		equal(t, "ended after", time.Since(aborted), farewell)
		rest, _ := io.ReadAll(c)
		if bytes.HasSuffix(rest, []byte("0\r\n\r\n")) {
			t.Error("the cut answer looks complete")
		}
	})
}

func isOperatorAbort(t *testing.T, rec *trace.Record) {
	t.Helper()
	equal(t, "outcome", rec.Outcome, trace.StreamInterrupted)
	equal(t, "kind", rec.Error.Kind, "operator")
	equal(t, "abort reason", rec.Attempts[0].AbortReason, trace.AbortOperator)
}
