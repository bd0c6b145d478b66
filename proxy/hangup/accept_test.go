package hangup

import (
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// failingListener gives the errors of its list, one an Accept, and then a connection, or nothing until Close.
type failingListener struct {
	mu     sync.Mutex
	errs   []error
	times  []time.Time // of every Accept
	conns  chan net.Conn
	closed chan struct{}
}

func newFailingListener(errs ...error) *failingListener {
	return &failingListener{errs: errs, conns: make(chan net.Conn, 1), closed: make(chan struct{})}
}

func (l *failingListener) Accept() (net.Conn, error) {
	l.mu.Lock()
	l.times = append(l.times, time.Now())
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		l.mu.Unlock()
		return nil, err
	}
	l.mu.Unlock()
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *failingListener) Close() error   { close(l.closed); return nil }
func (l *failingListener) Addr() net.Addr { return &net.TCPAddr{} }

// scarce is what the kernel's accept says when something is missing for the moment, in the shape net gives it.
func scarce(no syscall.Errno) error {
	return &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", no)}
}

// accepts are the two ways to a listener that goes on.
var accepts = []struct {
	name string
	wrap func(net.Listener, *Watcher) net.Listener
}{{"NewListener", NewListener}, {"Persist", Persist}}

func TestAcceptGoesOnWhenSomethingIsMissing(t *testing.T) {
	for _, way := range accepts {
		for _, no := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
			t.Run(way.name+" "+no.Error(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWatcher(t)
					inner := newFailingListener(scarce(no), scarce(no))
					server, client := net.Pipe()
					defer client.Close()
					inner.conns <- server
					ln := way.wrap(inner, w)
					c, err := ln.Accept()
					if err != nil {
						t.Fatal(err)
					}
					defer c.Close()
					if got := w.AcceptRetries(); got != 2 {
						t.Errorf("%d retries, want 2", got)
					}
				})
			})
		}
	}
}

func TestAcceptWaitsLongerEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher(t)
		inner := newFailingListener(slices.Repeat([]error{scarce(syscall.EMFILE)}, 10)...)
		ln := NewListener(inner, w)
		for range 2 {
			server, client := net.Pipe()
			defer client.Close()
			inner.conns <- server
			c, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			inner.errs = append(inner.errs, scarce(syscall.EMFILE)) // the next Accept begins anew
		}
		const ms = time.Millisecond
		want := []time.Duration{5 * ms, 10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, 1000 * ms, 1000 * ms, 0, 5 * ms}
		for i, d := range want {
			if got := inner.times[i+1].Sub(inner.times[i]); got != d {
				t.Errorf("wait %d is %v, want %v", i, got, d)
			}
		}
		if got := w.AcceptRetries(); got != 11 {
			t.Errorf("%d retries, want 11", got)
		}
	})
}

func TestCloseEndsTheWaitOfAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher(t)
		inner := newFailingListener(slices.Repeat([]error{scarce(syscall.EMFILE)}, 9)...) // the last wait is a second
		ln := NewListener(inner, w)
		ended := make(chan error, 1)
		go func() {
			_, err := ln.Accept()
			ended <- err
		}()
		time.AfterFunc(1276*time.Millisecond, func() { ln.Close() }) // 1 ms after that wait has begun
		began := time.Now()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept ends with %v", err)
		}
		if got := time.Since(began); got != 1276*time.Millisecond {
			t.Errorf("Accept ends after %v", got)
		}
	})
}

func TestAcceptReturnsOtherErrors(t *testing.T) {
	for _, way := range accepts {
		t.Run(way.name, func(t *testing.T) {
			w := newWatcher(t)
			if _, err := way.wrap(newFailingListener(scarce(syscall.EINVAL)), w).Accept(); !errors.Is(err, syscall.EINVAL) {
				t.Errorf("Accept ends with %v", err)
			}
			if got := w.AcceptRetries(); got != 0 {
				t.Errorf("%d retries", got)
			}
		})
	}
}

func TestAListenerCanBeClosedTwice(t *testing.T) {
	inner, _ := tcpTransport(t)
	ln := NewListener(inner, newWatcher(t))
	if err := ln.Close(); err != nil {
		t.Error(err)
	}
	if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the second Close says %v", err)
	}
}
