package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// How much comes in: limits.max_body, limits.body_budget, limits.max_streams.
// What is taken of a budget is given back on every path.

const smallLimits = "limits: {max_body: 64KiB, body_budget: 64KiB}"

// padded is a good request of about n bytes.
func padded(d dialectCase, n int) string {
	return d.body(false, "hello "+strings.Repeat("x", n))
}

func TestBodyTooLarge(t *testing.T) {
	r := newRig(t, quickly(setup{config: "limits: {max_body: 64KiB}"}))
	for _, d := range dialects {
		body := padded(d, 64<<10)
		chunks := fmt.Sprintf("%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", 40000, body[:40000], len(body)-40000, body[40000:])
		for name, sent := range map[string]string{
			"length":  request(d.path, body),
			"chunked": strings.Replace(request(d.path, "", "-Content-Type"), "Content-Length: 0", "Transfer-Encoding: chunked", 1) + chunks,
		} {
			t.Run(d.name+"/"+name, func(t *testing.T) {
				c := r.dial()
				_, _ = io.WriteString(c, sent) // the answer may come before the last byte is taken
				br := bufio.NewReader(c)
				a := readFrom(t, br)
				equal(t, "status", a.StatusCode, 413)
				contains(t, "body", string(a.body), "limits.max_body=65536")
				isErrorBody(t, d, a)
				isClosed(t, br)
				rec := r.record()
				equal(t, "outcome", rec.Outcome, trace.Refused)
				equal(t, "tenant", rec.Tenant, "team")
			})
		}
	}
	equal(t, "requests at the engine", len(r.engine.Requests()), 0)
	body := padded(dialects[1], 60<<10)
	equal(t, "status of one below the limit", r.post(dialects[1].path, body).StatusCode, 200)
}

// upload is a request whose body is still coming: it holds a place in the budget.
func (r *rig) upload(d dialectCase, n int) (c net.Conn, rest string) {
	r.t.Helper()
	sent := request(d.path, padded(d, n))
	c = r.dial()
	_ = must(io.WriteString(c, sent[:len(sent)-100]))
	r.await("the body is coming", func() bool { return r.gateway.BodyBytes() > 0 })
	return c, sent[len(sent)-100:]
}

func TestBodyBudget(t *testing.T) {
	r := newRig(t, quickly(setup{config: smallLimits}))
	for _, d := range dialects {
		c, rest := r.upload(d, 50<<10)
		a := r.post(d.path, padded(d, 20<<10))
		equal(t, "status while it is used up", a.StatusCode, 503)
		equal(t, "retry-after", a.Header.Get("Retry-After"), "1")
		contains(t, "body", string(a.body), "limits.body_budget=65536")
		isErrorBody(t, d, a)
		rec := r.record()
		equal(t, "outcome", rec.Outcome, trace.Refused)
		equal(t, "a small one still fits", r.post(d.path, d.body(false, "x")).StatusCode, 200)
		_ = must(io.WriteString(c, rest))
		equal(t, "status of the one that held it", read(t, c).StatusCode, 200)
		equal(t, "status afterwards", r.post(d.path, padded(d, 20<<10)).StatusCode, 200)
		for range 3 {
			equal(t, "outcome of the others", r.record().Outcome, trace.OK)
		}
	}
	r.await("given back", func() bool { return r.gateway.BodyBytes() == 0 })
}

// TestBodyBudgetRefusesBeforeTheUpload: a client that asks first is told before it sends.
func TestBodyBudgetRefusesBeforeTheUpload(t *testing.T) {
	r := newRig(t, quickly(setup{config: smallLimits}))
	c, rest := r.upload(dialects[0], 50<<10)
	for _, framing := range []string{"Content-Length: 20000", "Transfer-Encoding: chunked"} {
		conn := r.dial()
		_ = must(io.WriteString(conn, "POST /v1/messages HTTP/1.1\r\nHost: g\r\nx-api-key: "+testKey+"\r\nExpect: 100-continue\r\n"+framing+"\r\n\r\n"))
		br := bufio.NewReader(conn)
		a := readFrom(t, br)
		equal(t, "status with "+framing, a.StatusCode, 503)
		equal(t, "retry-after", a.Header.Get("Retry-After"), "1")
		isClosed(t, br)
	}
	_ = must(io.WriteString(c, rest))
	equal(t, "status of the one that held it", read(t, c).StatusCode, 200)
}

