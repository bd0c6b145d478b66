//go:build unix

package hangup

import (
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// firstRead is how much is read when one byte is asked for. Most requests, head
// and prompt, fit in.
const firstRead = 4 << 10

var firstBuffers = sync.Pool{New: func() any { return new([firstRead]byte) }}

// first is what came with the first byte of a request. The server waits for
// that byte alone, so that an idle connection holds no buffer; reading the rest
// along with it saves a system call for every request.
type first struct {
	buf  *[firstRead]byte // pooled; nil while there is nothing
	rest []byte           // of buf, not yet handed on
	n    int
	err  error
	step func(fd uintptr) bool

	opening [openingLimit]byte // the first bytes of the newest request,
	opened  int                // so many
}

// openingLimit is enough for a method and a path.
const openingLimit = 96

// Opening returns the first bytes of the newest request as they came, at most
// openingLimit, until the next one begins. A server that could not parse a head
// forgets it; this tells at least what was asked for.
func (c *Conn) Opening() []byte { return c.first.opening[:c.first.opened] }

// readFirst waits for a byte without holding a buffer and takes what else is there.
func (c *Conn) readFirst(p []byte) (int, error) {
	f := &c.first
	if f.step == nil {
		f.step = c.firstStep
	}
	f.n, f.err = 0, nil
	if err := c.raw.Read(f.step); err != nil {
		return 0, err
	}
	if f.n == 0 {
		return 0, f.err
	}
	f.rest = f.buf[:f.n]
	f.opened = copy(f.opening[:], f.rest)
	return c.takeFirst(p), nil
}

// firstStep reads once; false waits until there is something to read.
func (c *Conn) firstStep(fd uintptr) bool {
	f := &c.first
	f.buf = firstBuffers.Get().(*[firstRead]byte)
	for {
		n, err := unix.Read(int(fd), f.buf[:])
		switch {
		case n > 0:
			f.n = n
			return true
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			f.drop()
			return false
		case err == nil:
			f.err = io.EOF
		default:
			f.err = os.NewSyscallError("read", err)
		}
		f.drop()
		return true
	}
}

// takeFirst moves waiting bytes to p.
func (c *Conn) takeFirst(p []byte) int {
	f := &c.first
	n := copy(p, f.rest)
	if f.rest = f.rest[n:]; len(f.rest) == 0 {
		f.drop()
	}
	return n
}

func (f *first) drop() {
	firstBuffers.Put(f.buf)
	f.buf, f.rest = nil, nil
}
