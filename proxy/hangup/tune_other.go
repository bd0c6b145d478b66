//go:build !linux

package hangup

import (
	"net"
	"syscall"
	"time"
)

var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

func tune(c net.Conn, _ syscall.RawConn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(keepAlive) // it only helps
	}
}

func tuneStall(syscall.RawConn, time.Duration) {}