// fates are what can become of a request with a body.
var fates = []struct {
	name string
	play func(t *testing.T, r *rig, big string)
}{
	{"served", func(t *testing.T, r *rig, big string) {
		equal(t, "status", r.post("/v1/chat/completions", big).StatusCode, 200)
	}},
	{"bad JSON", func(t *testing.T, r *rig, big string) {
		equal(t, "status", r.post("/v1/chat/completions", big[:50<<10]).StatusCode, 400)
	}},
	{"unknown model", func(t *testing.T, r *rig, big string) {
		equal(t, "status", r.post("/v1/chat/completions", strings.Replace(big, "public", "nobody", 1)).StatusCode, 404)
	}},
	{"forbidden model", func(t *testing.T, r *rig, big string) {
		equal(t, "status", r.post("/v1/chat/completions", strings.Replace(big, "public", "secret", 1)).StatusCode, 403)
	}},
	{"bad timeout", func(t *testing.T, r *rig, big string) {
		equal(t, "status", r.post("/v1/chat/completions", big, "x-gateway-timeout-ms: x").StatusCode, 400)
	}},
	{"unknown key", func(t *testing.T, r *rig, big string) {
		equal(t, "status", r.post("/v1/chat/completions", big, "-Authorization").StatusCode, 401)
	}},
	{"unknown path", func(t *testing.T, r *rig, big string) { equal(t, "status", r.post("/v2/x", big).StatusCode, 404) }},
	{"wrong method", func(t *testing.T, r *rig, big string) {
		c := r.dial()
		_, _ = io.WriteString(c, strings.Replace(request("/v1/chat/completions", big), "POST", "PUT", 1))
		equal(t, "status", read(t, c).StatusCode, 405)
	}},
	{"the upstream refuses", func(t *testing.T, r *rig, big string) {
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.Status, Status: 500, Times: 1})
		equal(t, "status", r.post("/v1/chat/completions", big).StatusCode, 500)
	}},
	{"closed in mid-body", func(_ *testing.T, r *rig, _ string) { c, _ := r.upload(dialects[1], 50<<10); _ = c.Close() }},
	{"half-closed in mid-body", func(_ *testing.T, r *rig, _ string) {
		c, _ := r.upload(dialects[1], 50<<10)
		_ = c.(*net.TCPConn).CloseWrite()
	}},
	{"reset in mid-body", func(_ *testing.T, r *rig, _ string) { c, _ := r.upload(dialects[1], 50<<10); resetNow(c) }},
	{"reset inside a chunk", func(t *testing.T, r *rig, big string) {
		c := r.dial()
		_ = must(io.WriteString(c, "POST /v1/messages HTTP/1.1\r\nHost: g\r\nx-api-key: "+testKey+"\r\nTransfer-Encoding: chunked\r\n\r\n100\r\nhalf"))
		r.await("the body is coming", func() bool { return r.gateway.BodyBytes() > 0 })
		resetNow(c)
	}},
	{"broken chunk", func(t *testing.T, r *rig, big string) {
		c := r.dial()
		_ = must(io.WriteString(c, "POST /v1/messages HTTP/1.1\r\nHost: g\r\nx-api-key: "+testKey+"\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"))
		equal(t, "status", read(t, c).StatusCode, 400)
	}},
	{"gone while streaming", func(t *testing.T, r *rig, big string) {
		v := r.visit("/v1/chat/completions", strings.Replace(big, `"stream":false`, `"stream":true`, 1))
		v.begins()
		_ = v.conn.Close()
	}},
	{"gone while waiting", func(t *testing.T, r *rig, big string) {
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.Hang, Before: true, Times: 1})
		v := r.visit("/v1/chat/completions", big)
		v.arrived()
		_ = v.conn.Close()
	}},
}

func resetNow(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() }

