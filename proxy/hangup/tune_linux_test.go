package hangup

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestSocketOptions(t *testing.T) {
	w := newWatcher(t)
	server, _ := connect(t, w, transport{"tcp", tcpTransport})
	option := func(level, opt, want int, what string) {
		t.Helper()
		var got int
		var err error
		must(t, server.raw.Control(func(fd uintptr) { got, err = unix.GetsockoptInt(int(fd), level, opt) }))
		must(t, err)
		if got != want {
			t.Errorf("%s = %d, want %d", what, got, want)
		}
	}
	userTimeout := func(want time.Duration) {
		t.Helper()
		option(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(want/time.Millisecond), "TCP_USER_TIMEOUT")
	}
	option(unix.IPPROTO_TCP, unix.TCP_NODELAY, 1, "TCP_NODELAY")
	option(unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1, "SO_KEEPALIVE")
	option(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15, "TCP_KEEPIDLE")
	option(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 5, "TCP_KEEPINTVL")
	option(unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3, "TCP_KEEPCNT")
	userTimeout(30 * time.Second)
	// A client that reads too slowly must be found by the stall limit first.
	server.SetStall(2 * time.Minute)
	userTimeout(2*time.Minute + 30*time.Second)
	server.SetStall(0)
	userTimeout(0)
}

// TestConnectionThatEpollRefuses is read ahead instead.
func TestConnectionThatEpollRefuses(t *testing.T) {
	w := newWatcher(t)
	w.mu.Lock()
	w.fd = -w.fd // every epoll_ctl fails
	w.mu.Unlock()
	server, client := connect(t, w, transport{"tcp", tcpTransport})
	if server.ahead == nil || server.slot.gen != 0 || len(w.free) != len(w.slots) {
		t.Fatal("registered")
	}
	leave, left := signal()
	server.Watch(leave)
	client.(*net.TCPConn).CloseWrite()
	arrives(t, "leave", left)
}
