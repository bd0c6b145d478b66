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
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// Signs of life while an answer is silent, in virtual time: when, what, where
// they may stand, and what they do not hide.

// signs is a keep-alive in each dialect.
var signs = map[string]string{
	"messages":    "event: ping\ndata: {\"type\":\"ping\"}\n\n",
	"chat":        ": keepalive\n",
	"completions": ": keepalive\n",
	"responses":   "event: keepalive\ndata: {\"type\":\"keepalive\"}\n\n",
}

// arrival is what a client got at an instant after its request.
type arrival struct {
	at   time.Duration
	text string
}

// watch reads an answer's head and notes when each piece of its body came.
func watch(t *testing.T, c net.Conn, began time.Time) (head *http.Response, headAt time.Duration, pieces []arrival, err error) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	headAt = time.Since(began)
	buf := make([]byte, 1<<20)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			at := time.Since(began)
			if last := len(pieces) - 1; last >= 0 && pieces[last].at == at {
				pieces[last].text += string(buf[:n])
			} else {
				pieces = append(pieces, arrival{at, string(buf[:n])})
			}
		}
		if err == io.EOF {
			return resp, headAt, pieces, nil
		}
		if err != nil {
			return resp, headAt, pieces, err
		}
	}
}

func joined(pieces []arrival) string {
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.text)
	}
	return b.String()
}

// areSigns: the pieces up to n are keep-alives, one every interval.
func areSigns(t *testing.T, d dialectCase, pieces []arrival, n int, every time.Duration) {
	t.Helper()
	if len(pieces) < n {
		t.Fatalf("%d pieces, want %d signs of life: %q", len(pieces), n, joined(pieces))
	}
	for i := range n {
		equal(t, fmt.Sprintf("sign %d came at", i+1), pieces[i].at, time.Duration(i+1)*every)
		equal(t, fmt.Sprintf("sign %d", i+1), pieces[i].text, signs[d.name])
	}
}

// TestKeepaliveBeforeHeaders: it begins the answer, and success goes on as if
// nothing had been.
func TestKeepaliveBeforeHeaders(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		r := newRig(t, setup{memory: true, config: "keepalive: 10s"})
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.HeaderDelay, Delay: 35 * time.Second})
		began := time.Now()
		resp, headAt, pieces, err := watch(t, r.send(d.path, d.body(true, "MARK-42")), began)
		rec := r.record()
		equal(t, "head came at", headAt, 10*time.Second)
		equal(t, "status", resp.StatusCode, 200)
		contains(t, "content type", resp.Header.Get("Content-Type"), "text/event-stream")
		equal(t, "X-Accel-Buffering", resp.Header.Get("X-Accel-Buffering"), "no")
		equal(t, "id", resp.Header.Get("X-Request-Id"), rec.ID)
		equal(t, "deployment", resp.Header.Get("X-Gateway-Deployment"), "d1")
		areSigns(t, d, pieces, 3, 10*time.Second)
		equal(t, "first event came at", pieces[3].at, 35*time.Second)
		equal(t, "signs in all", strings.Count(joined(pieces), signs[d.name]), 3)
		contains(t, "answer", joined(pieces), "MARK-42")
		equal(t, "end of the body", err, nil)
		equal(t, "outcome", rec.Outcome, trace.OK)
		ttft, _ := rec.TTFT()
		if ttft < 35*time.Second {
			t.Errorf("TTFT %s: the sign of life was taken for a token", ttft)
		}
	})
}

// TestKeepaliveBeforeContent: headers, or a first event, are no content.
func TestKeepaliveBeforeContent(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		r := newRig(t, setup{memory: true, config: "keepalive: 10s", engine: fakeengine.Options{PrefillRate: 1}})
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.EarlyRole})
		began := time.Now()
		resp, headAt, pieces, err := watch(t, r.send(d.path, d.body(true, strings.Repeat("token ", 40))), began)
		rec := r.record()
		equal(t, "head came at", headAt, 10*time.Second)
		equal(t, "status", resp.StatusCode, 200)
		areSigns(t, d, pieces, 2, 10*time.Second)
		equal(t, "end of the body", err, nil)
		equal(t, "outcome", rec.Outcome, trace.OK)
		if rec.Attempts[0].Headers >= 10*time.Second {
			t.Errorf("the headers came at %s: the test is not what it says", rec.Attempts[0].Headers)
		}
	})
}

