package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/routing"
	"tracegate/trace"
)

// A client that leaves in any phase, in any way, on any route: the upstream is
// let go, nothing is tried again, and it counts as the client's own doing.

// departures are the ways to leave.
var departures = []struct {
	name  string
	leave func(c *net.TCPConn) error
}{
	{"close", (*net.TCPConn).Close},
	{"half-close", (*net.TCPConn).CloseWrite},
	{"reset", func(c *net.TCPConn) error {
		if err := c.SetLinger(0); err != nil {
			return err
		}
		return c.Close()
	}},
}

// visit is a client in the middle of a request.
type visit struct {
	*rig
	conn net.Conn
	br   *bufio.Reader
}

// longAnswer is a request whose answer takes a minute.
func (d dialectCase) longAnswer(stream bool) string {
	return strings.Replace(d.body(stream, "FAKE-TOKENS-4000 please"), ":64,", ":4000,", 1)
}

// visit sends a request and stays on the line.
func (r *rig) visit(path, body string) visit {
	r.t.Helper()
	c := r.send(path, body)
	return visit{rig: r, conn: c, br: bufio.NewReader(c)}
}

// arrived waits until the engine has the request.
func (v visit) arrived() {
	v.t.Helper()
	if _, err := v.logged(func(l fakeengine.RequestLog) bool { return l.Outcome == fakeengine.OutcomeRunning }); err != nil {
		v.t.Fatal(err)
	}
}

// stands waits until the one request under way is in the phase.
func (v visit) stands(p trace.Phase) {
	v.t.Helper()
	v.await("phase "+string(p), func() (ok bool) {
		v.book.EachRunning(func(l *trace.Timeline) { ok = ok || l.Phase() == p })
		return ok
	})
}

// begins reads the head and the first byte of the answer.
func (v visit) begins() {
	v.t.Helper()
	resp, err := http.ReadResponse(v.br, nil)
	if err == nil {
		_, err = io.ReadFull(resp.Body, make([]byte, 1))
	}
	if err != nil {
		v.t.Fatalf("the answer did not begin: %v", err)
	}
}

// stay is a place where a client can be when it leaves.
type stay struct {
	name   string
	stream bool
	setup  setup
	faults []fakeengine.Fault
	phase  trace.Phase
	reach  func(v visit)
	dialed bool // the engine has the request
}

var stays = []stay{
	{"dialling, stream", true, setup{dial: neverAnswers}, nil, trace.PhaseConnect,
		func(v visit) { v.stands(trace.PhaseConnect) }, false},
	{"dialling, whole", false, setup{dial: neverAnswers}, nil, trace.PhaseConnect,
		func(v visit) { v.stands(trace.PhaseConnect) }, false},
	{"waiting for headers, stream", true, setup{}, []fakeengine.Fault{{Kind: fakeengine.HeaderDelay, Delay: time.Minute}},
		trace.PhaseWaitingHeaders, visit.arrived, true},
	{"waiting for headers, whole", false, setup{}, nil, trace.PhaseWaitingHeaders, visit.arrived, true},
	{"after headers", true, setup{}, []fakeengine.Fault{{Kind: fakeengine.Hang}}, trace.PhaseWaitingFirstToken,
		func(v visit) { v.stands(trace.PhaseWaitingFirstToken) }, true},
	{"mid-stream", true, setup{}, []fakeengine.Fault{{Kind: fakeengine.Hang, After: 3}}, trace.PhaseStreaming, visit.begins, true},
	{"mid-stream, tokens flowing", true, setup{}, nil, trace.PhaseStreaming, visit.begins, true},
	{"after a keep-alive, before headers", true, setup{config: "keepalive: 10ms"},
		[]fakeengine.Fault{{Kind: fakeengine.HeaderDelay, Delay: time.Minute}}, trace.PhaseWaitingHeaders, visit.begins, true},
	{"after a keep-alive, after headers", true, setup{config: "keepalive: 10ms"}, []fakeengine.Fault{{Kind: fakeengine.Hang}},
		trace.PhaseWaitingFirstToken, visit.begins, true},
	{"after a keep-alive, dialling", true, setup{config: "keepalive: 10ms", dial: neverAnswers}, nil, trace.PhaseConnect, visit.begins, false},
}

// atEachStay runs f with a rig for each place.
func atEachStay(t *testing.T, f func(t *testing.T, s stay, r *rig)) {
	for _, s := range stays {
		t.Run(s.name, func(t *testing.T) {
			s.setup.deployment = "timeouts: {connect: 60s}"
			r := newRig(t, s.setup)
			r.engine.Script(s.faults...)
			f(t, s, r)
		})
	}
}

