//go:build unix

package hangup

import (
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// virtualSocket is a connection with a real descriptor whose waits take place in virtual
// time: reads of the other end tell the waiting Write by themselves, or not at all.
type virtualSocket struct {
	net.Conn // nil; nothing else of it is used
	fd, peer int

	mu       sync.Mutex
	deadline time.Time
	settings int           // calls of SetWriteDeadline
	changed  chan struct{} // closed when the deadline changes
	room     chan struct{} // one value: the other end has read
}

// onFullSocket runs f in virtual time with a socket that is full and has a stall limit.
func onFullSocket(t *testing.T, f func(t *testing.T, c *Conn, s *virtualSocket)) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newVirtualSocket(t)
		c.SetStall(limit)
		f(t, c, s)
	})
}

// newVirtualSocket returns a Conn over a virtual socket whose buffer is full.
func newVirtualSocket(t *testing.T) (*Conn, *virtualSocket) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(t, err)
	for _, fd := range fds {
		must(t, unix.SetNonblock(fd, true))
		must(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 8<<10))
	}
	s := &virtualSocket{fd: fds[0], peer: fds[1], changed: make(chan struct{}), room: make(chan struct{}, 1)}
	t.Cleanup(func() {
		must(t, unix.Close(s.fd))
		must(t, unix.Close(s.peer))
	})
	s.fill(t)
	return newConn(s, newWatcher(t)), s
}

// fill makes the socket refuse the next byte.
func (s *virtualSocket) fill(t *testing.T) {
	t.Helper()
	for {
		if _, err := unix.Write(s.fd, make([]byte, 512)); err == unix.EAGAIN {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// drain reads everything at the other end.
func (s *virtualSocket) drain() (n int) {
	for buf := make([]byte, 4<<10); ; {
		m, err := unix.Read(s.peer, buf)
		if err != nil || m == 0 {
			return n
		}
		n += m
	}
}

// tell wakes a Write that waits for room.
func (s *virtualSocket) tell() { s.room <- struct{}{} }

// drainAndTell is what a client does that reads much.
func (s *virtualSocket) drainAndTell() { s.drain(); s.tell() }

func (s *virtualSocket) SyscallConn() (syscall.RawConn, error) { return virtualRaw{s}, nil }

// virtualRaw is the descriptor of a virtualSocket.
type virtualRaw struct{ s *virtualSocket }

// Control fails, so that no watcher waits outside the virtual time.
func (virtualRaw) Control(func(uintptr)) error { return os.ErrInvalid }

func (virtualRaw) Read(func(uintptr) bool) error { return os.ErrInvalid }

func (r virtualRaw) Write(f func(uintptr) bool) error {
	if r.s.expired() {
		return errRawTimeout()
	}
	for !f(uintptr(r.s.fd)) {
		if r.s.wait() {
			return errRawTimeout()
		}
	}
	return nil
}

// errRawTimeout is what a descriptor of package net returns.
func errRawTimeout() error { return &net.OpError{Op: "raw-write", Err: os.ErrDeadlineExceeded} }

func (s *virtualSocket) expired() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.deadline.IsZero() && !time.Now().Before(s.deadline)
}

// wait returns when there is room, or with true when the deadline has passed.
func (s *virtualSocket) wait() (expired bool) {
	for {
		s.mu.Lock()
		deadline, changed := s.deadline, s.changed
		s.mu.Unlock()
		var timeout <-chan time.Time
		if !deadline.IsZero() {
			timeout = time.After(time.Until(deadline))
		}
		select {
		case <-s.room:
			return false
		case <-timeout:
			return true
		case <-changed:
		}
	}
}

func (s *virtualSocket) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	s.settings++
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

func (s *virtualSocket) armed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.deadline.IsZero()
}

func (s *virtualSocket) Close() error         { return nil }
func (s *virtualSocket) LocalAddr() net.Addr  { return &net.UnixAddr{Name: "local"} }
func (s *virtualSocket) RemoteAddr() net.Addr { return &net.UnixAddr{Name: "remote"} }
