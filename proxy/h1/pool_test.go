package h1

import (
	"bufio"
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

func idleCall(t *testing.T, p *Pool) *Call {
	t.Helper()
	c := p.NewCall()
	_, err := post(c, "{}")
	must(t, err)
	_, err = rest(c)
	must(t, err)
	return c
}

func TestNewestConnectionIsReusedFirst(t *testing.T) {
	up := serve(t, each(ok))
	p := newPool(t, Target{Addr: up.addr})
	a, b := idleCall(t, p), idleCall(t, p)
	newest := a.link
	b.Finish()
	a.Finish()
	equal(t, "idle", p.Idle(), 2)
	c := p.NewCall()
	must(t, c.Connect(soon()))
	equal(t, "newest", c.link == newest, true)
	c.Discard()
	equal(t, "idle", p.Idle(), 1)
}

// What the server did to an idle connection is found before a request is risked.
func TestDeadIdleConnectionIsNotReused(t *testing.T) {
	for _, c := range []struct {
		name string
		act  func(net.Conn)
	}{
		{"closed", func(c net.Conn) { _ = c.Close() }},
		{"reset", func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() }},
		{"half closed", func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() }},
		{"sent something unasked", func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 408 Request Timeout\r\n\r\n") }},
		{"sent a late line end", func(c net.Conn) { _, _ = io.WriteString(c, "\r\n") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			conns := make(chan net.Conn, 2)
			up := serve(t, func(conn net.Conn, r *bufio.Reader) {
				conns <- conn
				each(ok)(conn, r)
			})
			p := newPool(t, Target{Addr: up.addr})
			first := idleCall(t, p)
			l := first.link
			first.Finish()
			c.act(<-conns)
			for l.alive() { // until the kernel has told
			}
			body, second, err := exchange(p, "{}")
			must(t, err)
			equal(t, "body", body, "ok")
			equal(t, "redialled", second.Redialled, false)
			equal(t, "reused", second.Reused, false)
			equal(t, "connections", up.conns.Load(), 2)
		})
	}
}

func TestIdleConnectionsAreClosedOnTime(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  string
		timeout time.Duration
		want    time.Duration
	}{
		{"default", ok, 0, 4 * time.Second},
		{"configured", ok, time.Minute, time.Minute},
		{"the server's word", "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5, max=100\r\nContent-Length: 2\r\n\r\nok", time.Minute, 4 * time.Second},
		{"the server's longer word", "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=75\r\nContent-Length: 2\r\n\r\nok", 3 * time.Second, 3 * time.Second},
		{"the server's word is too short", "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nok", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				closed := make(chan time.Time, 1)
				target := inMemory(t, func(conn net.Conn, r *bufio.Reader) {
					each(c.answer)(conn, r)
					closed <- time.Now()
				})
				target.IdleTimeout = c.timeout
				p := newPool(t, target)
				_, _, err := exchange(p, "{}")
				must(t, err)
				began := time.Now()
				equal(t, "closed after", (<-closed).Sub(began), c.want)
				equal(t, "idle", p.Idle(), 0)
			})
		})
	}
}

// Each connection is closed in its own time by the pool's one timer.
func TestJanitorSetsItselfForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, inMemory(t, each(ok)))
		var calls []*Call
		for range 3 {
			calls = append(calls, idleCall(t, p))
		}
		for _, c := range calls {
			c.Finish()
			<-time.After(time.Second)
		}
		for _, want := range []int{3, 2, 1, 0, 0} { // it is 3 s; the first is due at 4 s
			synctest.Wait()
			equal(t, "idle", p.Idle(), want)
			<-time.After(time.Second)
		}
	})
}

func TestConnectionsAgeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dials := 0
		target := inMemory(t, each(ok))
		inner := target.Dial
		target.Dial = func(ctx context.Context, addr string) (net.Conn, error) { dials++; return inner(ctx, addr) }
		p := newPool(t, target)
		for range 4 * 60 {
			_, _, err := exchange(p, "{}")
			must(t, err)
			<-time.After(time.Second)
		}
		equal(t, "dials in four minutes", dials, 1)
		for range 61 {
			_, _, err := exchange(p, "{}")
			must(t, err)
			<-time.After(time.Second)
		}
		equal(t, "dials after five", dials, 2)
	})
}

func TestClosedPoolKeepsNothing(t *testing.T) {
	up := serve(t, each(ok))
	p := newPool(t, Target{Addr: up.addr})
	a, b := idleCall(t, p), idleCall(t, p)
	a.Finish()
	p.Close()
	equal(t, "idle", p.Idle(), 0)
	b.Finish()
	equal(t, "idle", p.Idle(), 0)
	p.Close()
}