// TestKeepaliveBetweenEvents: counted from the last byte that the client got.
func TestKeepaliveBetweenEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		r := newRig(t, setup{memory: true, config: "keepalive: 10s", deployment: "timeouts: {idle: 60s}"})
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.Slow, Delay: 25 * time.Second, After: 0})
		began := time.Now()
		_, _, pieces, err := watch(t, r.send(d.path, strings.Replace(d.body(true, "hello"), ":64,", ":3,", 1)), began)
		rec := r.record()
		equal(t, "end of the body", err, nil)
		equal(t, "outcome", rec.Outcome, trace.OK)
		equal(t, "signs in all", strings.Count(joined(pieces), signs[d.name]), 4)
		last := time.Duration(0)
		for i, p := range pieces {
			if i > 0 && p.text == signs[d.name] {
				equal(t, "silence before a sign", p.at-last, 10*time.Second)
			}
			last = p.at
		}
	})
}

func TestKeepaliveOff(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		r := newRig(t, setup{memory: true, config: "keepalive: 0", deployment: "timeouts: {first_token: 10m, idle: 10m}"})
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.HeaderDelay, Delay: 2 * time.Minute}, fakeengine.Fault{Kind: fakeengine.Slow, Delay: 2 * time.Minute})
		began := time.Now()
		_, headAt, pieces, err := watch(t, r.send(d.path, strings.Replace(d.body(true, "hello"), ":64,", ":3,", 1)), began)
		r.record()
		equal(t, "end of the body", err, nil)
		if headAt < 2*time.Minute {
			t.Errorf("the answer began at %s", headAt)
		}
		equal(t, "signs", strings.Count(joined(pieces), signs[d.name]), 0)
	})
}

// TestNoKeepaliveForWholeAnswers: there is no place for one.
func TestNoKeepaliveForWholeAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		r := newRig(t, setup{memory: true, config: "keepalive: 10s"})
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.HeaderDelay, Delay: time.Minute})
		a := r.post(d.path, d.body(false, "hello"))
		r.record()
		equal(t, "status", a.StatusCode, 200)
		equal(t, "begins as JSON", strings.HasPrefix(string(a.body), "{"), true)
	})
}

// TestFailureAfterKeepalive: the status is spent, so it is an error event,
// whatever the failure; and no sign comes after the upstream is known dead.
func TestFailureAfterKeepalive(t *testing.T) {
	for _, c := range []struct {
		name    string
		faults  []fakeengine.Fault
		at      time.Duration
		outcome trace.Outcome
		kind    string
	}{
		{"status 500", []fakeengine.Fault{{Kind: fakeengine.Status, Status: 500}, {Kind: fakeengine.HeaderDelay, Delay: 25 * time.Second}}, 25 * time.Second, trace.UpstreamError, "status_5xx"},
		{"status 429", []fakeengine.Fault{{Kind: fakeengine.Status, Status: 429}, {Kind: fakeengine.HeaderDelay, Delay: 25 * time.Second}}, 25 * time.Second, trace.ClientError, "backpressure"},
		{"not HTTP", []fakeengine.Fault{{Kind: fakeengine.Raw, Text: "what?", Delay: 25 * time.Second}}, 25 * time.Second, trace.UpstreamError, "protocol"},
		{"closed", []fakeengine.Fault{{Kind: fakeengine.Raw, Delay: 25 * time.Second}}, 25 * time.Second, trace.UpstreamError, "cut"},
		{"empty", []fakeengine.Fault{{Kind: fakeengine.EarlyEnd}, {Kind: fakeengine.HeaderDelay, Delay: 25 * time.Second}}, 25 * time.Second, trace.EmptyStream, "empty"},
		{"first-token limit", []fakeengine.Fault{{Kind: fakeengine.Hang}}, 28 * time.Second, trace.TimeoutFirstToken, "timeout_first_token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, d dialectCase) {
				r := newRig(t, setup{memory: true, config: "keepalive: 10s", deployment: "timeouts: {first_token: 28s}"})
				r.engine.Script(c.faults...)
				began := time.Now()
				resp, _, pieces, err := watch(t, r.send(d.path, d.body(true, "hello")), began)
				rec := r.record()
				equal(t, "status", resp.StatusCode, 200)
				areSigns(t, d, pieces, 2, 10*time.Second)
				equal(t, "end of the body", err, io.ErrUnexpectedEOF)
				equal(t, "pieces", len(pieces), 3)
				equal(t, "failed at", pieces[2].at, c.at)
				isErrorEvent(t, d, strings.TrimSuffix(pieces[2].text, "\n\n"), rec.ID)
				equal(t, "outcome", rec.Outcome, c.outcome)
				equal(t, "kind", rec.Error.Kind, c.kind)
				equal(t, "status on the timeline", rec.Status, 200)
				synctest.Wait()
				equal(t, "running at the engine", r.engine.Running(), 0)
			})
		})
	}
}