// neverAnswers is the way to a host that drops every packet.
func neverAnswers(ctx context.Context, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// eachDeparture runs f for every route and every way to leave.
func eachDeparture(t *testing.T, f func(t *testing.T, d dialectCase, leave func(c net.Conn))) {
	for _, d := range dialects {
		for _, dep := range departures {
			t.Run(d.name+"/"+dep.name, func(t *testing.T) {
				f(t, d, func(c net.Conn) {
					if err := dep.leave(c.(*net.TCPConn)); err != nil {
						t.Fatal(err)
					}
				})
			})
		}
	}
}

func TestClientLeaves(t *testing.T) {
	atEachStay(t, func(t *testing.T, s stay, r *rig) {
		aborts := int64(0)
		eachDeparture(t, func(t *testing.T, d dialectCase, leave func(net.Conn)) {
			v := r.visit(d.path, d.longAnswer(s.stream))
			s.reach(v)
			leave(v.conn)
			rec := r.record()
			aborts++
			isClientAbort(t, r, rec, s.phase, aborts)
			equal(t, "is a stream", rec.Stream, s.stream)
			equal(t, "dialect", rec.Dialect, d.name)
			if s.dialed {
				engineSawTheClose(t, r, rec)
			}
			isCut(t, v.br)
		})
		if !s.dialed {
			equal(t, "requests at the engine", len(r.engine.Requests()), 0)
		}
	})
}

// isClientAbort checks all that is recorded of a request whose client left
// during its first attempt; aborts is how many of them there were so far.
func isClientAbort(t *testing.T, r *rig, rec *trace.Record, phase trace.Phase, aborts int64) {
	t.Helper()
	equal(t, "outcome", rec.Outcome, trace.ClientAbort)
	equal(t, "status", rec.Status, 499)
	equal(t, "phase", rec.Phase, phase)
	if rec.Error == nil || rec.Error.Kind != "client_gone" {
		t.Errorf("error %+v, want kind client_gone", rec.Error)
	}
	if len(rec.Attempts) != 1 {
		t.Fatalf("%d attempts, want 1", len(rec.Attempts))
	}
	a := rec.Attempts[0]
	equal(t, "attempt's result", a.Result, trace.ResultClientAbort)
	equal(t, "abort reason", a.AbortReason, trace.AbortClientGone)
	if a.AbortSent < a.Start || a.AbortSent > a.End {
		t.Errorf("abort sent at %s of an attempt from %s to %s", a.AbortSent, a.Start, a.End)
	}
	state := r.gateway.Table().State()[0].Deployments[0]
	equal(t, "counts", state.Counts, routing.Counts{ClientAbort: aborts})
	equal(t, "in flight", state.Inflight, int64(r.book.Running()))
	equal(t, "faults remembered", len(state.LastFaults), 0)
	if i, ok := rec.Interruption(); ok != rec.Stream || ok && i != trace.SideClient {
		t.Errorf("interrupted by %q, want the client, and only a stream", i)
	}
}

// engineSawTheClose: it had the request once, saw its client go, and works on nothing.
func engineSawTheClose(t *testing.T, r *rig, rec *trace.Record) {
	t.Helper()
	l, err := r.logged(func(l fakeengine.RequestLog) bool {
		return l.RequestID == rec.ID+"-a1" && l.Outcome != fakeengine.OutcomeRunning
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "outcome at the engine", l.Outcome, fakeengine.OutcomeClientGone)
	if l.GonePhase == "" {
		t.Error("the engine was already done")
	}
	isAtRest(t, r)
	n := 0
	for _, l := range r.engine.Requests() {
		if strings.HasPrefix(l.RequestID, rec.ID) {
			n++
		}
	}
	equal(t, "upstream requests", n, 1)
}

// isCut: a client that still reads sees the rest of an answer, and no complete one.
func isCut(t *testing.T, br *bufio.Reader) (rest string) {
	t.Helper()
	all, _ := io.ReadAll(br) // a closed or reset connection has nothing more to say
	rest = string(all)
	if strings.HasSuffix(rest, "0\r\n\r\n") {
		t.Errorf("the answer looks complete: %q", rest)
	}
	return rest
}

// TestClientLeavesInsideAWholeAnswer: its body has begun to come from upstream.
func TestClientLeavesInsideAWholeAnswer(t *testing.T) {
	for _, s := range []struct {
		name   string
		stream bool
		answer string
	}{
		{"whole", false, "Content-Length: 100\r\n\r\n{\"half\":"},
		{"whole, compressed", false, "Content-Encoding: gzip\r\nContent-Length: 100\r\n\r\n\x1f\x8b"},
		{"stream, compressed", true, "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n\x1f\x8b\r\n"},
	} {
		t.Run(s.name, func(t *testing.T) {
			closed := make(chan struct{}, 1)
			up := newScripted(t, func(c net.Conn, _ *http.Request, _ []byte) {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"+s.answer)
				_, _ = io.Copy(io.Discard, c) // until the gateway closes
				closed <- struct{}{}
			})
			r := newRig(t, setup{upstream: up.url})
			aborts := int64(0)
			eachDeparture(t, func(t *testing.T, d dialectCase, leave func(net.Conn)) {
				v := r.visit(d.path, d.body(s.stream, "hello"))
				if s.stream { // passed on unread, as it comes
					v.begins()
				}
				v.stands(trace.PhaseWaitingFirstToken)
				leave(v.conn)
				rec := r.record()
				<-closed
				aborts++
				isClientAbort(t, r, rec, trace.PhaseWaitingFirstToken, aborts)
				isCut(t, v.br)
			})
		})
	}
}

// TestClientLeavesInsideItsRequest: nothing was asked of anybody yet.
func TestClientLeavesInsideItsRequest(t *testing.T) {
	r := newRig(t, setup{})
	for _, framing := range []struct{ name, lines, body string }{
		{"length", "Content-Length: 1000\r\n", `{"model":"public",`},
		{"chunked", "Transfer-Encoding: chunked\r\n", "12\r\n" + `{"model":"public",` + "\r\n400\r\n{"},
		{"between chunks", "Transfer-Encoding: chunked\r\n", "12\r\n" + `{"model":"public",` + "\r\n"},
	} {
		t.Run(framing.name, func(t *testing.T) {
			eachDeparture(t, func(t *testing.T, d dialectCase, leave func(net.Conn)) {
				c := r.dial()
				_, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\n%s\r\n%s", d.path, testKey, framing.lines, framing.body)
				if err != nil {
					t.Fatal(err)
				}
				r.await("the body is let in", func() bool { return r.gateway.BodyBytes() > 0 })
				leave(c)
				rec := r.record()
				equal(t, "outcome", rec.Outcome, trace.ClientAbort)
				equal(t, "status", rec.Status, 499)
				equal(t, "phase", rec.Phase, trace.PhaseAdmit)
				equal(t, "attempts", len(rec.Attempts), 0)
				equal(t, "body bytes", r.gateway.BodyBytes(), 0)
			})
		})
	}
	equal(t, "requests at the engine", len(r.engine.Requests()), 0)
}

// TestClientLeavesBehindPipelinedBytes: what the gateway has not read does not
// hide the close behind it.
func TestClientLeavesBehindPipelinedBytes(t *testing.T) {
	r := newRig(t, setup{})
	r.engine.Script(fakeengine.Fault{Kind: fakeengine.Hang, After: 3})
	aborts := int64(0)
	for _, extra := range []string{"P", "POST /v1/chat", request("/v1/chat/completions", chatBody("the next one"))} {
		t.Run(fmt.Sprintf("%d bytes", len(extra)), func(t *testing.T) {
			eachDeparture(t, func(t *testing.T, d dialectCase, leave func(net.Conn)) {
				v := r.visit(d.path, d.longAnswer(true))
				v.begins()
				if _, err := io.WriteString(v.conn, extra); err != nil {
					t.Fatal(err)
				}
				leave(v.conn)
				rec := r.record()
				aborts++
				isClientAbort(t, r, rec, trace.PhaseStreaming, aborts)
				engineSawTheClose(t, r, rec)
			})
		})
	}
}

// TestClientLeavesAfterTheTerminalEvent: it has its answer, whatever the engine
// still does with the end of the body.
func TestClientLeavesAfterTheTerminalEvent(t *testing.T) {
	r := newRig(t, setup{engine: fakeengine.Options{StepBase: time.Millisecond}})
	r.engine.Script(fakeengine.Fault{Kind: fakeengine.Linger, Delay: time.Minute})
	terminal := map[string]string{"messages": "message_stop", "chat": "[DONE]", "completions": "[DONE]", "responses": "response.completed"}
	answered := int64(0)
	eachDeparture(t, func(t *testing.T, d dialectCase, leave func(net.Conn)) {
		v := r.visit(d.path, d.body(true, "FAKE-TOKENS-5"))
		for line, err := "", error(nil); !strings.Contains(line, "data: ") || !strings.Contains(line, terminal[d.name]); {
			if line, err = v.br.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		leave(v.conn)
		rec := r.record()
		answered++
		equal(t, "outcome", rec.Outcome, trace.OK)
		equal(t, "status", rec.Status, 200)
		equal(t, "phase", rec.Phase, trace.PhaseFinished)
		equal(t, "abort reason", rec.Attempts[0].AbortReason, "")
		equal(t, "counts", r.gateway.Table().State()[0].Deployments[0].Counts, routing.Counts{OK: answered})
	})
}
