package admin

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"tracegate/trace"
)

func TestARequestIsFoundByEachOfItsIDs(t *testing.T) {
	r := newRig(t, nil)
	r.finished("01KBADQZ3BZTQ0A4M2Q8Y3W5XN", 1, func(rec *trace.Record) {
		rec.ClientID = "the client's/own id?"
		rec.UpstreamIDs = []string{"01KBADQZ3BZTQ0A4M2Q8Y3W5XN-a1", "chatcmpl-42"}
	})
	for _, id := range []string{"01KBADQZ3BZTQ0A4M2Q8Y3W5XN", "the client's/own id?", "01KBADQZ3BZTQ0A4M2Q8Y3W5XN-a1", "chatcmpl-42"} {
		v := r.get("/api/v1/requests/" + url.PathEscape(id)).object()
		equal(t, "id found by "+id, v["id"], any("01KBADQZ3BZTQ0A4M2Q8Y3W5XN"))
		equal(t, "outcome", v["outcome"], any("ok"))
		equal(t, "enqueue time with all nanoseconds", v["enqueue_time"], any("2026-11-30T12:00:01.000000000Z"))
		equal(t, "TTFT in milliseconds", v["ttft_ms"], any(100.0))
	}
	for _, id := range []string{"unknown", "01KBADQZ3BZTQ0A4M2Q8Y3W5XN-a2", "01kbadqz3bztq0a4m2q8y3w5xn", "%"} {
		r.get("/api/v1/requests/"+url.PathEscape(id)).refused(http.StatusNotFound, "there is no timeline id=\""+id+"\"")
	}
}

func TestARunningRequestIsShownWithNullsWhereItHasNotBeen(t *testing.T) {
	r := newRig(t, nil)
	tl := r.running("my-own-id")
	for _, id := range []string{tl.ID(), "my-own-id"} {
		v := r.get("/api/v1/requests/" + id).object()
		equal(t, "id", v["id"], any(tl.ID()))
		equal(t, "phase", v["phase"], any("connect"))
		for _, reached := range []string{"enqueue_time", "dispatch_time"} {
			if v[reached] == nil {
				t.Errorf("%s is null", reached)
			}
		}
		for _, missing := range []string{"outcome", "headers_time", "first_byte_time", "first_token_time", "last_token_time",
			"finish_time", "ttft_ms", "duration_ms", "error", "finish_reason", "cost"} {
			if got, ok := v[missing]; got != nil || !ok {
				t.Errorf("%s is %v (present: %t), want null", missing, got, ok)
			}
		}
		attempts := v["attempts"].([]any)
		equal(t, "attempts", len(attempts), 1)
		equal(t, "deployment", attempts[0].(map[string]any)["deployment"], any("d1"))
		equal(t, "end of the attempt", attempts[0].(map[string]any)["end"], nil)
	}
}

func TestTheNewestIsTheAnswerForAReusedID(t *testing.T) {
	r := newRig(t, nil)
	for n, id := range []string{"first", "second", "third"} {
		r.finished(id, n, func(rec *trace.Record) { rec.ClientID = "again" })
	}
	equal(t, "of the finished ones", r.get("/api/v1/requests/again").object()["id"], any("third"))

	open := func(second int) *trace.Timeline {
		tl := r.book.Open(noon.Add(time.Duration(second) * time.Second))
		tl.Edit(func(rec *trace.Record) { rec.ClientID = "again" })
		return tl
	}
	shows := func(what string, want *trace.Timeline) {
		t.Helper()
		equal(t, what, r.get("/api/v1/requests/again").object()["id"], any(want.ID()))
	}
	// The end of the first must not put an older one before a newer one.
	first, second, third := open(11), open(12), open(13)
	shows("of the running ones", third)
	first.Finish(trace.Refused, nil)
	fourth := open(14)
	shows("after an end", fourth)

	var aborted string
	for _, tl := range []*trace.Timeline{second, third, fourth} {
		tl.OnAbort(func(trace.AbortReason) { aborted += tl.ID() })
	}
	r.call(http.MethodPost, "/api/v1/requests/again/abort").is(http.StatusAccepted)
	equal(t, "aborted", aborted, fourth.ID())

	fourth.Finish(trace.OK, nil)
	shows("a running one before every finished one", third)
	third.Finish(trace.OK, nil)
	second.Finish(trace.OK, nil)
	shows("the one that finished last", second)
}