// scriptedInMemory is an upstream in virtual time: play gets each connection
// after the head and the body of its one request were read.
func scriptedInMemory(t *testing.T, play func(c net.Conn)) dialer {
	ln := fasthttputil.NewInmemoryListener()
	go func() { // until the listener closes
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { // until play returns
				defer func() { _ = c.Close() }()
				req, err := http.ReadRequest(bufio.NewReader(c))
				if err == nil {
					_, err = io.Copy(io.Discard, req.Body)
				}
				if err == nil {
					play(c)
				}
			}()
		}
	}()
	t.Cleanup(func() { _ = ln.Close() })
	return func(context.Context, string) (net.Conn, error) { return ln.Dial() }
}

// TestKeepaliveNeverInsideAnEvent: an upstream that stops between the lines of
// an event, in a line, or after a lone CR. What it had begun is not with the
// client yet, or nothing is put into it.
func TestKeepaliveNeverInsideAnEvent(t *testing.T) {
	first := `data: {"id":"x","choices":[{"index":0,"delta":{"content":"one"}}]}`
	second := `data: {"id":"x","choices":[{"index":0,"delta":{"content":"two"}}]}`
	last := `data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	big := `data: {"id":"x","choices":[{"index":0,"delta":{"content":"` + strings.Repeat("b", 200<<10)
	for _, c := range []struct {
		name, before, after string
		signs               int
	}{
		{"between events", first + "\n\n", second + "\n\n", 2},
		{"in a line", first + "\n\n" + second[:30], second[30:] + "\n\n", 2},
		{"after a line", first + "\n\n" + second + "\n", "\n", 2},
		{"in an end of a line", first + "\r\n\r\n" + second + "\r", "\n\r\n", 2},
		{"after an end of CR", first + "\r\n\r", "\n" + second + "\r\n\r\n", 0},
		{"in a comment", first + "\n\n: half", " a comment\n\n" + second + "\n\n", 2},
		{"in a name", first + "\n\nevent: me", "ssage\n" + second + "\n\n", 2},
		{"in an event too large to be held", first + "\n\n" + big, `"}}]}` + "\n\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dial := scriptedInMemory(t, func(conn net.Conn) {
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"+c.before)
					<-time.After(25 * time.Second)
					_, _ = io.WriteString(conn, c.after+last)
				})
				r := newRig(t, setup{memory: true, dial: dial, config: "keepalive: 10s"})
				d := dialects[1]
				_, _, pieces, err := watch(t, r.send(d.path, d.body(true, "hello")), time.Now())
				rec := r.record()
				equal(t, "end of the body", err, nil)
				equal(t, "outcome", rec.Outcome, trace.OK)
				text := joined(pieces)
				equal(t, "signs", strings.Count(text, signs["chat"]), c.signs)
				if got := strings.ReplaceAll(text, signs["chat"], ""); got != c.before+c.after+last {
					t.Errorf("less the signs the answer is %.300q", got)
				}
				between := strings.Split(text, signs["chat"])
				for _, before := range between[:len(between)-1] {
					if !strings.HasSuffix(before, "\n\n") && !strings.HasSuffix(before, "\r\n") && before != "" {
						t.Errorf("a sign stands after %q", tail(before))
					}
				}
			})
		})
	}
}

// TestKeepaliveDoesNotKeepALimitOff: of the idle limit and the total one.
func TestKeepaliveDoesNotKeepALimitOff(t *testing.T) {
	for _, c := range []struct {
		name, timeouts string
		after          int
		at             time.Duration
		outcome        trace.Outcome
	}{
		{"idle", "{idle: 35s, first_token: 1m}", 2, 35 * time.Second, trace.TimeoutIdle},
		{"total after content", "{total: 35s, idle: 5m}", 2, 35 * time.Second, trace.TimeoutTotal},
		{"total before content", "{total: 35s, first_token: 5m}", 0, 35 * time.Second, trace.TimeoutTotal},
		{"first token", "{first_token: 35s}", 0, 35 * time.Second, trace.TimeoutFirstToken},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, d dialectCase) {
				r := newRig(t, setup{memory: true, config: "keepalive: 10s", deployment: "timeouts: " + c.timeouts})
				r.engine.Script(fakeengine.Fault{Kind: fakeengine.Hang, After: c.after})
				began := time.Now()
				_, _, pieces, err := watch(t, r.send(d.path, d.body(true, "hello")), began)
				rec := r.record()
				equal(t, "end of the body", err, io.ErrUnexpectedEOF)
				equal(t, "outcome", rec.Outcome, c.outcome)
				from := rec.Opened
				if c.outcome == trace.TimeoutIdle {
					from = rec.At(trace.LastToken)
				}
				equal(t, "fired after", rec.At(trace.Finish).Sub(from), c.at)
				equal(t, "signs", strings.Count(joined(pieces), signs[d.name]), 3)
			})
		})
	}
}
