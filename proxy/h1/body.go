package h1

import (
	"fmt"
	"io"
	"time"
)

type bodyFraming uint8

const (
	noFraming bodyFraming = iota // no head yet
	byLength
	byChunks
	byClose
)

// bodyState is how much of an answer's body is still to come. It is a value
// that a drain can take over.
type bodyState struct {
	framing  bodyFraming
	reusable bool  // nothing in the head forbids another request on the connection
	left     int64 // byLength
	chunks   dechunker
	closed   bool // byClose: the end was seen
}

func (b *bodyState) done() bool {
	switch b.framing {
	case byLength:
		return b.left == 0
	case byChunks:
		return b.chunks.done()
	case byClose:
		return b.closed
	}
	return false
}

// decode takes the payload out of what is unread. What is behind the body's end
// stays unread.
func (b *bodyState) decode(in *inbox) (out []byte, err error) {
	raw := in.unread()
	switch b.framing {
	case byLength:
		k := len(raw)
		if int64(k) > b.left {
			k = int(b.left)
		}
		b.left -= int64(k)
		in.lo += k
		return raw[:k], nil
	case byChunks:
		out, used, err := b.chunks.decode(raw)
		in.lo += used
		return out, err
	}
	in.lo = in.hi
	return raw, nil
}

// Next returns the next bytes of the body, without their framing: everything
// that one read brought, as one slice, valid until the next call or Finish.
// io.EOF means that the body is complete; a body that ends before its framing says so is an
// *Error of kind cut with io.ErrUnexpectedEOF in its chain.
func (c *Call) Next(until time.Time) ([]byte, error) {
	if c.fault == nil && !c.head.read {
		panic("BUG: Next before ReadHead")
	}
	for c.fault == nil {
		if !c.in.empty() && !c.body.done() {
			out, err := c.body.decode(&c.in)
			if err != nil {
				c.fault = c.failure(KindProtocol, "read the body from upstream", err)
			}
			if len(out) > 0 {
				return out, nil
			}
			continue
		}
		if c.body.done() {
			if c.in.empty() {
				c.in.drop()
			}
			return nil, io.EOF
		}
		c.in.drop()
		if err := c.receive(until); err != nil {
			return nil, c.bodyEnd(err)
		}
	}
	return nil, c.fault
}

// bodyEnd sorts the error of a read inside a body.
func (c *Call) bodyEnd(err error) error {
	if err == ErrPaused {
		return err
	}
	if err == ErrAborted {
		return c.keep(err)
	}
	if err == io.EOF && c.body.framing == byClose {
		c.body.closed = true
		return io.EOF
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = io.ErrUnexpectedEOF
	} else {
		err = fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, cause(err))
	}
	return c.keep(c.failure(KindCut, "read the body from upstream", err))
}
