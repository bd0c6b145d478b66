//go:build unix

package hangup

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// canWriteRaw: the descriptor can be written to without waiting.
const canWriteRaw = true

// errDeadline is the owner's own write deadline.
var errDeadline = os.ErrDeadlineExceeded

// writeStep writes until everything is accepted, the socket refuses or fails. It
// returns false to be called again when the socket has room.
func (c *Conn) writeStep(fd uintptr) (done bool) {
	o := &c.out
	for moved := false; len(o.rest) > 0; {
		n, err := unix.Write(int(fd), o.rest)
		switch {
		case n > 0:
			o.n += n
			o.rest = o.rest[n:]
			moved = true
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return !c.refused(moved)
		case err == nil:
			o.err = io.ErrUnexpectedEOF
			return true
		default:
			o.err = os.NewSyscallError("write", err)
			return true
		}
	}
	return true
}
