package h1

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Call is one request and its answer on one connection. Every method but Abort
// and Wake belongs to one goroutine, the owner. The order is Connect, Write,
// ReadHead, Next until io.EOF, then Finish; Discard instead of Finish at any
// point. One of the two must be called, after errors and Abort too. A Call is
// not used again and not pooled: a late Abort may still hold it.
type Call struct {
	Reused      bool          // the connection served a request before; false after a re-dial
	Redialled   bool          // the reused connection was found closed, the request was sent again on a fresh one
	ConnectTime time.Duration // spent on dialling, tunnel and TLS, pauses included; 0 when reused

	pool    *Pool
	aborted atomic.Bool
	woken   atomic.Bool

	// mu lets Abort and Wake see the connection only while it is this call's.
	// The owner alone changes these, and so reads them without mu.
	mu   sync.Mutex
	link *link
	dial *dial
	over bool // the connection was given back or closed

	disturbed bool // Wake has changed the connection's deadlines

	out   outbox
	in    inbox
	head  headState
	body  bodyState
	fault error // ends every further step
}

// Connect takes an idle connection that is still alive, or dials. The dial goes
// on while the caller is paused.
func (c *Call) Connect(until time.Time) error {
	if c.fault != nil || c.link != nil {
		return c.fault
	}
	if c.dial == nil {
		if err := c.interrupted(); err != nil {
			return c.keep(err)
		}
		if l := c.pool.get(); l != nil {
			c.Reused = true
			return c.keep(c.adopt(l))
		}
		c.startDial()
	}
	return c.keep(c.awaitDial(until))
}

func (c *Call) adopt(l *link) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.aborted.Load() {
		l.kill()
		return ErrAborted
	}
	c.link = l
	return nil
}

// Abort ends the call from any goroutine, in any phase, as often as it likes:
// the connection is closed, or the dial cancelled, and the owner's current or
// next step returns ErrAborted. After Finish or Discard it does nothing.
func (c *Call) Abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.aborted.Swap(true) {
		return
	}
	if c.link != nil {
		c.link.kill()
	}
	if c.dial != nil {
		c.dial.drop()
	}
}

// Wake makes the owner's current step, or else its next one, return ErrPaused
// at once. It may be called from any goroutine.
func (c *Call) Wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.woken.Store(true) // before the deadline: see interrupted
	if c.link != nil {
		c.disturbed = true
		_ = c.link.raw.SetDeadline(longAgo)
	}
	if c.dial != nil {
		c.dial.nudge()
	}
}

var longAgo = time.Unix(1, 0)

// drop cancels a dial and closes what it brought. The caller holds the Call's mu.
func (d *dial) drop() {
	d.cancel()
	d.nudge()
	if d.link != nil {
		d.link.kill()
	}
}

func (d *dial) nudge() {
	select {
	case d.poke <- struct{}{}:
	default:
	}
}

// Discard closes the connection now. It does nothing after Finish.
func (c *Call) Discard() {
	if l := c.release(); l != nil {
		l.kill()
	}
}

// Finish gives the connection back if the answer was read to its end. If only
// the end of the framing is missing, it is read in the background, bounded in
// time and bytes. Otherwise the connection is closed.
func (c *Call) Finish() {
	in := c.in
	c.in = inbox{}
	l := c.release()
	switch {
	case l == nil:
	case !c.body.reusable || !c.out.sent() || c.fault != nil:
		l.kill()
	case c.body.done():
		if in.empty() {
			in.drop()
			c.pool.put(l)
			return
		}
		l.kill() // data behind the answer: whose would it be?
	default:
		c.pool.drain(l, c.body, in)
		return
	}
	in.drop()
}

// release ends the call's hold on its connection: from here on Abort and Wake
// do nothing. nil: there is none, or Abort closed it.
func (c *Call) release() *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.link
	if c.dial != nil {
		c.dial.drop()
		c.dial = nil
	}
	c.link = nil
	c.over = true
	c.out.drop()
	c.in.drop()
	if c.aborted.Load() {
		return nil
	}
	if l != nil && c.disturbed {
		l.read.loose, l.write.loose = true, true
	}
	return l
}

// interrupted is asked after a deadline was armed and before the wait: Wake
// sets its flag first and moves the deadline second, so one of the two is seen.
func (c *Call) interrupted() error {
	if c.aborted.Load() {
		return ErrAborted
	}
	if c.woken.Load() && c.woken.Swap(false) {
		return ErrPaused
	}
	if c.over {
		panic("BUG: a step of a call that is over")
	}
	return nil
}

// expired sorts a deadline error: nil means that it was an old one, wait again.
func (c *Call) expired(until time.Time) error {
	if err := c.interrupted(); err != nil {
		return err
	}
	if !until.IsZero() && !time.Now().Before(until) {
		return ErrPaused
	}
	return nil
}

// keep remembers an error that ends the call.
func (c *Call) keep(err error) error {
	if err != nil && err != ErrPaused {
		c.fault = err
	}
	return err
}

// receive reads once into c.in, waiting until then at most.
func (c *Call) receive(until time.Time) error {
	l := c.link
	for {
		// A pipe whose other end is closed takes no deadline any more, but still
		// has its end to read: the read tells, and cannot wait.
		if err := l.read.arm(until, l.raw.SetReadDeadline); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			return c.broken(err)
		}
		if err := c.interrupted(); err != nil {
			return err
		}
		n, err := l.fill(&c.in)
		if n > 0 {
			return nil // an error that came along comes again
		}
		if err == nil {
			continue // in-memory connections may bring nothing
		}
		if !isDeadline(err) {
			return c.broken(err)
		}
		l.read.loose = true
		if err := c.expired(until); err != nil {
			return err
		}
	}
}

// broken is the error of a connection, unless it broke because of Abort.
func (c *Call) broken(err error) error {
	if c.aborted.Load() {
		return ErrAborted
	}
	return err
}

func (c *Call) failure(kind, verb string, err error) error {
	return &Error{Kind: kind, Verb: verb, Addr: c.pool.target.Addr, Err: cause(err)}
}
