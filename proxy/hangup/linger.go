package hangup

import (
	"errors"
	"io"
	"time"
)

// lingerLimit is what LingerOnClose was given.
type lingerLimit struct {
	bytes int64
	time  time.Duration
}

// CloseWrite sends the end of the stream and leaves reading open. Connections that
// cannot do that return an error that wraps errors.ErrUnsupported.
func (c *Conn) CloseWrite() error {
	if cw, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return cw.CloseWrite()
	}
	return errNoHalfClose
}

var errNoHalfClose = errors.Join(errors.New("cannot half-close this kind of connection"), errors.ErrUnsupported)

// Linger ends the writing side, then reads and discards until the client has closed,
// maxBytes were read or d has passed. A client that is still sending a refused body
// would otherwise get a reset, and lose the answer. It replaces the read deadline; the
// caller closes the connection next.
func (c *Conn) Linger(maxBytes int64, d time.Duration) {
	_ = c.CloseWrite() // where there is no half-close, reading on still helps
	if c.SetReadDeadline(time.Now().Add(d)) != nil {
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(c, maxBytes)) // any end will do
}

// LingerOnClose makes the next Close linger first, for owners that do not close the
// connection themselves. With TLS on top, Close has sent its close_notify by then.
func (c *Conn) LingerOnClose(maxBytes int64, d time.Duration) {
	c.linger.Store(&lingerLimit{bytes: maxBytes, time: d})
}
