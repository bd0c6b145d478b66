package hangup

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// How long Accept waits before it tries again: the first time, and at most.
const (
	acceptWait    = 5 * time.Millisecond
	maxAcceptWait = time.Second
)

// passing are the errors of accept that end by themselves: a process or a system out of
// descriptors or memory, and a client that left before it was accepted. The connections
// that are open must live on, and free what is missing when they end.
var passing = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}

// Persist returns a listener over ln that goes on when Accept fails for want of
// descriptors or memory, with longer and longer waits up to a second. w counts the
// retries. The connections are those of ln. Closing it closes ln and ends a wait.
func Persist(ln net.Listener, w *Watcher) net.Listener {
	return &persistent{Listener: ln, watcher: w, closed: make(chan struct{})}
}

type persistent struct {
	net.Listener
	watcher *Watcher
	once    sync.Once
	closed  chan struct{}
}

func (l *persistent) Accept() (net.Conn, error) {
	for wait := acceptWait; ; wait = min(2*wait, maxAcceptWait) {
		c, err := l.Listener.Accept()
		if err == nil || !passes(err) {
			return c, err
		}
		l.watcher.retries.Add(1)
		select {
		case <-time.After(wait):
		case <-l.closed:
			return nil, &net.OpError{Op: "accept", Net: l.Addr().Network(), Addr: l.Addr(), Err: net.ErrClosed}
		}
	}
}

func (l *persistent) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

func passes(err error) bool {
	for _, p := range passing {
		if errors.Is(err, p) {
			return true
		}
	}
	return false
}
