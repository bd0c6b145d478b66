package proxy

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// The way out, in virtual time: readiness first, then no new requests, then
// what still runs gets its time, and at the end is told.

func TestDrain(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		r := newRig(t, setup{memory: true, config: "keepalive: 0", deployment: "timeouts: {first_token: 1h, idle: 1h, total: 1h}"})
		r.engine.Script(
			fakeengine.Fault{Kind: fakeengine.Hang, After: 2, Contains: "STREAMING"},
			fakeengine.Fault{Kind: fakeengine.Hang, Contains: "WAITING"},
			fakeengine.Fault{Kind: fakeengine.Slow, Delay: time.Second, Contains: "SLOW"},
		)
		streaming := bufio.NewReader(r.send(d.path, d.body(true, "STREAMING")))
		waiting := bufio.NewReader(r.send(d.path, d.body(true, "WAITING")))
		whole := bufio.NewReader(r.send(d.path, d.body(false, "WAITING")))
		slow := bufio.NewReader(r.send(d.path, strings.Replace(d.body(true, "SLOW FAKE-TOKENS-40"), ":64,", ":40,", 1)))
		slowAnswer := make(chan answer)
		go func() { slowAnswer <- readFrom(t, slow) }()
		<-time.After(time.Second)
		equal(t, "streams", r.gateway.Streams(), 4)
		equal(t, "ready", r.ask("GET", "/readyz").StatusCode, 200)

		began := time.Now()
		cut := make(chan int)
		go func() { cut <- r.gateway.Drain(context.Background(), 15*time.Second, time.Minute) }()
		synctest.Wait()
		r.isDraining(d)
		<-time.After(15*time.Second - time.Since(began) - time.Millisecond)
		equal(t, "served to the end of the delay", r.post(d.path, d.body(false, "FAKE-TOKENS-1")).StatusCode, 200)
		equal(t, "outcome of the one served last", r.record().Outcome, trace.OK)
		<-time.After(time.Second)
		r.refusesNew(d)

		a := <-slowAnswer
		equal(t, "a stream that ends in time ends well", a.err, nil)
		equal(t, "its outcome", r.record().Outcome, trace.OK)

		inTheMiddle := readFrom(t, streaming)
		equal(t, "cut at", time.Since(began), 75*time.Second)
		equal(t, "cut answers", <-cut, 3)
		beforeContent := []answer{readFrom(t, waiting), readFrom(t, whole)}
		byID := map[string]*trace.Record{}
		for range 3 {
			rec := r.record()
			byID[rec.ID] = rec
			isDrained(t, rec)
		}
		id := inTheMiddle.Header.Get("X-Request-Id")
		endsWithOurError(t, d, inTheMiddle, id)
		contains(t, "error event", string(inTheMiddle.body), "drain.timeout")
		equal(t, "outcome after content", byID[id].Outcome, trace.StreamInterrupted)
		isClosed(t, streaming)
		for _, a := range beforeContent {
			equal(t, "status before content", a.StatusCode, 503)
			equal(t, "retry-after", a.Header.Get("Retry-After"), "1")
			equal(t, "Connection: close", a.Close, true)
			isErrorBody(t, d, a)
			equal(t, "outcome before content", byID[a.Header.Get("X-Request-Id")].Outcome, trace.UpstreamError)
		}
		<-time.After(time.Second) // the engine lets go at its next step
		equal(t, "running at the engine", r.engine.Running(), 0)
	})
}

// isDraining: readiness says no, liveness yes, and requests are served.
func (r *rig) isDraining(d dialectCase) {
	t := r.t
	t.Helper()
	for _, path := range []string{"/readyz", "/health/readiness"} {
		a := r.ask("GET", path)
		equal(t, "status of "+path, a.StatusCode, 503)
		equal(t, "retry-after of "+path, a.Header.Get("Retry-After"), "1")
	}
	equal(t, "status of /livez", r.ask("GET", "/livez").StatusCode, 200)
	equal(t, "ready", r.gateway.Ready(), false)
	c := r.send(d.path, d.body(true, "FAKE-TOKENS-1"))
	br := bufio.NewReader(c)
	a := readFrom(t, br)
	equal(t, "status during the delay", a.StatusCode, 200)
	equal(t, "end of the body during the delay", a.err, nil)
	equal(t, "outcome during the delay", r.record().Outcome, trace.OK)
	inSync(t, c, br)
}

