//go:build unix && !race

package hangup

import (
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// TestHotPathsAllocateNothing: a watched request, and the Write of one token.
func TestHotPathsAllocateNothing(t *testing.T) {
	onEach(t, sockets, func(t *testing.T, server *Conn, client net.Conn) {
		go io.Copy(io.Discard, client)
		leave := func() {}
		token := make([]byte, 200)
		server.SetStall(time.Minute)
		for name, f := range map[string]func(){
			"Watch and Unwatch": func() { server.Watch(leave); server.Unwatch() },
			"Write": func() {
				if _, err := server.Write(token); err != nil {
					t.Fatal(err)
				}
			},
			"begin of a request": func() {
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

// TestWaitingWriteAllocatesNothing: nobody reads before the Write waits, and it does not
// fit into the socket.
func TestWaitingWriteAllocatesNothing(t *testing.T) {
	server, client := connect(t, newWatcher(t), transport{"tcp", tcpTransport})
	must(t, server.NetConn().(*net.TCPConn).SetWriteBuffer(64<<10))
	must(t, client.(*net.TCPConn).SetReadBuffer(64<<10))
	server.SetStall(time.Minute)
	p, taken := make([]byte, 8<<20), make([]byte, 8<<20)
	begun := make(chan struct{})
	defer close(begun)
	var over atomic.Bool
	defer over.Store(true)
	go func() { // ends with begun
		for range begun {
			for !waits(server) && !over.Load() {
				runtime.Gosched()
			}
			_, _ = io.ReadFull(client, taken) // one that fails makes Write fail
		}
	}()
	got := testing.AllocsPerRun(10, func() {
		server.ResetBlocked()
		begun <- struct{}{}
		if _, err := server.Write(p); err != nil || server.Blocked() == 0 {
			t.Fatalf("Write: %v after a wait of %v", err, server.Blocked())
		}
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}
