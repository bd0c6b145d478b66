package proxy

import (
	"fmt"
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
				rid := rec.ID + "-a1"
				if d.name == "responses" {
					rid = "resp_" + rid
				}
				<-time.After(50 * time.Millisecond) // the step in progress ends
				synctest.Wait()
				equal(t, "ids told", strings.Join(r.engine.AbortCalls(), " "), rid)
				l, _ := r.engine.Request(rec.ID + "-a1")
				equal(t, "id in the body", l.BodyID, rid)
				equal(t, "running", r.engine.Running(), 0)
				if l.Freed.IsZero() || l.Freed.Sub(left) > 50*time.Millisecond {
					t.Errorf("freed %s after the client left", l.Freed.Sub(left))
				}
			})
		})
	}
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
