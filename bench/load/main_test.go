package load

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listenUpstream starts an upstream for one test.
func listenUpstream(t *testing.T) *Upstream {
	t.Helper()
	u, err := ListenUpstream("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	return u
}

// mustRun runs a plan that must not fail.
func mustRun(t *testing.T, p Plan) Result {
	t.Helper()
	r, err := Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// eventually waits until ok, which it asks again and again, is true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(5 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("it never happened: %s", what)
		}
	}
}

// serveAnswers is a server whose answers are raw bytes that depend on the request's order. It closes the connection after each one.
func serveAnswers(t *testing.T, answer func(order) string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			serveOne(nc, answer)
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return ln.Addr().String()
}

func serveOne(nc net.Conn, answer func(order) string) {
	defer nc.Close()
	req, err := http.ReadRequest(bufio.NewReader(nc))
	if err != nil {
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	o, _ := parseOrder(body)
	io.WriteString(nc, answer(o))
}

// decoded is the exact body of a streamed answer.
func decoded(s *script, o order) string {
	var b []byte
	for k := range o.tokens {
		p := s.token
		if k == 0 {
			p = s.first
		}
		b = p.appendTo(b, slots{received: Now(), stamp: Now(), id: o.id, index: int64(k)})
	}
	return string(s.last.appendTo(b, slots{id: o.id, index: int64(o.tokens)}))
}

// framed is a whole answer with body as its stream, one chunk for each event.
func framed(body string) string {
	var b strings.Builder
	b.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
	for _, e := range strings.SplitAfter(body, "\n\n") {
		if e != "" {
			fmt.Fprintf(&b, "%x\r\n%s\r\n", len(e), e)
		}
	}
	return b.String() + "0\r\n\r\n"
}