// TestBodyBudgetIsGivenBack: whatever becomes of the request. The largest body
// fits once more after each.
func TestBodyBudgetIsGivenBack(t *testing.T) {
	r := newRig(t, quickly(setup{config: smallLimits, model: secondModel, tenant: "    models: [public]"}))
	big := padded(dialects[1], 50<<10)
	for _, p := range fates {
		t.Run(p.name, func(t *testing.T) {
			p.play(t, r, big)
			r.await("given back after: "+p.name, func() bool { return r.gateway.BodyBytes() == 0 })
			r.await("over: "+p.name, func() bool { return r.gateway.Streams() == 0 })
			equal(t, "status of the next", r.post("/v1/chat/completions", big).StatusCode, 200)
		})
	}
}

// TestBodyLeavesMemoryWhenTheAnswerBegins: a long answer does not hold its prompt.
func TestBodyLeavesMemoryWhenTheAnswerBegins(t *testing.T) {
	r := newRig(t, setup{config: smallLimits})
	r.engine.Script(fakeengine.Fault{Kind: fakeengine.Hang, After: 1})
	r.visit("/v1/chat/completions", strings.Replace(padded(dialects[1], 50<<10), `"stream":false`, `"stream":true`, 1)).begins()
	equal(t, "streams", r.gateway.Streams(), 1)
	r.await("given back", func() bool { return r.gateway.BodyBytes() == 0 })
}

// TestBodyBudgetAfterADeathBetweenChunks: what the dead request reserved is
// given back, and never taken for that of the next one on its memory.
func TestBodyBudgetAfterADeathBetweenChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, quickly(setup{memory: true, config: smallLimits}))
		for range 8 { // the server's pool hands its memory on, mostly
			c := r.dial()
			_ = must(io.WriteString(c, "POST /v1/messages HTTP/1.1\r\nHost: g\r\nx-api-key: "+testKey+"\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"))
			synctest.Wait()
			equal(t, "body bytes while it comes", r.gateway.BodyBytes(), 64<<10)
			_ = c.Close()
			synctest.Wait()
			rec := r.record()
			equal(t, "outcome", rec.Outcome, trace.ClientAbort)
			equal(t, "tenant", rec.Tenant, "team")
			equal(t, "body bytes afterwards", r.gateway.BodyBytes(), 0)
			a := r.ask("GET", "/livez")
			equal(t, "answer to a probe", string(a.body), "ok\n")
			a = r.ask("GET", "/v1/models")
			equal(t, "status without a key", a.StatusCode, 401)
			equal(t, "requests counted", len(r.finished), 0)
		}
	})
}

func TestMaxStreams(t *testing.T) {
	r := newRig(t, quickly(setup{config: "limits: {max_streams: 2}"}))
	r.engine.Script(fakeengine.Fault{Kind: fakeengine.Hang, After: 1, Times: 2})
	var open []net.Conn
	for range 2 {
		v := r.visit("/v1/chat/completions", chatBody("Hello"))
		v.begins()
		open = append(open, v.conn)
	}
	for _, d := range dialects {
		a := r.post(d.path, d.body(true, "hello"))
		equal(t, "status", a.StatusCode, 503)
		equal(t, "retry-after", a.Header.Get("Retry-After"), "1")
		equal(t, "x-should-retry", a.Header.Get("X-Should-Retry"), "true")
		contains(t, "body", string(a.body), "limits.max_streams=2")
		isErrorBody(t, d, a)
		rec := r.record()
		equal(t, "outcome", rec.Outcome, trace.Refused)
		equal(t, "tenant", rec.Tenant, "team")
	}
	_ = open[0].Close()
	r.await("one has ended", func() bool { return r.gateway.Streams() == 1 })
	equal(t, "status when there is room", r.post(dialects[0].path, dialects[0].body(true, "hello")).StatusCode, 200)
}

// TestRefusedHeadsAreNotKeptForGood: of connections that died before the
// server noticed that their body may not come in.
func TestRefusedHeadsAreNotKeptForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBodyBudget(1000)
		for range 100 {
			b.reserve(new(fasthttp.RequestHeader), entry{}, 0, time.Minute)
		}
		<-time.After(5 * time.Minute)
		b.reserve(new(fasthttp.RequestHeader), entry{}, 0, time.Minute)
		equal(t, "kept", len(b.pending), 1)
	})
}
