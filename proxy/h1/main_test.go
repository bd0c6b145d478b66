package h1

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// upstream is a scripted server on loopback. script runs once per connection;
// the connection is closed when it returns.
type upstream struct {
	addr  string
	conns atomic.Int64
}

func serve(t testing.TB, script func(c net.Conn, r *bufio.Reader)) *upstream {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, ln, script)
}

func serveOn(t testing.TB, ln net.Listener, script func(c net.Conn, r *bufio.Reader)) *upstream {
	u := &upstream{addr: ln.Addr().String()}
	var all sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]struct{}{}
	all.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			u.conns.Add(1)
			mu.Lock()
			open[c] = struct{}{}
			mu.Unlock()
			all.Go(func() {
				script(c, bufio.NewReader(c))
				_ = c.Close()
				mu.Lock()
				delete(open, c)
				mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		mu.Lock()
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return u
}

// request reads one request with net/http's parser, which shares no code with ours.
func request(r *bufio.Reader) (body string, err error) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(req.Body)
	return string(b), err
}

// each answers every request on a connection with answer.
func each(answer string) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		for {
			if _, err := request(r); err != nil {
				return
			}
			if _, err := io.WriteString(c, answer); err != nil {
				return
			}
		}
	}
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

func newPool(t testing.TB, target Target) *Pool {
	t.Helper()
	target.Addr = cmp.Or(target.Addr, "upstream:80")
	target.ProxyURL = cmp.Or(target.ProxyURL, "off")
	p, err := NewPool(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// soon bounds steps on real sockets: a test that needs it has failed.
func soon() time.Time { return time.Now().Add(20 * time.Second) }

// post goes through Connect, Write and ReadHead.
func post(c *Call, body string) (h *fasthttp.ResponseHeader, err error) {
	h = new(fasthttp.ResponseHeader)
	if err = c.Connect(soon()); err != nil {
		return h, err
	}
	if err = writePost(c, soon(), body); err != nil {
		return h, err
	}
	return h, c.ReadHead(soon(), h)
}

// writePost is the step Write for a POST.
func writePost(c *Call, until time.Time, body string) error {
	return c.Write(until, headOf("POST", body), []byte(body))
}

// headOf is a head as the proxy writes it.
func headOf(method, body string) []byte {
	var req fasthttp.RequestHeader
	req.SetMethod(method)
	req.SetRequestURI("/v1/chat/completions")
	req.SetHost("upstream.test")
	if method == "POST" {
		req.SetContentLength(len(body))
	}
	return req.AppendBytes(nil)
}

// rest reads the body to its end or an error.
func rest(c *Call) (string, error) {
	var all strings.Builder
	for {
		b, err := c.Next(soon())
		all.Write(b)
		if err == io.EOF {
			return all.String(), nil
		}
		if err != nil {
			return all.String(), err
		}
	}
}

// exchange is a whole call.
func exchange(p *Pool, body string) (answer string, c *Call, err error) {
	c = p.NewCall()
	defer c.Finish()
	if _, err = post(c, body); err != nil {
		return "", c, err
	}
	answer, err = rest(c)
	return answer, c, err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// wantKind fails unless err is an *Error of that kind.
func wantKind(t testing.TB, err error, kind string) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("error: got %v, want kind %s", err, kind)
	}
	return e
}
