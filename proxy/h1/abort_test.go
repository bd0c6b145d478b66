package h1

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// phases are scripts that bring a call to a point and say so.
var phases = []struct {
	name   string
	script func(conn net.Conn, r *bufio.Reader, reached chan<- struct{})
	change func(*Target, string)
	body   string
}{
	{name: "while TLS shakes hands", change: func(t *Target, _ string) { t.TLS = true }, script: func(conn net.Conn, r *bufio.Reader, reached chan<- struct{}) {
		_, _ = r.ReadByte()
		reached <- struct{}{}
	}},
	{name: "while the proxy thinks", change: func(t *Target, addr string) { t.ProxyURL = "http://" + addr }, script: func(conn net.Conn, r *bufio.Reader, reached chan<- struct{}) {
		_, _ = r.ReadByte()
		reached <- struct{}{}
	}},
	{name: "while writing", body: strings.Repeat("x", 64<<20), script: func(conn net.Conn, r *bufio.Reader, reached chan<- struct{}) {
		_, _ = r.ReadByte()
		reached <- struct{}{}
	}},
	{name: "while waiting for the head", script: func(conn net.Conn, r *bufio.Reader, reached chan<- struct{}) {
		_, _ = request(r)
		reached <- struct{}{}
	}},
	{name: "inside the head", script: func(conn net.Conn, r *bufio.Reader, reached chan<- struct{}) {
		_, _ = request(r)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nCont")
		reached <- struct{}{}
	}},
	{name: "inside the body", script: func(conn net.Conn, r *bufio.Reader, reached chan<- struct{}) {
		_, _ = request(r)
		_, _ = io.WriteString(conn, chunked+"5\r\nhe")
		reached <- struct{}{}
	}},
	{name: "until close", script: func(conn net.Conn, r *bufio.Reader, reached chan<- struct{}) {
		_, _ = request(r)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\nhe")
		reached <- struct{}{}
	}},
}

func TestAbortInEveryPhase(t *testing.T) {
	for _, c := range phases {
		t.Run(c.name, func(t *testing.T) {
			reached, left := make(chan struct{}), make(chan struct{})
			up := serve(t, func(conn net.Conn, r *bufio.Reader) {
				c.script(conn, r, reached)
				_, _ = io.Copy(io.Discard, r) // until the call has left
				close(left)
			})
			target := Target{Addr: up.addr}
			if c.change != nil {
				c.change(&target, up.addr)
			}
			p := newPool(t, target)
			call := p.NewCall()
			go func() {
				<-reached
				call.Abort()
				call.Abort()
			}()
			_, err := post(call, c.body)
			if err == nil {
				_, err = rest(call)
			}
			equal(t, "error", err, ErrAborted)
			<-left
			_, err = call.Next(soon())
			equal(t, "the next step", err, ErrAborted)
			call.Finish()
			equal(t, "idle", p.Idle(), 0)
		})
	}
}

func TestAbortWhileDialling(t *testing.T) {
	dialling := make(chan struct{})
	p := newPool(t, Target{Dial: func(ctx context.Context, _ string) (net.Conn, error) {
		close(dialling)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	c := p.NewCall()
	go func() {
		<-dialling
		c.Abort()
	}()
	equal(t, "connect", c.Connect(time.Time{}), ErrAborted)
	c.Discard()
}

func TestAbortBeforeConnect(t *testing.T) {
	p := newPool(t, Target{Dial: func(context.Context, string) (net.Conn, error) {
		panic("BUG: dialled for an aborted call")
	}})
	c := p.NewCall()
	c.Abort()
	equal(t, "connect", c.Connect(time.Time{}), ErrAborted)
	c.Finish()
}

func TestAbortWhileRedialling(t *testing.T) {
	up := serve(t, lateCloser(false, func(string) {}))
	dialling, dials := make(chan struct{}), 0
	p := newPool(t, Target{Addr: up.addr, Dial: func(ctx context.Context, addr string) (net.Conn, error) {
		if dials++; dials == 1 {
			return net.Dial("tcp", addr)
		}
		close(dialling)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	_, _, err := exchange(p, "1")
	must(t, err)
	c := p.NewCall()
	go func() {
		<-dialling
		c.Abort()
	}()
	_, err = post(c, "2")
	equal(t, "head", err, ErrAborted)
	c.Finish()
}

// echo answers with the request's body, in chunks.
func echo(c net.Conn, r *bufio.Reader) {
	for {
		body, err := request(r)
		if err != nil {
			return
		}
		half := len(body) / 2
		_, err = io.WriteString(c, chunked+chunk(body[:half]))
		if err != nil {
			return
		}
		if _, err = io.WriteString(c, chunk(body[half:])+"0\r\n\r\n"); err != nil {
			return
		}
	}
}

// Aborts race with every step and with Finish. No answer may reach another
// call, no late Abort or Wake may hurt a connection that serves somebody else.
func TestAbortRacesFinish(t *testing.T) {
	const calls, workers = 20_000, 16
	up := serve(t, echo)
	p := newPool(t, Target{Addr: up.addr})
	var next, completed, aborted atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for {
				n := next.Add(1)
				if n > calls || t.Failed() {
					return
				}
				switch err := markedCall(p, fmt.Sprintf("marker-%08d", n), n%2 == 0); err {
				case nil:
					completed.Add(1)
				case ErrAborted:
					aborted.Add(1)
				default:
					t.Errorf("call %d: %v", n, err)
					return
				}
			}
		})
	}
	all.Wait()
	t.Logf("completed %d, aborted %d, connections %d", completed.Load(), aborted.Load(), up.conns.Load())
	if completed.Load() < calls/2 || aborted.Load() == 0 {
		t.Errorf("completed %d, aborted %d: nothing raced", completed.Load(), aborted.Load())
	}
	if n := p.Idle(); n > workers {
		t.Errorf("%d idle connections of %d workers", n, workers)
	}
}

// markedCall is one call whose answer must be its own marker. With disturb,
// another goroutine wakes and aborts it at a random instant, often too late.
func markedCall(p *Pool, marker string, disturb bool) error {
	c := p.NewCall()
	if disturb {
		quiet := make(chan struct{})
		defer func() { <-quiet }()
		wait := rand.IntN(400)
		go func() {
			defer close(quiet)
			for range wait {
				runtime.Gosched()
			}
			c.Wake()
			c.Abort()
		}()
	}
	defer c.Finish()
	got, err := patiently(c, marker)
	if err == nil && got != marker {
		return fmt.Errorf("got %q, want %q", got, marker)
	}
	return err
}

// patiently goes through a call and repeats every step that paused.
func patiently(c *Call, body string) (string, error) {
	steps := []func() error{
		func() error { return c.Connect(soon()) },
		func() error { return writePost(c, soon(), body) },
		func() error { return c.ReadHead(soon(), new(fasthttp.ResponseHeader)) },
	}
	for _, step := range steps {
		err := step()
		for err == ErrPaused {
			err = step()
		}
		if err != nil {
			return "", err
		}
	}
	var all []byte
	for {
		b, err := c.Next(soon())
		all = append(all, b...)
		switch err {
		case nil, ErrPaused:
		case io.EOF:
			return string(all), nil
		default:
			return "", err
		}
	}
}
