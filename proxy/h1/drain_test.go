package h1

import (
	"bufio"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// toTheEvent is an answer up to its terminal event; the end of its framing is missing.
var toTheEvent = chunked + chunk("data: [DONE]\n\n")

// finishEarly takes the first bytes of the body and is done with it.
func finishEarly(t *testing.T, p *Pool) {
	t.Helper()
	c := p.NewCall()
	_, err := post(c, "{}")
	must(t, err)
	b, err := c.Next(time.Now().Add(time.Minute))
	must(t, err)
	equal(t, "terminal event", string(b), "data: [DONE]\n\n")
	c.Finish()
	c.Finish()  // again: nothing
	c.Discard() // nor this
	c.Abort()   // nor this
}

func TestRestIsReadInTheBackground(t *testing.T) {
	for _, c := range []struct {
		name   string
		wait   time.Duration
		end    string
		pooled bool
	}{
		{"the last chunk comes later", time.Second, "0\r\n\r\n", true},
		{"more events come", time.Second, chunk(strings.Repeat("x", 40<<10)) + "0\r\n\r\n", true},
		{"too late", 3 * time.Second, "0\r\n\r\n", false},
		{"too much", time.Second, chunk(strings.Repeat("x", 80<<10)) + "0\r\n\r\n", false},
		{"broken", time.Second, "zz\r\n", false},
		{"more behind the end", time.Second, "0\r\n\r\nHTTP/1.1 200 OK", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPool(t, inMemory(t, func(conn net.Conn, r *bufio.Reader) {
					_, _ = request(r)
					_, _ = io.WriteString(conn, toTheEvent)
					<-time.After(c.wait)
					_, _ = io.WriteString(conn, c.end)
					_, _ = request(r)
				}))
				finishEarly(t, p)
				equal(t, "idle", p.Idle(), 0)
				<-time.After(c.wait)
				synctest.Wait()
				equal(t, "pooled", p.Idle() == 1, c.pooled)
				equal(t, "drains", len(p.draining), 0)
			})
		})
	}
}

func TestNoDrainWithoutAnEndInSight(t *testing.T) {
	for name, head := range map[string]string{
		"until close": "HTTP/1.1 200 OK\r\n\r\n",
		"long length": "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gone := make(chan time.Time, 1)
				p := newPool(t, inMemory(t, func(conn net.Conn, r *bufio.Reader) {
					_, _ = request(r)
					_, _ = io.WriteString(conn, head+"data: [DONE]\n\n")
					_, _ = request(r)
					gone <- time.Now()
				}))
				began := time.Now()
				finishEarly(t, p)
				equal(t, "closed after", (<-gone).Sub(began), 0)
			})
		})
	}
}

func TestPoolCloseEndsDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, inMemory(t, func(conn net.Conn, r *bufio.Reader) {
			_, _ = request(r)
			_, _ = io.WriteString(conn, toTheEvent)
			_, _ = request(r)
		}))
		finishEarly(t, p)
		began := time.Now()
		p.Close()
		synctest.Wait()
		equal(t, "drains", len(p.draining), 0)
		clock(t, began, 0)
	})
}

// On real sockets: the end of the framing comes right behind the last event.
func TestConnectionServesAgainAfterEarlyFinish(t *testing.T) {
	up := serve(t, func(c net.Conn, r *bufio.Reader) {
		for {
			if _, err := request(r); err != nil {
				return
			}
			_, _ = io.WriteString(c, toTheEvent)
			_, _ = io.WriteString(c, "0\r\n\r\n")
		}
	})
	p := newPool(t, Target{Addr: up.addr})
	for range 50 {
		finishEarly(t, p)
		for p.Idle() == 0 {
			runtime.Gosched()
		}
	}
	equal(t, "connections", up.conns.Load(), 1)
}
