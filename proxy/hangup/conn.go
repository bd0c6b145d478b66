// Package hangup answers: has the client left, and does it still take bytes?
//
// It owns the accepted connections of the data plane. Where the kernel can tell
// (Linux, TCP and unix sockets) each connection is registered once, at accept, with
// one epoll instance that a single goroutine reads through Go's own poller; a request
// costs no system call and no goroutine. Elsewhere (other systems, in-memory
// connections) a goroutine reads ahead while a request is watched; what arrives early
// is kept and handed to the next Read. It also owns the write deadline: a Write fails
// when the client's socket accepted no byte for the stall limit, or when it is cut. Its
// listeners go on when the process is out of descriptors, for the sake of open streams.
//
// Watch, Unwatch, Read, Write, SetStall and Linger belong to the goroutine that serves
// the connection. CutWrites, Gone, Blocked, Close and the deadline setters may be
// called from any goroutine. The leave function runs on the watcher's goroutine (or on
// the reading one) and must return soon: it delays everybody else's news.
//
// It never parses what it reads, never loses a byte that it read ahead, never closes a
// connection by itself, and never says that a client has left on the strength of a
// time limit.
package hangup

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Conn is an accepted connection that knows whether its client has left.
type Conn struct {
	net.Conn
	watcher   *Watcher
	raw       syscall.RawConn // nil: no descriptor, or none that can be written to directly
	slot      slotRef         // the place in the watcher's table; zero: not registered
	linger    atomic.Pointer[lingerLimit]
	first     first // the reading goroutine's, as is
	inRequest bool  // bytes of a request were read since the last Watch or Unwatch

	mu     sync.Mutex // guards everything below; never held while leave runs
	leave  func()     // non-nil while watched and not yet called
	called bool       // leave was taken out to be called since the last Watch
	gone   bool       // sticky
	closed bool       // by us: what is seen afterwards is our own doing
	ahead  *readAhead // nil when the kernel tells

	out output
}

// Of finds the Conn below c, through TLS and any other wrapper that has a NetConn
// method. It returns nil when there is none.
func Of(c net.Conn) *Conn {
	for c != nil {
		if h, ok := c.(*Conn); ok {
			return h
		}
		u, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = u.NetConn()
	}
	return nil
}

// NetConn returns the connection as it was accepted. Reading from it loses bytes that
// were read ahead.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Watch arms the connection: leave is called at most once, from another goroutine, when
// the client closes, half-closes or resets while armed, and not when the connection is
// closed on this side. When the client has already left, gone is true, nothing is armed
// and leave is not called. A second Watch replaces the first. leave must not block; it
// may run after Unwatch has returned (see there), so it must tell for itself whether it
// still applies.
func (c *Conn) Watch(leave func()) (gone bool) {
	c.inRequest = false
	c.mu.Lock()
	c.called = false
	if gone = c.gone; !gone && !c.closed {
		c.leave = leave
		if c.ahead != nil {
			c.startAhead()
		}
	}
	c.mu.Unlock()
	return gone
}

// Unwatch disarms. After it has returned no call of leave begins. left says that one
// had begun since the last Watch: it may be running still. With left false, leave has
// not been called and never will be. A background read has ended when Unwatch returns.
func (c *Conn) Unwatch() (left bool) {
	c.inRequest = false
	c.mu.Lock()
	c.leave = nil
	left = c.called // final: there is nothing left to claim
	if c.ahead != nil {
		c.stopAhead()
	}
	c.mu.Unlock()
	return left
}

// Gone says whether the client is known to have left. Without a Watch in force it is
// only as recent as the last one, unless the kernel tells.
func (c *Conn) Gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// depart records that the client has left, and tells whoever watches.
func (c *Conn) depart() {
	c.mu.Lock()
	leave := c.claimLeave()
	c.mu.Unlock()
	if leave != nil {
		leave()
	}
}

// claimLeave marks the client as gone and takes the leave function out, so that nobody
// else calls it. c.mu is held; the caller calls the result after unlocking.
func (c *Conn) claimLeave() func() {
	if c.closed {
		return nil
	}
	c.gone = true
	leave := c.leave
	c.leave = nil
	if leave != nil {
		c.called = true
	}
	return leave
}

// Close closes the connection, after a linger where LingerOnClose asked for one. No
// call of leave begins afterwards.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.leave = nil
	c.mu.Unlock()
	if l := c.linger.Swap(nil); l != nil {
		c.Linger(l.bytes, l.time)
	}
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	// The slot goes first: once the descriptor is closed its number may come back with
	// another connection, and an event still in flight must not find this one's slot.
	c.watcher.drop(c)
	return c.Conn.Close()
}

// SetDeadline sets both deadlines, as SetReadDeadline and SetWriteDeadline do.
func (c *Conn) SetDeadline(t time.Time) error {
	rerr := c.SetReadDeadline(t)
	if err := c.SetWriteDeadline(t); err != nil {
		return err
	}
	return rerr
}
