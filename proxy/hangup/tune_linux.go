package hangup

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// userTimeout is how long sent data may stay unacknowledged, and a client's window
// closed, before the kernel gives the connection up.
const userTimeout = 30 * time.Second

// keepAlive finds a client that vanished without a word within userTimeout.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// tune sets the options of an accepted connection. They only help: an error of one is
// no reason to refuse a client. TCP_NODELAY is on already.
func tune(c net.Conn, raw syscall.RawConn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(keepAlive)
		tuneStall(raw, 0)
	}
}

func tuneStall(raw syscall.RawConn, d time.Duration) {
	ms := int(max(userTimeout, d) / time.Millisecond)
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, ms)
	})
}
