package h1

import (
	"net"
	"syscall"
	"time"
)

// link is one connection to an upstream. It has one user at a time: a Call, the
// pool, or a drain. Only kill may be called by another goroutine.
type link struct {
	raw   net.Conn        // what is closed; for TLS the connection below it
	conn  net.Conn        // raw, or the TLS session over it
	sock  syscall.RawConn // raw's descriptor; nil without one (in-memory, or not unix)
	under *underTLS       // set with TLS

	retireAt time.Time     // no reuse after it, so that names are resolved again
	idleEnd  time.Time     // while in the pool: when to close it
	keepFor  time.Duration // the server's own Keep-Alive timeout, 0 if it named none
	ended    bool          // a read failed, maybe with data: no further request

	read, write deadline // as last set on raw

	// Arguments and results of the callbacks below, which are bound once so that
	// waiting allocates nothing.
	in       *inbox
	n        int
	err      error
	waited   bool
	onData   func(fd uintptr) bool
	onPeek   func(fd uintptr) bool
	onReady  func(fd uintptr) bool
	peekByte [1]byte
}

func newLink(raw net.Conn) *link {
	l := &link{raw: raw, conn: raw}
	l.bind()
	return l
}

// kill closes the connection at once, without a TLS goodbye, which could block.
func (l *link) kill() { _ = l.raw.Close() }

// fill reads once and appends to in. Without data it waits, and holds a buffer
// meanwhile only if in had one before or the connection has no descriptor.
// n > 0 may come with an error.
func (l *link) fill(in *inbox) (n int, err error) {
	n, err = l.fillOnce(in)
	if err != nil && !isDeadline(err) {
		l.ended = true
	}
	return n, err
}

func (l *link) fillOnce(in *inbox) (n int, err error) {
	switch {
	case l.sock == nil:
		return fillFrom(l.conn, in)
	case l.under == nil:
		return l.fillSocket(in)
	}
	for {
		n, err = fillFrom(l.conn, in)
		if n > 0 || err != errWouldBlock {
			return n, err
		}
		if err = l.waitSocket(); err != nil {
			return 0, err
		}
	}
}

func fillFrom(conn net.Conn, in *inbox) (int, error) {
	held := in.buf != nil
	if !held {
		in.take()
	}
	n, err := conn.Read(in.buf[in.hi:])
	in.hi += n
	if n == 0 && !held {
		in.drop()
	}
	return n, err
}

// deadline remembers what was set, since setting one costs more than a token.
type deadline struct {
	at    time.Time
	loose bool // unknown: it fired, or Wake changed it
}

func (d *deadline) arm(until time.Time, set func(time.Time) error) error {
	if !d.loose && d.at.Equal(until) {
		return nil
	}
	d.at, d.loose = until, false
	return set(until)
}

// settle makes the deadlines of the request before harmless. One that lies ahead
// may stay, since the next step replaces it: setting deadlines anew for the pool
// would cost as much as the look for a closed connection.
func (l *link) settle(now time.Time) error {
	if !l.read.passed(now) && !l.write.passed(now) {
		return nil
	}
	l.read, l.write = deadline{}, deadline{}
	return l.raw.SetDeadline(time.Time{})
}

func (d *deadline) passed(now time.Time) bool {
	return d.loose || !d.at.IsZero() && !now.Before(d.at)
}
