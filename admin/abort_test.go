package admin

import (
	"net/http"
	"testing"

	"tracegate/trace"
)

func TestAbortEndsARunningRequest(t *testing.T) {
	r := newRig(t, nil)
	tl := r.running("my-own-id")
	var reasons []trace.AbortReason
	tl.OnAbort(func(reason trace.AbortReason) { reasons = append(reasons, reason) })
	for i, id := range []string{tl.ID(), "my-own-id"} {
		a := r.call(http.MethodPost, "/api/v1/requests/"+id+"/abort").is(http.StatusAccepted)
		equal(t, "body", a.body, `{"id":"`+tl.ID()+`","status":"aborting"}`+"\n")
		equal(t, "hook calls", len(reasons), i+1)
		equal(t, "reason", reasons[i], trace.AbortOperator)
	}
}

func TestAbortOfWhatDoesNotRun(t *testing.T) {
	r := newRig(t, nil)
	r.finished("done", 1, nil)
	r.call(http.MethodPost, "/api/v1/requests/done/abort").refused(http.StatusConflict, "finished", `"done"`)
	r.call(http.MethodPost, "/api/v1/requests/unknown/abort").refused(http.StatusNotFound, `"unknown"`)
	a := r.call(http.MethodGet, "/api/v1/requests/done/abort")
	a.refused(http.StatusMethodNotAllowed, "POST")
	equal(t, "Allow", a.Header.Get("Allow"), "POST")
}
