package fakeengine

import (
	"context"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// faultConn is an accepted connection that can break the rules: it splits its writes, and it can be reset.
type faultConn struct {
	net.Conn
	number   int64
	requests int // handlers only, one at a time
	pieces   atomic.Int32
	active   atomic.Bool
	e        *Engine
	once     sync.Once
}

// Write passes b on, in as many random pieces as the running fault asks for.
func (c *faultConn) Write(b []byte) (int, error) {
	pieces := int(c.pieces.Load())
	if pieces < 2 {
		return c.Conn.Write(b)
	}
	written := 0
	for left := pieces; len(b) > 0; left-- {
		n := len(b)
		if left > 1 && n > 1 {
			n = 1 + rand.IntN(max(1, 2*n/left-1))
			n = min(n, len(b))
		}
		m, err := c.Conn.Write(b[:n])
		written += m
		if err != nil {
			return written, err
		}
		b = b[n:]
	}
	return written, nil
}

func (c *faultConn) Close() error {
	c.once.Do(func() { c.e.forget(c) })
	return c.Conn.Close()
}

// reset closes with RST where the transport knows such a thing.
func (c *faultConn) reset() {
	inner := c.Conn
	if u, ok := inner.(interface{ NetConn() net.Conn }); ok { // TLS
		inner = u.NetConn()
	}
	if t, ok := inner.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // best effort: the close below ends the connection anyway
	}
	_ = c.Close() // the peer is the one to notice
}

// faultListener numbers and registers the accepted connections.
type faultListener struct {
	net.Listener
	e *Engine
}

func (l *faultListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.e.remember(c), nil
}

func (e *Engine) remember(c net.Conn) *faultConn {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.connections++
	f := &faultConn{Conn: c, number: e.connections, e: e}
	e.conns[f] = struct{}{}
	return f
}

func (e *Engine) forget(c *faultConn) {
	e.mu.Lock()
	delete(e.conns, c)
	e.mu.Unlock()
	e.journal.poke()
}

// closeIdleConns ends the connections without a running request.
func (e *Engine) closeIdleConns() {
	for _, c := range e.openConns() {
		if !c.active.Load() {
			_ = c.Close() // nothing to do about a connection that is gone already
		}
	}
}

// resetConns ends every connection but one with a reset.
func (e *Engine) resetConns(except *faultConn) {
	for _, c := range e.openConns() {
		if c != except {
			c.reset()
		}
	}
}

func (e *Engine) openConns() []*faultConn {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.conns))
}

type connKey struct{}

func connOf(ctx context.Context) *faultConn {
	c, ok := ctx.Value(connKey{}).(*faultConn)
	if !ok {
		panic("BUG: request without a connection of the fake engine")
	}
	return c
}
