package h1

import (
	"net"
	"syscall"
)

// underTLS is the connection that crypto/tls sees. It makes TLS resumable:
// crypto/tls is broken for good by a write that timed out inside a record, so a
// record that cannot be sent in time is kept here and reported as sent.
type underTLS struct {
	net.Conn
	sock   syscall.RawConn // for reads that do not wait; nil: reads wait in Conn
	unsent []byte

	n     int
	err   error
	buf   []byte
	onTry func(fd uintptr) bool
}

// errWouldBlock means "nothing to read now". crypto/tls forgets a temporary error.
var errWouldBlock error = wouldBlock{}

type wouldBlock struct{}

func (wouldBlock) Error() string   { return "nothing to read yet" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

func (u *underTLS) Write(b []byte) (int, error) {
	sent := 0
	if len(u.unsent) == 0 {
		n, err := u.Conn.Write(b)
		if err == nil || !isDeadline(err) {
			return n, err
		}
		sent = n
	}
	u.unsent = append(u.unsent, b[sent:]...)
	return len(b), nil
}

// flush sends what an earlier write left. Its deadline error loses nothing.
func (u *underTLS) flush() error {
	for len(u.unsent) > 0 {
		n, err := u.Conn.Write(u.unsent)
		u.unsent = u.unsent[n:]
		if err != nil {
			return err
		}
	}
	u.unsent = nil
	return nil
}

// Read waits during the handshake; afterwards (sock is set) it returns
// errWouldBlock, so that the link can wait without a buffer.
func (u *underTLS) Read(b []byte) (int, error) {
	if u.sock == nil {
		return u.Conn.Read(b)
	}
	u.buf = b
	err := u.sock.Read(u.onTry)
	u.buf = nil
	if err != nil {
		return 0, err
	}
	return u.n, u.err
}
