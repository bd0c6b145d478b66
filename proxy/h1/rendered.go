package h1

import (
	"bytes"
	"time"
)

// WriteRendered is Write for a head that the caller has rendered, from its
// request line to the empty line, with the one framing field and the Host in
// it. The head is copied; body must stay as it is until ReadHead has returned nil.
func (c *Call) WriteRendered(until time.Time, head, body []byte) error {
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
