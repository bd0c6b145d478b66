package load

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
)

// Upstream is a server that answers by script: it speaks the three dialects, writes each token with its own system call at its time,
// and remembers when a client left before the end. It generates nothing and schedules nothing, so that it costs little itself.
type Upstream struct {
	ln    net.Listener
	pacer *pacer
	wg    sync.WaitGroup

	mu     sync.Mutex
	conns  map[*upstreamConn]struct{}
	closed bool
	stats  Stats
}

// Stats is what the upstream saw. GET /load/stats gives it as JSON and forgets the aborts.
type Stats struct {
	Requests int64   `json:"requests"`
	Aborts   []Abort `json:"aborts"`
}

// Abort is an answer whose client left before its end.
type Abort struct {
	ID   int64 `json:"id"`   // the request
	At   int64 `json:"at"`   // CLOCK_MONOTONIC ns when the upstream saw it
	Sent int64 `json:"sent"` // tokens written before; 0: in prefill
}

const maxAborts = 1_000_000

// ListenUpstream serves on addr, a loopback address, until Close.
func ListenUpstream(addr string) (*Upstream, error) {
	if err := checkLoopback(addr); err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen addr=%s: %w", addr, err)
	}
	p, err := newPacer()
	if err != nil {
		ln.Close()
		return nil, fmt.Errorf("cannot make alarm: %w", err)
	}
	u := &Upstream{ln: ln, pacer: p, conns: map[*upstreamConn]struct{}{}}
	u.wg.Go(p.run)
	u.wg.Go(u.accept)
	return u, nil
}

// Addr is the address it listens on.
func (u *Upstream) Addr() string { return u.ln.Addr().String() }

// Close ends all connections and returns when nothing is left running.
func (u *Upstream) Close() {
	u.ln.Close()
	u.mu.Lock()
	u.closed = true
	for c := range u.conns {
		c.nc.Close()
	}
	u.mu.Unlock()
	u.pacer.stop()
	u.wg.Wait()
	u.pacer.alarm.close()
}

// Stats returns what was seen since the last call (aborts) and since the start (the rest).
func (u *Upstream) Stats() Stats {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.stats
	u.stats.Aborts = nil
	return s
}

func (u *Upstream) accept() {
	for {
		nc, err := u.ln.Accept()
		if err != nil {
			return // closed, or out of file descriptors: the load reports the refused connections
		}
		c := &upstreamConn{u: u, nc: nc.(*net.TCPConn)}
		u.mu.Lock()
		if u.closed {
			nc.Close()
		}
		u.conns[c] = struct{}{}
		u.mu.Unlock()
		u.wg.Go(c.serve)
	}
}

// upstreamConn is one connection. Its goroutine reads requests, also while an answer is written: that is how it sees the client leave.
type upstreamConn struct {
	u    *Upstream
	nc   *net.TCPConn
	flow *flow // the newest answer
	body []byte
}

func (c *upstreamConn) serve() {
	r := bufio.NewReaderSize(c.nc, 4096)
	for c.request(r) {
	}
	now := Now()
	c.nc.Close()
	c.u.mu.Lock()
	defer c.u.mu.Unlock()
	delete(c.u.conns, c)
	if f := c.flow; f != nil && f.state.CompareAndSwap(flowing, flowAborted) && len(c.u.stats.Aborts) < maxAborts {
		c.u.stats.Aborts = append(c.u.stats.Aborts, Abort{f.order.id, now, f.sent.Load()})
	}
}

// request reads one request and starts its answer; false when the connection is over.
func (c *upstreamConn) request(r *bufio.Reader) bool {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return false
	}
	method, rest, _ := bytes.Cut(line, []byte(" "))
	target, _, _ := bytes.Cut(rest, []byte(" "))
	path, isPost := string(target), string(method) == "POST"
	length := 0
	for {
		line, err = r.ReadSlice('\n')
		if err != nil {
			return false
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("content-length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || length < 0 || length > maxBody+maxHead {
				return false
			}
		}
	}
	if cap(c.body) < length {
		c.body = make([]byte, length)
	}
	if _, err = io.ReadFull(r, c.body[:length]); err != nil {
		return false
	}
	return c.answer(path, isPost, c.body[:length])
}

func (c *upstreamConn) answer(path string, isPost bool, body []byte) bool {
	received := Now()
	dialect := ""
	for _, d := range Dialects {
		if isPost && dialectPath(d) == path {
			dialect = d
		}
	}
	o, ok := parseOrder(body)
	switch {
	case path == "/load/stats":
		b, err := json.Marshal(c.u.Stats())
		return err == nil && c.plain(200, b)
	case dialect == "" && !isPost: // probes of a gateway
		return c.plain(200, []byte("{}"))
	case dialect == "" || !ok:
		return c.plain(400, []byte(`{"error":{"message":"no order in the prompt, or an unknown path"}}`))
	}
	f := &flow{conn: c, script: scriptFor(dialect, o.tokens), order: o, received: received, due: received + int64(o.prefill)}
	c.u.mu.Lock()
	c.u.stats.Requests++
	c.flow = f
	c.u.mu.Unlock()
	switch {
	case o.prefill > 0 || o.gap > 0 && !o.whole:
		c.u.pacer.add(f)
	case o.whole:
		f.pour()
	default:
		c.u.wg.Go(f.pour)
	}
	return true
}

func (c *upstreamConn) plain(status int, body []byte) bool {
	_, err := fmt.Fprintf(c.nc, "HTTP/1.1 %d Load\r\nserver: uvicorn\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s", status, len(body), body)
	return err == nil
}
