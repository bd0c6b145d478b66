package hangup

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// ErrStalled is what Write returns when the client's socket accepted no byte for the
// time given to SetStall. ErrCut is what it returns after CutWrites. In both cases the
// count says how many bytes went out; what follows on this connection is undefined to
// the client, so it has to be closed. Above TLS, compare with errors.Is.
var (
	ErrStalled = errors.New("cannot write to client: its socket accepted no byte within the stall limit")
	ErrCut     = errors.New("cannot write to client: writing was cut")
)

// piece is how much of a Write goes at once to a connection without a descriptor. The
// acceptance of a whole piece restarts the stall clock.
const piece = 4 << 10

// noStall is the limit of a connection that SetStall has not been called for.
const noStall = -1

// output is the writing side of a Conn.
type output struct {
	turn sync.Mutex            // held by the Write in progress; guards the next block
	step func(fd uintptr) bool // Conn.writeStep, bound once so that Write allocates nothing
	rest []byte                // what is still to be written
	n    int                   // what the socket has accepted of this Write
	err  error
	held bool // this Write had to wait
	last bool // the stall limit has passed: this is the final attempt

	cut atomic.Bool // set and cleared under mu, read without it

	// mu is held for every change of the inner write deadline, so that the deadline in
	// force is always what the fields below say. A cut between an attempt and the wait
	// after it is not lost: the deadline has passed when the wait begins.
	mu       sync.Mutex
	stall    time.Duration // <= 0: none; noStall until SetStall is called
	stallAt  time.Time     // when the waiting Write will have stalled; zero: not armed
	deadline time.Time     // the owner's write deadline
	since    time.Time     // since when the Write in progress waits; zero: it does not
	blocked  time.Duration
}

// SetStall sets how long the client's socket may accept no byte before Write fails with
// ErrStalled; 0 is for ever. The clock runs while a Write waits, from its first refused
// attempt, and starts anew whenever bytes were accepted. A limit that passes is checked
// by one more attempt, so a client that made room unnoticed is not given up. A
// connection without a descriptor is given pieces of 4 KiB; if it accepts a part of one
// and then nothing, ErrStalled comes between d and 2d after the last byte. A new d
// applies from the next wait on.
func (c *Conn) SetStall(d time.Duration) {
	o := &c.out
	d = max(d, 0)
	o.mu.Lock()
	changed := o.stall != d
	o.stall = d
	o.mu.Unlock()
	if changed && c.raw != nil {
		tuneStall(c.raw, d)
	}
}

// Blocked is how long Writes have waited for the client since ResetBlocked, the present
// wait included.
func (c *Conn) Blocked() time.Duration {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return o.blocked
	}
	return o.blocked + time.Since(o.since)
}

// ResetBlocked sets Blocked back to zero, at the beginning of a request.
func (c *Conn) ResetBlocked() {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	o.blocked = 0
	if !o.since.IsZero() {
		o.since = time.Now()
	}
}

// CutWrites makes a waiting Write, and every later one, return ErrCut at once. Any
// goroutine may call it, any number of times.
func (c *Conn) CutWrites() {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.cut.Load() {
		o.cut.Store(true)
		c.applyWriteDeadline()
	}
}

// SetWriteDeadline sets an absolute deadline for Write, beside the stall limit.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.out.deadline = t
	return c.applyWriteDeadline()
}

// applyWriteDeadline sets the inner deadline to what is due first. out.mu is held.
func (c *Conn) applyWriteDeadline() error {
	o := &c.out
	t := o.deadline
	if !o.stallAt.IsZero() && (t.IsZero() || o.stallAt.Before(t)) {
		t = o.stallAt
	}
	if o.cut.Load() {
		t = past
	}
	return c.Conn.SetWriteDeadline(t)
}

// Write writes all of p, or returns why it could not and how much went out. When the
// socket accepts everything it costs one system call and no allocation.
func (c *Conn) Write(p []byte) (int, error) {
	o := &c.out
	o.turn.Lock()
	defer o.turn.Unlock()
	if o.cut.Load() {
		return 0, ErrCut
	}
	if c.raw == nil {
		return c.writePieces(p)
	}
	return c.writeRaw(p)
}

// writeRaw tries before it arms any deadline. out.turn is held.
func (c *Conn) writeRaw(p []byte) (int, error) {
	o := &c.out
	o.rest, o.n, o.err, o.held, o.last = p, 0, nil, false, false
	var err error
	for {
		if err = c.raw.Write(o.step); err == nil {
			err = o.err
			break
		}
		if !isTimeout(err) {
			break
		}
		if cause := c.expired(); cause != nil {
			err = cause
			break
		}
		o.last = true
	}
	o.rest = nil
	if o.held {
		c.endWait()
	}
	if err != nil {
		err = c.writeError(err)
	}
	return o.n, err
}

// refused decides what follows an attempt that the socket did not take: true to wait
// for room, false to end the Write with out.err. moved: bytes were accepted since the
// last wait. It runs inside the descriptor's write turn.
func (c *Conn) refused(moved bool) (wait bool) {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cut.Load() {
		o.err = ErrCut
		return false
	}
	if moved {
		o.last = false
	}
	if o.last {
		o.err = ErrStalled
		return false
	}
	if !o.held {
		o.held, o.since = true, time.Now()
		moved = true
	}
	if o.stall > 0 && moved {
		o.stallAt = time.Now().Add(o.stall)
		_ = c.applyWriteDeadline() // a closed connection says so in the wait
	}
	return true
}

// expired says what a passed deadline meant: nil for the stall limit, which then no
// longer stands in the way of the final attempt.
func (c *Conn) expired() error {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cut.Load() {
		return ErrCut
	}
	if o.stallAt.IsZero() || !o.deadline.IsZero() && !o.stallAt.Before(o.deadline) {
		return errDeadline
	}
	o.stallAt = time.Time{}
	_ = c.applyWriteDeadline()
	return nil
}

// endWait books the time that the Write waited and takes its stall limit away.
func (c *Conn) endWait() {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	o.blocked += time.Since(o.since)
	o.since = time.Time{}
	if !o.stallAt.IsZero() {
		o.stallAt = time.Time{}
		_ = c.applyWriteDeadline()
	}
}

// writePieces serves connections without a descriptor: they cannot be asked whether
// they would accept, so the limit stands around every piece. out.turn is held.
func (c *Conn) writePieces(p []byte) (n int, err error) {
	for first := true; first || n < len(p); first = false {
		if !c.beginPiece() {
			return n, ErrCut
		}
		var m int
		m, err = c.Conn.Write(p[n:min(len(p), n+piece)])
		n += m
		if err != nil && isTimeout(err) {
			if err = c.expired(); err == nil && m == 0 {
				err = ErrStalled
			}
		}
		c.endWait()
		if err != nil {
			return n, c.writeError(err)
		}
	}
	return n, nil
}

func (c *Conn) beginPiece() bool {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cut.Load() {
		return false
	}
	o.since = time.Now()
	if o.stall > 0 {
		o.stallAt = o.since.Add(o.stall)
		_ = c.applyWriteDeadline() // a closed connection says so in Write
	}
	return true
}

// writeError gives an error of the descriptor the shape that net.Conn.Write gives it.
func (c *Conn) writeError(err error) error {
	if err == ErrCut || err == ErrStalled || c.raw == nil && err != errDeadline {
		return err
	}
	var op *net.OpError
	if errors.As(err, &op) {
		op.Op = "write" // made for this call by the descriptor: "raw-write"
		return op
	}
	return &net.OpError{Op: "write", Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}
