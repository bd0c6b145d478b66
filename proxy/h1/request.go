package h1

import (
	"bytes"
	"net"
	"sync"
	"time"
)

// tlsPiece is how much is given to TLS at a time: one record, so that at most
// one is left over when the deadline passes.
const tlsPiece = 16 << 10

// outbox is the request on its way out. The head is kept as long as it may have
// to be sent again.
type outbox struct {
	head    *[]byte // pooled
	body    []byte  // the caller's
	rest    net.Buffers
	parts   [2][]byte // what rest is cut from
	began   bool
	whole   bool  // every byte was accepted by the connection
	failure error // the connection broke while sending
}

var headBytes = sync.Pool{New: func() any { return new(make([]byte, 0, 2<<10)) }}

func (o *outbox) sent() bool { return o.whole && o.failure == nil }

// rewind makes everything due again.
func (o *outbox) rewind() {
	o.parts = [2][]byte{*o.head, o.body}
	o.rest = o.parts[:]
	if len(o.body) == 0 {
		o.rest = o.parts[:1]
	}
	o.whole, o.failure = false, nil
}

func (o *outbox) drop() {
	if o.head != nil && cap(*o.head) <= blockSize {
		headBytes.Put(o.head)
	}
	o.head, o.body, o.rest, o.parts = nil, nil, nil, [2][]byte{}
}

// Write sends a rendered head, from its request line to the empty line, with the
// one framing field and the Host in it, and the body. The head is copied; body
// must stay as it is until ReadHead has returned nil, since it may be sent
// twice. If the upstream closes while the request is sent, Write returns nil: an
// answer (413, say) may be there, and ReadHead will tell.
func (c *Call) Write(until time.Time, head, body []byte) error {
	if c.fault != nil {
		return c.fault
	}
	if o := &c.out; !o.began {
		o.began = true
		c.head.noBody = bytes.HasPrefix(head, []byte("HEAD "))
		o.head = headBytes.Get().(*[]byte)
		*o.head = append((*o.head)[:0], head...)
		o.body = body
		o.rewind()
	}
	return c.keep(c.send(until))
}

// send writes what is left of the request.
func (c *Call) send(until time.Time) error {
	l, o := c.link, &c.out
	for !o.whole && o.failure == nil {
		if err := l.write.arm(until, l.raw.SetWriteDeadline); err != nil {
			o.failure = c.broken(err)
			break
		}
		if err := c.interrupted(); err != nil {
			return err
		}
		err := l.sendAll(&o.rest)
		switch {
		case err == nil:
			o.whole = true
		case isDeadline(err):
			l.write.loose = true
			if err := c.expired(until); err != nil {
				return err
			}
		default:
			o.failure = c.broken(err)
		}
	}
	if c.aborted.Load() {
		return ErrAborted
	}
	if !c.Reused {
		o.drop() // a fresh connection gets it once
	}
	return nil
}

// sendAll writes rest and takes from it what was written. Plain TCP gets head
// and body in one writev.
func (l *link) sendAll(rest *net.Buffers) error {
	if l.under == nil {
		_, err := rest.WriteTo(l.raw)
		return err
	}
	for {
		if err := l.under.flush(); err != nil {
			return err
		}
		for len(*rest) > 0 && len((*rest)[0]) == 0 {
			*rest = (*rest)[1:]
		}
		if len(*rest) == 0 {
			return nil
		}
		piece := (*rest)[0]
		piece = piece[:min(len(piece), tlsPiece)]
		n, err := l.conn.Write(piece)
		(*rest)[0] = (*rest)[0][n:]
		if err != nil {
			return err
		}
	}
}
