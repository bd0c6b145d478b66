package h1

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"
)

// inMemory serves on connections without a descriptor, whose waits are virtual time.
func inMemory(t *testing.T, script func(net.Conn, *bufio.Reader)) Target {
	ln := fasthttputil.NewInmemoryListener()
	serveOn(t, ln, script)
	return Target{Dial: func(context.Context, string) (net.Conn, error) { return ln.Dial() }}
}

// piped serves one connection of net.Pipe, where a write waits for its reader.
func piped(t *testing.T, script func(net.Conn, *bufio.Reader)) Target {
	return Target{Dial: func(context.Context, string) (net.Conn, error) {
		near, far := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			script(far, bufio.NewReader(far))
			_ = far.Close()
		}()
		t.Cleanup(func() { _ = far.Close(); <-done })
		return near, nil
	}}
}

// clock asserts how much virtual time has passed.
func clock(t *testing.T, began time.Time, want time.Duration) {
	t.Helper()
	equal(t, "time passed", time.Since(began), want)
}

func TestConnectPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := inMemory(t, each(ok))
		inner, dials := target.Dial, 0
		target.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			dials++
			<-time.After(3 * time.Second)
			return inner(ctx, addr)
		}
		p := newPool(t, target)
		c := p.NewCall()
		began := time.Now()
		equal(t, "first", c.Connect(began.Add(time.Second)), ErrPaused)
		clock(t, began, time.Second)
		equal(t, "at once", c.Connect(began.Add(time.Second)), ErrPaused)
		clock(t, began, time.Second)
		must(t, c.Connect(began.Add(5*time.Second)))
		clock(t, began, 3*time.Second)
		equal(t, "dials", dials, 1)
		equal(t, "connect time", c.ConnectTime, 3*time.Second)
		c.Discard()
	})
}

// A dial whose call was given up brings a connection that nobody wants.
func TestGivenUpDialIsClosed(t *testing.T) {
	for _, how := range []string{"discard", "finish", "abort"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				p := newPool(t, Target{Dial: func(context.Context, string) (net.Conn, error) {
					<-time.After(3 * time.Second) // deaf to its context
					return near, nil
				}})
				c := p.NewCall()
				equal(t, "connect", c.Connect(time.Now().Add(time.Second)), ErrPaused)
				switch how {
				case "discard":
					c.Discard()
				case "finish":
					c.Finish()
				case "abort":
					c.Abort()
					equal(t, "after abort", c.Connect(time.Time{}), ErrAborted)
					c.Discard()
				}
				_, err := far.Read(make([]byte, 1))
				equal(t, "the other end sees", err, io.EOF)
			})
		})
	}
}

// A dial that was ready before the call was given up is closed, too.
func TestReadyDialIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		p := newPool(t, Target{Dial: func(context.Context, string) (net.Conn, error) {
			<-time.After(2 * time.Second)
			return near, nil
		}})
		c := p.NewCall()
		equal(t, "connect", c.Connect(time.Now().Add(time.Second)), ErrPaused)
		<-time.After(5 * time.Second)
		c.Discard()
		_, err := far.Read(make([]byte, 1))
		equal(t, "the other end sees", err, io.EOF)
	})
}

func TestWritePauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan string, 1)
		p := newPool(t, piped(t, func(c net.Conn, r *bufio.Reader) {
			some := make([]byte, 10)
			_, _ = io.ReadFull(c, some)
			<-time.After(3 * time.Second)
			body, _ := request(bufio.NewReader(io.MultiReader(strings.NewReader(string(some)), c)))
			got <- body
			_, _ = io.WriteString(c, ok)
		}))
		c := p.NewCall()
		must(t, c.Connect(time.Time{}))
		body := strings.Repeat("0123456789", 10_000)
		began := time.Now()
		for i := 1; i <= 2; i++ {
			equal(t, "write", writePost(c, began.Add(time.Duration(i)*time.Second), body), ErrPaused)
			clock(t, began, time.Duration(i)*time.Second)
		}
		must(t, writePost(c, began.Add(time.Minute), body))
		clock(t, began, 3*time.Second)
		equal(t, "body", <-got, body)
		must(t, c.ReadHead(time.Time{}, new(fasthttp.ResponseHeader)))
		c.Discard()
	})
}

func TestHeadAndBodyPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		say := []string{"HTTP/1.1 200 OK\r\nTransfer-En", "coding: chunked\r\n\r\n", "5\r", "\nhe", "llo\r\n0\r\n", "\r\n"}
		p := newPool(t, inMemory(t, func(c net.Conn, r *bufio.Reader) {
			_, _ = request(r)
			for _, s := range say {
				<-time.After(2 * time.Second)
				_, _ = io.WriteString(c, s)
			}
			_, _ = request(r)
		}))
		c := p.NewCall()
		must(t, c.Connect(time.Time{}))
		must(t, writePost(c, time.Time{}, ""))
		began := time.Now()
		at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
		h := new(fasthttp.ResponseHeader)
		for _, s := range []int{1, 3} { // the script speaks at even seconds
			equal(t, "head", c.ReadHead(at(s), h), ErrPaused)
			clock(t, began, time.Duration(s)*time.Second)
			equal(t, "first byte", c.head.seen, s >= 3)
		}
		must(t, c.ReadHead(at(5), h))
		clock(t, began, 4*time.Second)
		next := func(until int, want string, wantErr error, passed int) {
			t.Helper()
			b, err := c.Next(at(until))
			equal(t, "bytes", string(b), want)
			equal(t, "error", err, wantErr)
			clock(t, began, time.Duration(passed)*time.Second)
		}
		next(5, "", ErrPaused, 5)
		next(7, "", ErrPaused, 7) // half a size line came at 6
		next(9, "he", nil, 8)
		next(9, "", ErrPaused, 9)
		next(60, "llo", nil, 10)
		next(11, "", ErrPaused, 11)
		next(60, "", io.EOF, 12)
		next(60, "", io.EOF, 12)
		c.Finish()
		equal(t, "idle", p.Idle(), 1)
	})
}

