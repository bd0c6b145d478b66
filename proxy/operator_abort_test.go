package proxy

import (
	"io"
	"strings"
	"testing"

	"tracegate/bench/fakeengine"
	"tracegate/routing"
	"tracegate/trace"
)

// errorEvents are how each dialect says inside a stream that it has failed.
var errorEvents = map[string]string{
	"messages": "event: error\n", "chat": `data: {"error":`, "completions": `data: {"error":`, "responses": "event: response.failed\n",
}

// errorBodies are how each dialect begins the body of a refusal.
var errorBodies = map[string]string{
	"messages": `{"type":"error","error":`, "chat": `{"error":`, "completions": `{"error":`, "responses": `{"error":`,
}

// TestOperatorAborts: an operator ends a request in any phase; the client is
// told so in its dialect.
func TestOperatorAborts(t *testing.T) {
	atEachStay(t, func(t *testing.T, s stay, r *rig) {
		aborted := int64(0)
		for _, d := range dialects {
			t.Run(d.name, func(t *testing.T) {
				v := r.visit(d.path, d.longAnswer(s.stream))
				s.reach(v)
				begun := strings.HasPrefix(s.name, "after a keep-alive") || s.phase == trace.PhaseStreaming
				running := r.only()
				equal(t, "found", r.book.Abort(running, trace.AbortOperator), true)
				if begun {
					rest := isCut(t, v.br)
					contains(t, "rest of the answer", rest, errorEvents[d.name])
					contains(t, "rest of the answer", rest, "ended by an operator")
				} else {
					a := readFrom(t, v.br)
					equal(t, "status", a.StatusCode, 503)
					equal(t, "x-should-retry", a.Header.Get("X-Should-Retry"), "false")
					equal(t, "in its dialect", strings.HasPrefix(string(a.body), errorBodies[d.name]), true)
					contains(t, "body", string(a.body), "ended by an operator")
				}
				rec := r.record()
				equal(t, "id", rec.ID, running.ID)
				equal(t, "phase", rec.Phase, s.phase)
				equal(t, "attempts", len(rec.Attempts), 1)
				equal(t, "abort reason", rec.Attempts[0].AbortReason, trace.AbortOperator)
				aborted++
				counts := r.gateway.Table().State()[0].Deployments[0].Counts
				equal(t, "counts", counts, routing.Counts{ClientError: aborted}) // nobody's fault
				if s.dialed {
					engineSawTheClose(t, r, rec)
				}
				equal(t, "found again", r.book.Abort(running, trace.AbortOperator), false)
			})
		}
	})
}

// only is a snapshot of the one request that runs.
func (r *rig) only() (rec *trace.Record) {
	r.book.EachRunning(func(l *trace.Timeline) { rec = l.Snapshot() })
	return rec
}

// TestOperatorAbortLeavesTheConnectionUsable where no answer had begun.
func TestOperatorAbortLeavesTheConnectionUsable(t *testing.T) {
	r := newRig(t, setup{})
	r.engine.Script(fakeengine.Fault{Kind: fakeengine.Hang, Times: 1})
	v := r.visit("/v1/chat/completions", chatBody("hello"))
	v.stands(trace.PhaseWaitingFirstToken)
	r.book.Abort(r.only(), trace.AbortOperator)
	equal(t, "status", readFrom(t, v.br).StatusCode, 503)
	r.record()
	_ = must(io.WriteString(v.conn, request("/v1/chat/completions", chatBody("FAKE-TOKENS-3"))))
	equal(t, "status of the next", readFrom(t, v.br).StatusCode, 200)
	equal(t, "outcome of the next", r.record().Outcome, trace.OK)
}
