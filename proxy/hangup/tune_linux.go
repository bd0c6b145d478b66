package hangup

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// deadAfter is how long a client may leave sent data unacknowledged before the kernel
// gives the connection up.
const deadAfter = 30 * time.Second

// keepAlive finds a client that vanished without a word while nothing is sent.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// tune sets the options of an accepted connection. They only help: an error of one is
// no reason to refuse a client. TCP_NODELAY is on already.
func tune(c net.Conn, raw syscall.RawConn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(keepAlive)
		setUserTimeout(raw, deadAfter)
	}
}

// tuneStall keeps the kernel's limit out of the way of the stall limit d. The kernel
// counts a closed window as unacknowledged data, also when the client answers its
// probes: with a limit of d or less, a client that only reads slowly would seem to have
// left, and would not be found to have stalled. Without a stall limit there is none.
func tuneStall(raw syscall.RawConn, d time.Duration) {
	if d > 0 {
		d += deadAfter
	}
	setUserTimeout(raw, d)
}

// setUserTimeout fails on unix sockets, which need none.
func setUserTimeout(raw syscall.RawConn, d time.Duration) {
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d/time.Millisecond))
	})
}