// The dial that replaces a stale connection can pause as well.
func TestRedialPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := inMemory(t, lateCloser(false, func(string) {}))
		inner, dials := target.Dial, 0
		target.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			if dials++; dials == 2 {
				<-time.After(3 * time.Second)
			}
			return inner(ctx, addr)
		}
		p := newPool(t, target)
		_, _, err := exchange(p, "1")
		must(t, err)
		c := p.NewCall()
		must(t, c.Connect(time.Time{}))
		equal(t, "reused", c.Reused, true)
		must(t, writePost(c, time.Time{}, "2"))
		began := time.Now()
		h := new(fasthttp.ResponseHeader)
		equal(t, "head", c.ReadHead(began.Add(time.Second), h), ErrPaused)
		clock(t, began, time.Second)
		must(t, c.ReadHead(began.Add(time.Minute), h))
		clock(t, began, 3*time.Second)
		equal(t, "redialled", c.Redialled, true)
		equal(t, "reused", c.Reused, false)
		c.Finish()
	})
}

// Silence on a reused connection is no reason to send again.
func TestNoRedialForSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		p := newPool(t, inMemory(t, func(c net.Conn, r *bufio.Reader) {
			for {
				if _, err := request(r); err != nil {
					return
				}
				if requests++; requests == 1 {
					_, _ = io.WriteString(c, ok)
				}
			}
		}))
		_, _, err := exchange(p, "1")
		must(t, err)
		c := p.NewCall()
		must(t, c.Connect(time.Time{}))
		must(t, writePost(c, time.Time{}, "2"))
		began := time.Now()
		equal(t, "head", c.ReadHead(began.Add(time.Hour), new(fasthttp.ResponseHeader)), ErrPaused)
		clock(t, began, time.Hour)
		c.Discard()
		synctest.Wait()
		equal(t, "requests", requests, 2)
	})
}

// An earlier request's deadline must not fire in a later one on the connection.
func TestNoDeadlineIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, inMemory(t, func(c net.Conn, r *bufio.Reader) {
			for i := 0; ; i++ {
				if _, err := request(r); err != nil {
					return
				}
				<-time.After(time.Duration(i) * 10 * time.Second)
				_, _ = io.WriteString(c, ok)
			}
		}))
		for i := range 2 {
			c := p.NewCall()
			until := time.Now().Add(time.Second)
			if i == 1 {
				until = time.Time{}
			}
			must(t, c.Connect(until))
			must(t, writePost(c, until, ""))
			must(t, c.ReadHead(until, new(fasthttp.ResponseHeader)))
			_, err := c.Next(until)
			must(t, err)
			equal(t, "reused", c.Reused, i == 1)
			c.Finish()
		}
	})
}

// A deadline that Wake moved is not the next call's.
func TestWokenConnectionServesAgain(t *testing.T) {
	up := serve(t, each(ok))
	p := newPool(t, Target{Addr: up.addr})
	first := idleCall(t, p)
	first.Wake()
	first.Finish()
	_, second, err := exchange(p, "{}")
	must(t, err)
	equal(t, "reused", second.Reused, true)
}

func TestWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := inMemory(t, func(c net.Conn, r *bufio.Reader) {
			_, _ = request(r)
			<-time.After(time.Minute)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
			<-time.After(time.Minute)
			_, _ = io.WriteString(c, "ok")
			_, _ = request(r)
		})
		inner := target.Dial
		target.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			<-time.After(time.Minute)
			return inner(ctx, addr)
		}
		p := newPool(t, target)
		c := p.NewCall()
		h := new(fasthttp.ResponseHeader)
		began := time.Now()
		woken := func(step func() error) {
			t.Helper()
			from := time.Now()
			time.AfterFunc(time.Second, c.Wake)
			equal(t, "woken", step(), ErrPaused)
			equal(t, "after", time.Since(from), time.Second)
			c.Wake() // between two steps: the next one returns
			equal(t, "woken again", step(), ErrPaused)
			equal(t, "after", time.Since(from), time.Second)
		}
		woken(func() error { return c.Connect(time.Time{}) })
		must(t, c.Connect(time.Time{}))
		must(t, writePost(c, time.Time{}, ""))
		woken(func() error { return c.ReadHead(began.Add(time.Hour), h) })
		must(t, c.ReadHead(began.Add(time.Hour), h))
		woken(func() error { _, err := c.Next(began.Add(time.Hour)); return err })
		b, err := c.Next(began.Add(time.Hour))
		must(t, err)
		equal(t, "body", string(b), "ok")
		clock(t, began, 3*time.Minute)
		c.Wake()
		c.Finish()
		c.Wake() // no longer this call's connection
		equal(t, "idle", p.Idle(), 1)
	})
}
