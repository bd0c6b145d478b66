package h1

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// lateCloser answers the first request of each connection; the second one's
// first byte makes it close, as an idle timeout does that raced the request.
func lateCloser(reset bool, seen func(body string)) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		body, err := request(r)
		if err != nil {
			return
		}
		seen(body)
		_, _ = io.WriteString(c, ok)
		_, _ = r.Peek(1)
		if reset {
			_ = c.(*net.TCPConn).SetLinger(0)
		}
	}
}

func TestStaleConnectionIsReplacedOnce(t *testing.T) {
	for _, reset := range []bool{false, true} {
		t.Run(fmt.Sprintf("reset=%v", reset), func(t *testing.T) {
			var mu sync.Mutex
			count := map[string]int{}
			up := serve(t, lateCloser(reset, func(body string) {
				mu.Lock()
				count[body]++
				mu.Unlock()
			}))
			p := newPool(t, Target{Addr: up.addr})
			pad := strings.Repeat("x", 200<<10) // more than the socket takes at once
			for i := range 50 {
				body := fmt.Sprintf("%d %s", i, pad)
				answer, c, err := exchange(p, body)
				must(t, err)
				equal(t, "answer", answer, "ok")
				equal(t, "redialled", c.Redialled, i > 0)
				equal(t, "reused", c.Reused, false)
			}
			mu.Lock()
			defer mu.Unlock()
			equal(t, "bodies", len(count), 50)
			for body, n := range count {
				if n != 1 || len(body) < len(pad) {
					t.Errorf("request %.3s: %d times, %d bytes", body, n, len(body))
				}
			}
		})
	}
}

func TestNoSecondSending(t *testing.T) {
	quit := func(c net.Conn, r *bufio.Reader) { _, _ = request(r) }
	then := func(scripts ...func(net.Conn, *bufio.Reader)) func(net.Conn, *bufio.Reader) {
		next := make(chan func(net.Conn, *bufio.Reader), len(scripts))
		for _, s := range scripts {
			next <- s
		}
		return func(c net.Conn, r *bufio.Reader) { (<-next)(c, r) }
	}
	answerThen := func(second func(net.Conn, *bufio.Reader)) func(net.Conn, *bufio.Reader) {
		return func(c net.Conn, r *bufio.Reader) {
			_, _ = request(r)
			_, _ = io.WriteString(c, ok)
			second(c, r)
		}
	}
	for _, c := range []struct {
		name   string
		script func(net.Conn, *bufio.Reader)
		warm   bool
		kind   string
		conns  int64
	}{
		{"a fresh connection is closed", quit, false, KindCut, 1},
		{"the second one is closed too", then(answerThen(quit), quit), true, KindCut, 2},
		{"one byte of an answer came", then(answerThen(func(c net.Conn, r *bufio.Reader) {
			_, _ = request(r)
			_, _ = io.WriteString(c, "H")
		})), true, KindCut, 1},
		{"the answer was nonsense", then(answerThen(func(c net.Conn, r *bufio.Reader) {
			_, _ = request(r)
			_, _ = io.WriteString(c, "nonsense")
		})), true, KindProtocol, 1},
		{"the head was cut", then(answerThen(func(c net.Conn, r *bufio.Reader) {
			_, _ = request(r)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		})), true, KindCut, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			up := serve(t, c.script)
			p := newPool(t, Target{Addr: up.addr})
			if c.warm {
				_, _, err := exchange(p, "{}")
				must(t, err)
			}
			_, _, err := exchange(p, "{}")
			wantKind(t, err, c.kind)
			equal(t, "connections", up.conns.Load(), c.conns)
		})
	}
}

// An upstream may answer before it has read the request, and close: 413, say.
func TestEarlyAnswerIsRead(t *testing.T) {
	up := serve(t, func(c net.Conn, r *bufio.Reader) {
		_, _ = r.Peek(1)
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, r)
	})
	p := newPool(t, Target{Addr: up.addr})
	call := p.NewCall()
	h, err := post(call, strings.Repeat("x", 8<<20))
	must(t, err)
	equal(t, "status", h.StatusCode(), 413)
	body, err := rest(call)
	must(t, err)
	equal(t, "body", body, "big")
	call.Finish()
}
