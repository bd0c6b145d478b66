package proxy

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"tracegate/bench/fakeengine"
	"tracegate/routing"
	"tracegate/trace"
)

// How a stream can end without being whole: before its first content it is a
// status and nothing else, afterwards the dialect's error event and a closed
// connection, never a clean end and never a half event.

// endingCase is one way to end.
type endingCase struct {
	name    string
	fault   fakeengine.Fault
	kind    string // of the attempt's fault
	outcome trace.Outcome
	clean   bool // the upstream's own end is relayed: the body ends properly
	setup   setup
	only    string // the dialects in which it exists; "" = all
}

var endingCases = []endingCase{
	{name: "FIN", fault: fakeengine.Fault{Kind: fakeengine.FIN}, kind: "cut", outcome: trace.StreamInterrupted},
	{name: "RST", fault: fakeengine.Fault{Kind: fakeengine.RST}, kind: "cut", outcome: trace.StreamInterrupted},
	{name: "cut in mid-event", fault: fakeengine.Fault{Kind: fakeengine.CutEvent}, kind: "cut", outcome: trace.StreamInterrupted},
	{name: "cut in mid-character", fault: fakeengine.Fault{Kind: fakeengine.CutUTF8}, kind: "cut", outcome: trace.StreamInterrupted},
	{name: "clean early end", fault: fakeengine.Fault{Kind: fakeengine.EarlyEnd}, kind: "cut", outcome: trace.StreamInterrupted},
	{name: "DONE without a finish reason", fault: fakeengine.Fault{Kind: fakeengine.LoneDone}, kind: "cut", outcome: trace.StreamInterrupted, only: "chat completions"},
	{name: "the engine's error event", fault: fakeengine.Fault{Kind: fakeengine.ErrorEvent, Text: "engine died"}, kind: "error_event", outcome: trace.StreamInterrupted, clean: true, only: "messages chat completions"},
	{name: "finish reason abort", fault: fakeengine.Fault{Kind: fakeengine.Finish, Text: "abort"}, kind: "error_event", outcome: trace.StreamInterrupted, clean: true, only: "chat completions"},
	{name: "hang", fault: fakeengine.Fault{Kind: fakeengine.Hang}, kind: "timeout_idle", outcome: trace.TimeoutIdle, setup: setup{deployment: "timeouts: {idle: 50ms, first_token: 60s}"}},
}

func TestEndingsAfterContent(t *testing.T) {
	for _, c := range endingCases {
		t.Run(c.name, func(t *testing.T) {
			s := quickly(c.setup)
			r := newRig(t, s)
			c.fault.After = 3
			if c.fault.Kind == fakeengine.CutUTF8 {
				c.fault.After = 1
			}
			r.engine.Script(c.fault)
			faults := int64(0)
			for _, d := range dialects {
				if !d.in(c.only) {
					continue
				}
				faults++
				conn := r.send(d.path, d.body(true, "FAKE-UTF8 hello"))
				br := bufio.NewReader(conn)
				a := readFrom(t, br)
				rec := r.record()
				equal(t, d.name+": status", a.StatusCode, 200)
				equal(t, d.name+": outcome", rec.Outcome, c.outcome)
				isRecorded(t, rec, c.kind, trace.ResultFault)
				equal(t, d.name+": status on the timeline", rec.Status, 200)
				if c.clean {
					equal(t, d.name+": end of the body", a.err, nil)
				} else {
					endsWithOurError(t, d, a, rec.ID)
					isClosed(t, br)
				}
				state := r.gateway.Table().State()[0].Deployments[0]
				equal(t, "counts", state.Counts, routing.Counts{Fault: faults})
			}
		})
	}
}

func isRecorded(t *testing.T, rec *trace.Record, kind string, result trace.Result) {
	t.Helper()
	if rec.Error == nil || rec.Error.Kind != kind {
		t.Errorf("error %+v, want kind %s", rec.Error, kind)
	}
	if len(rec.Attempts) != 1 {
		t.Fatalf("%d attempts, want 1", len(rec.Attempts))
	}
	equal(t, "attempt's fault", rec.Attempts[0].Fault, kind)
	equal(t, "attempt's result", rec.Attempts[0].Result, result)
}

