package hangup

import (
	"net"
	"syscall"
)

// NewListener returns a listener whose accepted connections are *Conn, watched by w.
// TLS goes on top: tls.NewListener(hangup.NewListener(ln, w), config). Closing it
// closes ln and neither w nor the connections. It goes on accepting as Persist does.
func NewListener(ln net.Listener, w *Watcher) net.Listener {
	return &listener{Listener: Persist(ln, w), watcher: w}
}

type listener struct {
	net.Listener
	watcher *Watcher
}

func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(inner, l.watcher), nil
}

// newConn wraps an accepted connection. A connection that cannot be registered with the
// kernel's watcher is read ahead instead, so it is never refused here.
func newConn(inner net.Conn, w *Watcher) *Conn {
	c := &Conn{Conn: inner, watcher: w}
	c.out.stall = noStall
	registered := false
	if sc, ok := inner.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			tune(inner, raw)
			if canWriteRaw {
				c.raw = raw
				c.out.step = c.writeStep
			}
			registered = w.add(c, raw)
		}
	}
	if !registered {
		c.ahead = new(readAhead)
	}
	return c
}
