package proxy

import (
	"errors"
	"net"
	"os"

	"github.com/valyala/fasthttp/fasthttputil"
)

// socketTimeouts gives the connections of an in-memory listener the timeout error
// of a socket: net/http takes theirs for a client that has left, and cancels
// the next request on a connection that is used again.
type socketTimeouts struct{ net.Listener }

func (l socketTimeouts) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return socketTimeoutConn{c}, nil
}

type socketTimeoutConn struct{ net.Conn }

func (c socketTimeoutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, fasthttputil.ErrTimeout) {
		err = os.ErrDeadlineExceeded
	}
	return n, err
}
