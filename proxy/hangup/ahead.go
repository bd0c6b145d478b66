package hangup

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"time"
)

// maxSpill bounds what is read ahead of the next request. A client that has sent more
// than this before its answer ended is no longer watched until some of it is read.
const maxSpill = 64 << 10

// minRoom is the least that one background read asks for. More than one byte: a client
// that sent a byte of its next request, or a TLS alert, and then closed must be seen.
const minRoom = 512

// past is a deadline that interrupts a pending Read or Write at once.
var past = time.Unix(1, 0)

// readAhead is the state of watching by reading. Conn.mu guards it.
//
// At any time at most one goroutine reads the inner connection: the background one
// (done != nil) or the owner's Reads (direct > 0), never both, so bytes keep their order.
type readAhead struct {
	spill    []byte        // spill[off:] was read and not yet handed on
	off      int           //
	done     chan struct{} // closed when the running background read has ended
	stopping bool          // the running background read was told to end
	direct   int           // Reads of the owner in progress
	deadline time.Time     // the owner's read deadline, in force whenever it reads
}

// pending is how many bytes wait for the owner.
func (a *readAhead) pending() int { return len(a.spill) - a.off }

// take moves waiting bytes to p.
func (a *readAhead) take(p []byte) int {
	n := copy(p, a.spill[a.off:])
	a.off += n
	if a.done == nil && a.pending() == 0 {
		a.spill, a.off = nil, 0 // an idle connection holds no buffer
	}
	return n
}

// room returns the free tail of the spill. Only the background read calls it and fills
// what it returns; take never touches that part.
func (a *readAhead) room() []byte {
	if a.off > 0 {
		a.spill = a.spill[:copy(a.spill, a.spill[a.off:])]
		a.off = 0
	}
	n := len(a.spill)
	a.spill = slices.Grow(a.spill, min(minRoom, maxSpill-n))
	return a.spill[n:min(cap(a.spill), maxSpill)]
}

// startAhead starts the background read if there is something to watch, nobody reads
// and the spill has room. c.mu is held.
func (c *Conn) startAhead() {
	a := c.ahead
	if c.leave == nil || c.gone || c.closed || a.done != nil || a.direct > 0 ||
		a.pending() >= maxSpill || c.watcher.closed.Load() {
		return
	}
	// The owner's deadline must not look like a departure. It comes back when the
	// background read ends. Other errors than this one mean a broken connection, and
	// Read will say so.
	if errors.Is(c.Conn.SetReadDeadline(time.Time{}), os.ErrNoDeadline) {
		return // it could not be stopped again
	}
	a.done = make(chan struct{})
	a.stopping = false
	go c.runAhead()
}

// runAhead reads until it is told to stop, the spill is full or the client has left.
func (c *Conn) runAhead() {
	a := c.ahead
	var leave func()
	c.mu.Lock()
	for !a.stopping && !c.closed && a.pending() < maxSpill {
		dst := a.room()
		c.mu.Unlock()
		n, err := c.Conn.Read(dst)
		c.mu.Lock()
		a.spill = a.spill[:len(a.spill)+n]
		if err != nil {
			if !isTimeout(err) && !c.watcher.closed.Load() {
				leave = c.claimLeave()
			}
			break
		}
	}
	if a.stopping || !a.deadline.IsZero() {
		_ = c.Conn.SetReadDeadline(a.deadline) // a broken connection says so at the next Read
	}
	close(a.done) // before leave runs: leave may call Unwatch
	a.done = nil
	c.mu.Unlock()
	if leave != nil {
		leave()
	}
}

// stopAhead ends the background read and waits for it. c.mu is held, and released
// while waiting.
func (c *Conn) stopAhead() {
	for a := c.ahead; a.done != nil; {
		done := a.done
		if !a.stopping {
			a.stopping = true
			_ = c.Conn.SetReadDeadline(past) // fails only when Read fails by itself
		}
		c.mu.Unlock()
		<-done
		c.mu.Lock()
	}
}

// Read reads what was read ahead first, then from the client. It may be called while
// the connection is watched. An end of the stream inside a request, which is after its
// first byte and before the next Watch or Unwatch, is io.ErrUnexpectedEOF: the server
// takes a plain end between two chunks of a body for an idle connection's and would tell
// nobody.
func (c *Conn) Read(p []byte) (n int, err error) {
	n, err = c.read(p)
	if n > 0 {
		c.inRequest = true
	} else if err == io.EOF && c.inRequest {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (c *Conn) read(p []byte) (n int, err error) {
	a := c.ahead
	switch {
	case a != nil:
	case len(c.first.rest) > 0:
		return c.takeFirst(p), nil
	case len(p) == 1 && c.raw != nil:
		return c.readFirst(p)
	default:
		return c.Conn.Read(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n = a.take(p); n > 0 {
		c.startAhead() // the spill may have been full
		return n, nil
	}
	a.direct++
	c.stopAhead()
	if n = a.take(p); n == 0 {
		c.mu.Unlock()
		n, err = c.Conn.Read(p)
		c.mu.Lock()
	}
	a.direct--
	c.startAhead()
	return n, err
}

// SetReadDeadline sets the deadline of Read. A background read is not bound by it.
func (c *Conn) SetReadDeadline(t time.Time) error {
	a := c.ahead
	if a == nil {
		return c.Conn.SetReadDeadline(t)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a.deadline = t
	if a.done != nil {
		return nil // set when the background read ends
	}
	return c.Conn.SetReadDeadline(t)
}

// isTimeout says whether err came from a deadline. In-memory connections have timeout
// errors of their own, so the type is not asked for.
func isTimeout(err error) bool {
	var ne interface{ Timeout() bool }
	return errors.As(err, &ne) && ne.Timeout() && !errors.Is(err, net.ErrClosed)
}
