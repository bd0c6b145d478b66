package proxy

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// TestSGLangIsTold: closing alone frees a request only seconds later there, so
// its id, which we put into the body, is posted.
func TestSGLangIsTold(t *testing.T) {
	for _, mode := range []fakeengine.AbortMode{fakeengine.AbortNever, fakeengine.AbortLate} {
		t.Run(fmt.Sprintf("mode=%d", mode), func(t *testing.T) {
			inBubbles(t, func(t *testing.T, d dialectCase, stream bool) {
				r := newRig(t, setup{memory: true, deployment: "engine: sglang",
					engine: fakeengine.Options{Flavor: fakeengine.SGLang, Abort: mode, KeepBodies: true}})
				left, rec := r.leaveAfter(500*time.Millisecond, d.path, d.longAnswer(stream))
				equal(t, "outcome", rec.Outcome, trace.ClientAbort)
				rid := isTold(t, r, d, rec)
				l, _ := r.engine.Request(rec.ID + "-a1")
				equal(t, "id in the body", l.BodyID, rid)
				if l.Freed.IsZero() || l.Freed.Sub(left) > 50*time.Millisecond {
					t.Errorf("freed %s after the client left", l.Freed.Sub(left))
				}
			})
		})
	}
}

// ourEndings are the ways in which the gateway ends a request by itself.
var ourEndings = []struct {
	name, timeouts string
	faults         []fakeengine.Fault
	unread         bool         // the client takes no bytes
	end            func(r *rig) // nil = a limit does
	reason         trace.AbortReason
}{
	{"first_token", "first_token: 3s", []fakeengine.Fault{{Kind: fakeengine.Hang}}, false, nil, trace.AbortTimeoutFirstToken},
	{"idle", "idle: 3s", []fakeengine.Fault{{Kind: fakeengine.Hang, After: 3}}, false, nil, trace.AbortTimeoutIdle},
	{"total", "total: 3s", nil, false, nil, trace.AbortTimeoutTotal},
	{"write_stall", "write_stall: 3s", nil, true, nil, trace.AbortWriteStall},
	{"operator", "total: 1h", nil, false, func(r *rig) { r.book.Abort(r.only(), trace.AbortOperator) }, trace.AbortOperator},
	{"drain", "total: 1h", nil, false, func(r *rig) { r.gateway.Drain(context.Background(), 0, time.Second) }, trace.AbortDrain},
}

// TestSGLangIsToldOfOurEndings: not only of clients that left.
func TestSGLangIsToldOfOurEndings(t *testing.T) {
	for _, e := range ourEndings {
		t.Run(e.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, d dialectCase) {
				r := newRig(t, setup{memory: true, config: "keepalive: 0", deployment: "engine: sglang, timeouts: {" + e.timeouts + "}",
					engine: fakeengine.Options{Flavor: fakeengine.SGLang, Abort: fakeengine.AbortNever}})
				r.engine.Script(e.faults...)
				c := r.send(d.path, d.longAnswer(true))
				if !e.unread {
					go io.Copy(io.Discard, c) // until the gateway closes it, or the test does
				}
				if e.end != nil {
					<-time.After(time.Second)
					e.end(r)
				}
				rec := r.record()
				equal(t, "abort reason", rec.Attempts[0].AbortReason, e.reason)
				isTold(t, r, d, rec)
				_ = c.Close()
			})
		})
	}
}

// TestSGLangIsToldOfATotalLimit: also where the answer is no stream.
func TestSGLangIsToldOfATotalLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		r := newRig(t, setup{memory: true, deployment: "engine: sglang, timeouts: {total: 3s}",
			engine: fakeengine.Options{Flavor: fakeengine.SGLang, Abort: fakeengine.AbortNever}})
		equal(t, "status", r.post(d.path, d.longAnswer(false)).StatusCode, 504)
		isTold(t, r, d, r.record())
	})
}

// isTold: the engine was told the id of the only attempt, once, and works on nothing.
func isTold(t *testing.T, r *rig, d dialectCase, rec *trace.Record) (rid string) {
	t.Helper()
	rid = rec.ID + "-a1"
	if d.name == "responses" {
		rid = "resp_" + rid
	}
	<-time.After(50 * time.Millisecond) // the step in progress ends
	synctest.Wait()
	equal(t, "ids told", strings.Join(r.engine.AbortCalls(), " "), rid)
	equal(t, "running", r.engine.Running(), 0)
	return rid
}

// TestSGLangThatDoesNotListen: the telling ends by its own bound, and holds nobody up.
func TestSGLangThatDoesNotListen(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		r := newRig(t, setup{memory: true, deployment: "engine: sglang", engine: fakeengine.Options{Flavor: fakeengine.SGLang}})
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.Hang, Before: true, Path: "/abort_request"})
		left, rec := r.leaveAfter(500*time.Millisecond, d.path, d.longAnswer(true))
		equal(t, "finished after the client left", rec.At(trace.Finish).Sub(left), 0)
		synctest.Wait()
		equal(t, "connections", r.engine.Stats().Connections, 1) // on which it is told
		r.gateway.background.Wait()
		equal(t, "let go after", time.Since(left), abortRequestLimit)
		synctest.Wait()
		equal(t, "connections left", r.engine.Stats().Connections, 0)
		equal(t, "warnings", strings.Count(r.log.String(), "cannot abort request at the engine"), 1)
	})
}

// TestEngineIDIsNeverTheClients: aborting by an id that a client chose could
// hit another request of the same name, its own retry first of all.
func TestEngineIDIsNeverTheClients(t *testing.T) {
	r := newRig(t, setup{deployment: "engine: sglang", tenant: "    trust_request_id: true",
		engine: fakeengine.Options{Flavor: fakeengine.SGLang}})
	for range 2 {
		r.post("/v1/chat/completions", chatBody("Hello"), "X-Request-Id: chosen-by-client")
		equal(t, "our id", r.record().ID, "chosen-by-client")
	}
	logs := r.engine.Requests()
	equal(t, "requests", len(logs), 2)
	if logs[0].BodyID == logs[1].BodyID || strings.Contains(logs[0].BodyID, "chosen") {
		t.Errorf("rids %q and %q", logs[0].BodyID, logs[1].BodyID)
	}
}

// TestSGLangIsNotTold of requests that ended by themselves.
func TestSGLangIsNotTold(t *testing.T) {
	r := newRig(t, setup{deployment: "engine: sglang", engine: fakeengine.Options{Flavor: fakeengine.SGLang, StepBase: time.Millisecond}})
	for _, d := range dialects {
		for _, stream := range []bool{true, false} {
			equal(t, "status", r.post(d.path, d.body(stream, "hello")).StatusCode, 200)
			equal(t, "outcome", r.record().Outcome, trace.OK)
		}
	}
	r.gateway.background.Wait()
	equal(t, "calls", len(r.engine.AbortCalls()), 0)
}
