//go:build !race && (linux || darwin)

package h1

import (
	"bufio"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// These counts need sync.Pool as it is; under -race it drops items on purpose.

const eventsHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

// silent sends a head and one event, then nothing until the client leaves.
func silent(c net.Conn, r *bufio.Reader) {
	if _, err := request(r); err != nil {
		return
	}
	_, _ = io.WriteString(c, eventsHead+chunk("data: x\n\n"))
	_, _ = r.ReadByte()
}

// opened is a call that has read all that silent sends.
func opened(t testing.TB, p *Pool) *Call {
	c := p.NewCall()
	_, err := post(c, "{}")
	must(t, err)
	_, err = c.Next(soon())
	must(t, err)
	return c
}

// Streams that wait hold no buffer, on plain connections and under TLS.
func TestIdleStreamsHoldNoBuffer(t *testing.T) {
	const streams = 200
	for name, target := range map[string]Target{
		"plain": {Addr: serve(t, silent).addr},
		"tls":   {Addr: serveTLS(t, silent).addr, TLS: true, Insecure: true},
	} {
		t.Run(name, func(t *testing.T) {
			var made atomic.Int64
			before := blocks.New
			blocks = sync.Pool{New: func() any { made.Add(1); return new(block) }}
			defer func() { blocks = sync.Pool{New: before} }()
			p := newPool(t, target)
			var waiting sync.WaitGroup
			var calls []*Call
			for range streams {
				c := opened(t, p)
				calls = append(calls, c)
				waiting.Go(func() { // ends when the call is aborted below
					if _, err := c.Next(time.Time{}); err != ErrAborted {
						t.Errorf("error: %v", err)
					}
					c.Discard()
				})
			}
			for _, c := range calls {
				c.Abort()
			}
			waiting.Wait()
			// One per processor and per garbage collection, not one per stream.
			if n := made.Load(); n > streams/4 {
				t.Errorf("%d streams needed %d buffers", streams, n)
			}
		})
	}
}

// An idle call costs less than 1 KiB beyond its connection.
func TestIdleCallMemory(t *testing.T) {
	const streams = 500
	up := serve(t, silent)
	p := newPool(t, Target{Addr: up.addr})
	opened(t, p).Discard() // fills the pools of buffers

	before := heap()
	conns := make([]net.Conn, streams)
	for i := range conns {
		conns[i] = bare(t, up.addr)
	}
	bareCost := heap() - before
	for _, c := range conns {
		_ = c.Close()
	}
	before = heap()
	calls := make([]*Call, streams)
	for i := range calls {
		calls[i] = opened(t, p)
		_, err := calls[i].Next(time.Now().Add(time.Microsecond))
		equal(t, "waiting", err, ErrPaused)
	}
	callCost := heap() - before
	for _, c := range calls {
		c.Discard()
	}
	extra := (callCost - bareCost) / streams
	t.Logf("an idle call costs %d bytes beyond its connection (%d)", extra, bareCost/streams)
	if extra >= 1024 {
		t.Errorf("an idle call costs %d bytes beyond its connection", extra)
	}
}

// bare is the same exchange on a connection without a call.
func bare(t testing.TB, addr string) net.Conn {
	c, err := net.Dial("tcp", addr)
	must(t, err)
	_, err = io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}")
	must(t, err)
	_, err = io.ReadFull(c, make([]byte, len(eventsHead)+len(chunk("data: x\n\n"))))
	must(t, err)
	return c
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// paced sends one event each time it is told to.
func paced(t testing.TB, event string) (p *Pool, tick chan struct{}) {
	tick = make(chan struct{})
	b := []byte(event)
	up := serve(t, func(c net.Conn, r *bufio.Reader) {
		if _, err := request(r); err != nil {
			return
		}
		_, _ = io.WriteString(c, eventsHead)
		for range tick {
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	})
	return newPool(t, Target{Addr: up.addr}), tick
}

func TestNextAllocatesNothing(t *testing.T) {
	p, tick := paced(t, chunk("data: x\n\n"))
	c := p.NewCall()
	_, err := post(c, "{}")
	must(t, err)
	until := soon()
	n := testing.AllocsPerRun(1000, func() {
		tick <- struct{}{}
		if b, err := c.Next(until); err != nil || string(b) != "data: x\n\n" {
			t.Fatalf("got %q, %v", b, err)
		}
	})
	close(tick)
	c.Discard()
	equal(t, "allocations per event", n, 0)
}

// A whole call on a reused connection allocates the Call and nothing else.
func TestCallAllocations(t *testing.T) {
	head, answer := make([]byte, 512), []byte(ok)
	up := serve(t, func(c net.Conn, _ *bufio.Reader) {
		for {
			if _, err := c.Read(head); err != nil {
				return
			}
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	})
	p := newPool(t, Target{Addr: up.addr})
	h := new(fasthttp.ResponseHeader)
	body := []byte("{}")
	rendered := headOf("POST", "{}")
	call := func() {
		until := soon()
		c := p.NewCall()
		must(t, c.Connect(until))
		must(t, c.Write(until, rendered, body))
		must(t, c.ReadHead(until, h))
		for {
			if _, err := c.Next(until); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		c.Finish()
	}
	n := testing.AllocsPerRun(1000, call)
	t.Logf("%v allocations per call", n)
	if n > maxCallAllocs {
		t.Errorf("%v allocations per call, want at most %d", n, maxCallAllocs)
	}
}

const maxCallAllocs = 1 // the Call

// BenchmarkNext waits for one event after the other.
func BenchmarkNext(b *testing.B) {
	p, tick := paced(b, chunk("data: {\"choices\":[{\"delta\":{\"content\":\" token\"}}]}\n\n"))
	c := p.NewCall()
	_, err := post(c, "{}")
	must(b, err)
	until := time.Now().Add(time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		tick <- struct{}{}
		if _, err := c.Next(until); err != nil {
			b.Fatal(err)
		}
	}
	close(tick)
	c.Discard()
}

// BenchmarkNextFlood reads as fast as an upstream can write.
func BenchmarkNextFlood(b *testing.B) {
	event := []byte(chunk("data: {\"choices\":[{\"delta\":{\"content\":\" token\"}}]}" + string(make([]byte, 140)) + "\n\n"))
	up := serve(b, func(c net.Conn, r *bufio.Reader) {
		if _, err := request(r); err != nil {
			return
		}
		_, _ = io.WriteString(c, eventsHead)
		many := make([]byte, 0, 64<<10)
		for len(many)+len(event) <= cap(many) {
			many = append(many, event...)
		}
		for {
			if _, err := c.Write(many); err != nil {
				return
			}
		}
	})
	p := newPool(b, Target{Addr: up.addr})
	c := p.NewCall()
	_, err := post(c, "{}")
	must(b, err)
	until := time.Now().Add(time.Hour)
	got := int64(0)
	for b.Loop() {
		n, err := c.Next(until)
		if err != nil {
			b.Fatal(err)
		}
		got += int64(len(n))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/(float64(got)/200), "ns/event")
	b.ReportMetric(float64(got)/float64(b.N), "B/read")
	c.Discard()
}