// endsWithOurError: whole events, the last of them the dialect's error event
// with our id; no end mark, no terminating chunk.
func endsWithOurError(t testing.TB, d dialectCase, a answer, id string) {
	t.Helper()
	if a.err != io.ErrUnexpectedEOF {
		t.Fatalf("the body ends with %v, as if it were whole: %q", a.err, tail(string(a.body)))
	}
	text := string(a.body)
	if !strings.HasSuffix(text, "\n\n") {
		t.Fatalf("the body ends in a half event: %q", tail(text))
	}
	if strings.Contains(text, "[DONE]") || strings.Contains(text, "message_stop") || strings.Contains(text, "response.completed") {
		t.Errorf("a cut stream has an end mark: %q", tail(text))
	}
	events := strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n")
	for _, ev := range events {
		name, data, found := strings.Cut(ev, "data: ")
		if strings.HasPrefix(ev, ":") {
			continue
		}
		if !found || strings.ContainsAny(data, "\n") || !json.Valid([]byte(data)) || name != "" && !strings.HasPrefix(name, "event: ") {
			t.Errorf("not a whole event: %q", ev)
		}
	}
	isErrorEvent(t, d, events[len(events)-1], id)
}

func isErrorEvent(t testing.TB, d dialectCase, ev, id string) {
	t.Helper()
	name, data, _ := strings.Cut(ev, "data: ")
	var v struct {
		Type      string `json:"type"`
		RequestID string `json:"request_id"`
		Sequence  *int   `json:"sequence_number"`
		Error     struct{ Message, Type, RequestID string }
		Response  struct {
			Status string
			Error  struct{ Code, Message string }
		}
	}
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		t.Fatalf("the last event is %q", ev)
	}
	contains(t, "error event", data, id)
	switch d.name {
	case "messages":
		equal(t, "name", name, "event: error\n")
		equal(t, "type", v.Type, "error")
		equal(t, "request_id", v.RequestID, id)
		equal(t, "has a message", v.Error.Message != "", true)
	case "responses":
		equal(t, "name", name, "event: response.failed\n")
		equal(t, "type", v.Type, "response.failed")
		equal(t, "status", v.Response.Status, "failed")
		equal(t, "code", v.Response.Error.Code, "server_error")
		equal(t, "has a sequence number", v.Sequence != nil, true)
	default:
		equal(t, "name", name, "")
		equal(t, "has a message", v.Error.Message != "", true)
	}
}

func tail(s string) string { return s[max(0, len(s)-300):] }

// TestEndingsBeforeContent: a status, in full, and not a byte of the stream.
func TestEndingsBeforeContent(t *testing.T) {
	for _, c := range []struct {
		name    string
		fault   fakeengine.Fault
		setup   setup
		only    string
		status  int
		kind    string
		outcome trace.Outcome
	}{
		{name: "closed without an answer", fault: fakeengine.Fault{Kind: fakeengine.FIN, Before: true}, status: 502, kind: "cut", outcome: trace.UpstreamError},
		{name: "reset without an answer", fault: fakeengine.Fault{Kind: fakeengine.RST, Before: true}, status: 502, kind: "cut", outcome: trace.UpstreamError},
		{name: "FIN", fault: fakeengine.Fault{Kind: fakeengine.FIN}, status: 502, kind: "cut", outcome: trace.UpstreamError},
		{name: "RST", fault: fakeengine.Fault{Kind: fakeengine.RST}, status: 502, kind: "cut", outcome: trace.UpstreamError},
		{name: "FIN after the first event", fault: fakeengine.Fault{Kind: fakeengine.FIN, AfterEvents: 1}, only: "messages chat responses", status: 502, kind: "cut", outcome: trace.UpstreamError},
		{name: "cut in mid-event", fault: fakeengine.Fault{Kind: fakeengine.CutEvent}, status: 502, kind: "cut", outcome: trace.UpstreamError},
		{name: "clean end after the first event", fault: fakeengine.Fault{Kind: fakeengine.EarlyEnd, AfterEvents: 1}, only: "messages chat responses", status: 502, kind: "cut", outcome: trace.UpstreamError},
		{name: "empty", fault: fakeengine.Fault{Kind: fakeengine.EarlyEnd}, status: 502, kind: "empty", outcome: trace.EmptyStream},
		{name: "hang", fault: fakeengine.Fault{Kind: fakeengine.Hang}, setup: setup{deployment: "timeouts: {first_token: 50ms}"}, status: 504, kind: "timeout_first_token", outcome: trace.TimeoutFirstToken},
		{name: "hang after the first event", fault: fakeengine.Fault{Kind: fakeengine.Hang, AfterEvents: 1}, only: "messages chat responses",
			setup: setup{deployment: "timeouts: {first_token: 50ms}"}, status: 504, kind: "timeout_first_token", outcome: trace.TimeoutFirstToken},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := quickly(c.setup)
			s.config = "retry: {max_attempts: 1}"
			r := newRig(t, s)
			r.engine.Script(c.fault)
			for _, d := range dialects {
				if !d.in(c.only) {
					continue
				}
				a := r.post(d.path, d.body(true, "hello"))
				rec := r.record()
				equal(t, d.name+": status", a.StatusCode, c.status)
				equal(t, d.name+": end of the body", a.err, nil)
				isErrorBody(t, d, a)
				equal(t, d.name+": outcome", rec.Outcome, c.outcome)
				isRecorded(t, rec, c.kind, trace.ResultFault)
				equal(t, "counts a fault", r.gateway.Table().State()[0].Deployments[0].Counts.OK, 0)
			}
		})
	}
}