// refusesNew: with a truthful status and a closed connection, with or without a body to come.
func (r *rig) refusesNew(d dialectCase) {
	t := r.t
	t.Helper()
	for range 2 {
		br := bufio.NewReader(r.send(d.path, d.body(true, "late")))
		a := readFrom(t, br)
		equal(t, "status after the delay", a.StatusCode, 503)
		equal(t, "retry-after", a.Header.Get("Retry-After"), "1")
		equal(t, "x-should-retry", a.Header.Get("X-Should-Retry"), "true")
		equal(t, "Connection: close", a.Close, true)
		isErrorBody(t, d, a)
		isClosed(t, br)
		rec := r.record()
		equal(t, "outcome after the delay", rec.Outcome, trace.Refused)
		equal(t, "tenant", rec.Tenant, "team")
	}
	a := r.post(d.path, d.body(true, "late"), "-Authorization")
	equal(t, "status without a key", a.StatusCode, 401)
	equal(t, "outcome without a key", r.record().Outcome, trace.Refused)
	equal(t, "status of /readyz", r.ask("GET", "/readyz").StatusCode, 503)
}

func isDrained(t *testing.T, rec *trace.Record) {
	t.Helper()
	if rec.Error == nil || rec.Error.Kind != "drain" || len(rec.Attempts) != 1 {
		t.Fatalf("error %+v and %d attempts, want kind drain and 1", rec.Error, len(rec.Attempts))
	}
	equal(t, "abort reason", rec.Attempts[0].AbortReason, trace.AbortDrain)
	equal(t, "attempt's result", rec.Attempts[0].Result, trace.ResultNotTheirs)
	if i, ok := rec.Interruption(); rec.Stream && (!ok || i != trace.SideGateway) {
		t.Errorf("interrupted by %q, want the gateway", i)
	}
	equal(t, "abort sent when it ended", rec.Opened.Add(rec.Attempts[0].AbortSent).Sub(rec.At(trace.Finish)), 0)
}

// TestDrainOfAnIdleGateway: nothing is waited for but the delay, and a second
// signal skips that too.
func TestDrainOfAnIdleGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{memory: true})
		began := time.Now()
		equal(t, "cut answers", r.gateway.Drain(context.Background(), 15*time.Second, time.Hour), 0)
		equal(t, "took", time.Since(began), 15*time.Second)
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{memory: true, config: "keepalive: 0"})
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.Hang, After: 1})
		br := bufio.NewReader(r.send("/v1/chat/completions", chatBody("hello")))
		<-time.After(time.Second)
		ctx, hurry := context.WithTimeout(context.Background(), 3*time.Second)
		defer hurry()
		began := time.Now()
		equal(t, "cut answers", r.gateway.Drain(ctx, 15*time.Second, time.Hour), 1)
		equal(t, "took", time.Since(began).Round(time.Second), 3*time.Second)
		a := readFrom(t, br)
		equal(t, "end of the body", a.err, io.ErrUnexpectedEOF)
		isDrained(t, r.record())
	})
}

// TestIdleConnectionsEndWithTheServer: those that wait for a next request are
// closed at once, while a stream on another runs on.
func TestIdleConnectionsEndWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{memory: true})
		idle := r.dial()
		br := bufio.NewReader(idle)
		inSync(t, idle, br)
		running := bufio.NewReader(r.send("/v1/chat/completions", strings.Replace(chatBody("FAKE-TOKENS-200 hello"), "{", `{"max_tokens":200,`, 1)))
		answered := make(chan answer)
		go func() { answered <- readFrom(t, running) }()
		<-time.After(100 * time.Millisecond)
		began := time.Now()
		stopped := make(chan error)
		go func() { stopped <- r.server.ShutdownWithContext(context.Background()) }()
		isClosed(t, br)
		if d := time.Since(began); d > time.Second {
			t.Errorf("the idle connection was closed after %s", d)
		}
		a := <-answered
		equal(t, "end of the stream", a.err, nil)
		contains(t, "stream", string(a.body), "[DONE]")
		equal(t, "outcome", r.record().Outcome, trace.OK)
		equal(t, "stopped", <-stopped, nil)
	})
}
