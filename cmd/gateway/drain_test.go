package main

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"tracegate/bench/fakeengine"
)

// held starts a gateway with one stream that has begun and is silent until the engine thaws.
func held(t *testing.T, drain string) (p *process, e *fakeengine.Engine, stream *bufio.Reader) {
	t.Helper()
	e, yaml := engine(t, fakeengine.Options{StepBase: 2 * time.Millisecond, DefaultTokens: 500}, "drain: "+drain+"\n")
	p = serve(t, yaml)
	resp := chat(t, client(t), "http://"+p.data, "held-request")
	equal(t, "status", resp.StatusCode, 200)
	stream = bufio.NewReader(resp.Body)
	if line, err := stream.ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
		t.Fatalf("the stream does not begin: %q, %v", line, err)
	}
	e.Freeze()
	return p, e, stream
}

// post sends a request on a connection of its own and gives the answer's status. It waits no longer than 5 s for an
// engine that stands still.
func (p *process) post() int {
	p.t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequest("POST", "http://"+p.data+"/v1/chat/completions",
		strings.NewReader(`{"model":"public","max_tokens":2,"messages":[{"role":"user","content":"Bye"}]}`))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Gateway-Timeout-Ms", "5000")
	resp, err := c.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func (p *process) readyz() int {
	p.t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return status(p.t, c, "http://"+p.admin+"/readyz")
}

func TestSIGTERMServesOnDuringTheDelay(t *testing.T) {
	p, e, stream := held(t, "{delay: 1h, timeout: 1h}")
	p.signal(syscall.SIGTERM)
	await(t, "readiness fails", func() bool { return p.readyz() == 503 })
	e.Thaw()
	rest, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "the answer ends whole", string(rest), "data: [DONE]")
	equal(t, "new requests during the delay", p.post(), 200)
	p.signal(syscall.SIGTERM) // skips the rest of the hour
	equal(t, "exit code", p.wait(), 0)
}

func TestSIGINTSkipsTheDelayAndLetsAnswersEnd(t *testing.T) {
	p, e, stream := held(t, "{delay: 1h, timeout: 1h}")
	p.signal(syscall.SIGINT)
	await(t, "new requests are refused", func() bool { return p.post() == 503 })
	equal(t, "readiness", p.readyz(), 503)
	e.Thaw()
	rest, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "the answer ends whole", string(rest), "data: [DONE]")
	equal(t, "exit code", p.wait(), 0)
}

func TestASecondSignalCutsWhatIsLeft(t *testing.T) {
	for _, signals := range [][2]syscall.Signal{{syscall.SIGINT, syscall.SIGINT}, {syscall.SIGTERM, syscall.SIGINT}, {syscall.SIGTERM, syscall.SIGTERM}} {
		t.Run(signals[0].String()+", "+signals[1].String(), func(t *testing.T) {
			p, _, stream := held(t, "{delay: 1h, timeout: 1h}")
			p.signal(signals[0])
			await(t, "readiness fails", func() bool { return p.readyz() == 503 })
			p.signal(signals[1])
			cut(t, stream)
			equal(t, "exit code", p.wait(), 0)
		})
	}
}

func TestAnswersAreCutAtTheTimeout(t *testing.T) {
	p, _, stream := held(t, "{delay: 0s, timeout: 50ms}")
	p.signal(syscall.SIGTERM)
	cut(t, stream)
	equal(t, "exit code", p.wait(), 0)
	contains(t, "the log says so", p.stderr.String(), "answers were cut")
}

// cut reads a stream that must say that it failed, and not look complete.
func cut(t *testing.T, stream *bufio.Reader) {
	t.Helper()
	rest, err := io.ReadAll(stream)
	if err == nil || strings.Contains(string(rest), "[DONE]") {
		t.Errorf("the cut stream looks complete: %v, %q", err, rest)
	}
	contains(t, "the answer's last words", string(rest), `"error"`)
}

func TestIdleConnectionsDoNotHoldTheProcess(t *testing.T) {
	_, yaml := engine(t, fakeengine.Options{StepBase: 1e6}, "drain: {delay: 0s, timeout: 1h}\n")
	p, c := serve(t, yaml), client(t)
	equal(t, "a connection that stays open", status(t, c, "http://"+p.data+"/livez"), 200)
	equal(t, "one to the admin listener", status(t, c, "http://"+p.admin+"/livez"), 200)
	p.signal(syscall.SIGTERM)
	equal(t, "exit code", p.wait(), 0)
}
