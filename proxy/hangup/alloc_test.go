//go:build unix && !race

package hangup

import (
	"io"
	"net"
	"testing"
	"time"
)

// TestHotPathsAllocateNothing: a watched request, and the Write of one token.
func TestHotPathsAllocateNothing(t *testing.T) {
	w := newWatcher(t)
	for _, tr := range sockets {
		t.Run(tr.name, func(t *testing.T) {
			server, client := connect(t, w, tr)
			go io.Copy(io.Discard, client)
			leave := func() {}
			token := make([]byte, 200)
			server.SetStall(time.Minute)
			for name, f := range map[string]func(){
				"Watch and Unwatch": func() { server.Watch(leave); server.Unwatch() },
				"Write":             func() { server.Write(token) },
				"begin of a request": func() {
					server.ResumeWrites()
					server.ResetBlocked()
					server.SetStall(time.Minute)
				},
			} {
				if server.ahead != nil && name == "Watch and Unwatch" {
					continue // the price of systems without epoll
				}
				if got := testing.AllocsPerRun(1000, f); got != 0 {
					t.Errorf("%s: %v allocations", name, got)
				}
			}
		})
	}
}

// TestWaitingWriteAllocatesNothing fills the socket: every Write waits for the reader.
func TestWaitingWriteAllocatesNothing(t *testing.T) {
	server, client := connect(t, newWatcher(t), transport{"tcp", tcpTransport})
	fillSocket(t, server)
	server.SetStall(time.Minute)
	go io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ net.Conn }{client}, make([]byte, 64<<10))
	p := make([]byte, 8<<20)
	server.ResetBlocked()
	got := testing.AllocsPerRun(10, func() { server.Write(p) })
	if server.Blocked() == 0 {
		t.Error("no Write waited")
	}
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}