// TestUpstreamsOwnErrorIsRelayedVerbatim: its words, its [DONE], nothing of ours.
func TestUpstreamsOwnErrorIsRelayedVerbatim(t *testing.T) {
	for _, c := range []struct{ name, dialect, ending string }{
		{"chat with DONE", "chat", "data: {\"error\": {\"message\": \"engine died\", \"type\": \"InternalServerError\", \"code\": 500}}\n\ndata: [DONE]\n\n"},
		{"chat without DONE", "chat", "data: {\"error\":{\"message\":\"engine died\"}}\n\n"},
		{"completions with DONE", "completions", "data: {\"error\":\"engine died\"}\n\ndata: [DONE]\n\n"},
		{"messages", "messages", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"},
		{"responses", "responses", "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":9,\"response\":{\"id\":\"r\",\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"died\"}}}\n\n"},
		{"responses, error event", "responses", "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"died\",\"sequence_number\":9}\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, quickly(setup{}))
			r.engine.Script(fakeengine.Fault{Kind: fakeengine.ErrorEvent, After: 2, Body: c.ending})
			for _, d := range dialects {
				if d.name != c.dialect {
					continue
				}
				a := r.post(d.path, d.body(true, "hello"))
				rec := r.record()
				if !strings.HasSuffix(string(a.body), "\n\n"+c.ending) {
					t.Errorf("the body ends with %q", tail(string(a.body)))
				}
				equal(t, "error events", strings.Count(string(a.body), c.ending), 1)
				equal(t, "outcome", rec.Outcome, trace.StreamInterrupted)
				isRecorded(t, rec, "error_event", trace.ResultFault)
			}
		})
	}
}

// TestGoodEndingsKeepTheConnections: both sides use theirs for the next request.
func TestGoodEndingsKeepTheConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{memory: true})
		conn := r.dial()
		br := bufio.NewReader(conn)
		for _, d := range dialects {
			for _, stream := range []bool{true, false} {
				_ = must(io.WriteString(conn, request(d.path, d.body(stream, "hello"))))
				a := readFrom(t, br)
				equal(t, "status", a.StatusCode, 200)
				equal(t, "end of the body", a.err, nil)
				rec := r.record()
				equal(t, "outcome", rec.Outcome, trace.OK)
				equal(t, "attempt's result", rec.Attempts[0].Result, trace.ResultOK)
				equal(t, "has a finish reason", rec.FinishReason != "", true)
				synctest.Wait() // the end of the upstream's body comes after its last event
			}
		}
		inSync(t, conn, br)
		for i, l := range r.engine.Requests() {
			equal(t, "connection upstream", l.Conn, 1)
			equal(t, "request on it", l.ConnRequest, i+1)
		}
		equal(t, "counts", r.gateway.Table().State()[0].Deployments[0].Counts, routing.Counts{OK: 8})
	})
}

// TestAnswerEndsWithTheTerminalEvent: the client is not kept waiting for an
// upstream that is slow to end its body.
func TestAnswerEndsWithTheTerminalEvent(t *testing.T) {
	r := newRig(t, quickly(setup{}))
	r.engine.Script(fakeengine.Fault{Kind: fakeengine.Linger, Delay: 1 << 40}) // 18 minutes
	for _, d := range dialects {
		conn := r.send(d.path, d.body(true, "hello"))
		br := bufio.NewReader(conn)
		a := readFrom(t, br)
		equal(t, d.name+": end of the body", a.err, nil)
		equal(t, d.name+": outcome", r.record().Outcome, trace.OK)
		inSync(t, conn, br)
	}
}

// TestWholeAnswersThatAreCut: they are read to their end first, so a cut one is a status.
func TestWholeAnswersThatAreCut(t *testing.T) {
	for _, f := range []fakeengine.FaultKind{fakeengine.FIN, fakeengine.RST} {
		r := newRig(t, quickly(setup{}))
		r.engine.Script(fakeengine.Fault{Kind: f})
		for _, d := range dialects {
			a := r.post(d.path, d.body(false, "hello"))
			rec := r.record()
			equal(t, "status", a.StatusCode, http.StatusBadGateway)
			isErrorBody(t, d, a)
			equal(t, "outcome", rec.Outcome, trace.UpstreamError)
			isRecorded(t, rec, "cut", trace.ResultFault)
		}
	}
}
