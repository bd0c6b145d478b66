//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package h1

import (
	"io"
	"syscall"
)

// bind takes raw's descriptor, if it has one.
func (l *link) bind() {
	sc, ok := l.raw.(syscall.Conn)
	if !ok {
		return
	}
	sock, err := sc.SyscallConn()
	if err != nil {
		return
	}
	l.sock, l.onData, l.onPeek, l.onReady = sock, l.takeData, l.peek, l.ready
}

// alive is asked before an idle connection is reused. Any byte that can be read
// now, the end included, belongs to no request: the connection must go.
func (l *link) alive() bool {
	if l.sock == nil {
		return true // no way to look; its idle time is bounded
	}
	if l.under != nil { // through TLS, which may hold bytes or have tickets to take
		_, err := l.conn.Read(l.peekByte[:])
		return err == errWouldBlock
	}
	l.err = nil
	if err := l.sock.Read(l.onPeek); err != nil {
		return false
	}
	return l.err == syscall.EAGAIN
}

// peek is alive's look: never waits.
func (l *link) peek(fd uintptr) bool {
	_, _, l.err = syscall.Recvfrom(int(fd), l.peekByte[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return true
}

// fillSocket reads from a plain socket. The buffer is taken when there is
// something to read, not while waiting for it.
func (l *link) fillSocket(in *inbox) (int, error) {
	l.in, l.n, l.err = in, 0, nil
	err := l.sock.Read(l.onData)
	l.in = nil
	if err != nil {
		return 0, err
	}
	return l.n, l.err
}

func (l *link) takeData(fd uintptr) bool {
	in := l.in
	held := in.buf != nil
	if !held {
		in.take()
	}
	n, err := readOnce(fd, in.buf[in.hi:])
	if n <= 0 && !held {
		in.drop()
	}
	if err == syscall.EAGAIN {
		return false
	}
	if n > 0 {
		in.hi += n
	}
	l.n, l.err = n, err
	return true
}

// waitSocket waits until the socket can be read, without reading and without a
// buffer: for TLS, which must do the reading itself.
func (l *link) waitSocket() error {
	l.waited = false
	return l.sock.Read(l.onReady)
}

// ready looks once after the poller was armed (what came before would wake
// nobody) and trusts the poller's wake-up after that.
func (l *link) ready(fd uintptr) bool {
	if l.waited {
		return true
	}
	l.waited = true
	_, _, err := syscall.Recvfrom(int(fd), l.peekByte[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return err != syscall.EAGAIN
}

// readOnce is read(2): n == 0 with io.EOF at the end, EAGAIN without data.
func readOnce(fd uintptr, b []byte) (int, error) {
	for {
		n, err := syscall.Read(int(fd), b)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// poll makes reads under TLS return at once from now on.
func (u *underTLS) poll(sock syscall.RawConn) {
	u.onTry = func(fd uintptr) bool {
		if u.n, u.err = readOnce(fd, u.buf); u.err == syscall.EAGAIN {
			u.err = errWouldBlock
		}
		return true
	}
	u.sock = sock
}
