package hangup

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestDescriptorReuse opens and closes many short connections, so that descriptors and
// slots are used again at once, and ends them from either side. A client that still
// waits for its answer must never be taken for one that has left.
func TestDescriptorReuse(t *testing.T) {
	const workers, rounds = 16, 400
	for _, tr := range []transport{{"tcp", tcpTransport}, {"unix", unixTransport}, {"tcp_read_ahead", plainTransport}} {
		t.Run(tr.name, func(t *testing.T) {
			w := newWatcher(t)
			inner, dial := tr.open(t)
			ln := NewListener(inner, w)
			var served sync.WaitGroup
			var departures atomic.Int64
			accepting := make(chan struct{})
			go func() {
				defer close(accepting)
				for {
					c, err := ln.Accept()
					if err != nil {
						return
					}
					served.Go(func() { serveChurn(t, Of(c), &departures) })
				}
			}()
			var clients sync.WaitGroup
			for i := range workers {
				clients.Go(func() {
					for n := range rounds {
						churnClient(t, dial, churnEnds[(i+n)%len(churnEnds)])
					}
				})
			}
			clients.Wait()
			ln.Close()
			<-accepting
			served.Wait()
			if got := departures.Load(); got != workers*rounds/4 {
				t.Errorf("%d departures, want %d", got, workers*rounds/4)
			}
			t.Logf("%d connections, %d departures, %d stale events discarded", workers*rounds, departures.Load(), w.StaleEvents())
		})
	}
}

// churnEnds says who closes first: the client ('l'), the server ('s'), or nobody waits
// for the other ('b'), so that the news comes when the connection is closed already.
const churnEnds = "lbsb"

// churnClient asks and waits for the answer while the server watches; then it ends.
func churnClient(t *testing.T, dial func() (net.Conn, error), end byte) {
	c, err := dial()
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	ask := []byte{end}
	if _, err := c.Write(ask); err != nil {
		t.Error(err)
		return
	}
	if _, err := c.Read(ask); err != nil {
		t.Error(err)
	}
	if end != 's' {
		return
	}
	if _, err := c.Read(ask); err == nil {
		t.Error("the server sent more")
	}
}

func serveChurn(t *testing.T, c *Conn, departures *atomic.Int64) {
	defer c.Close()
	buf := make([]byte, 1)
	if _, err := c.Read(buf); err != nil {
		t.Error(err)
		return
	}
	leave, left := signal()
	if c.Watch(leave) || c.Unwatch() {
		t.Error("false departure while the client waits for its answer")
		return
	}
	if c.Watch(leave) {
		t.Error("false departure while the client waits for its answer")
		return
	}
	leaves := buf[0] == 'l'
	if _, err := c.Write(buf); err != nil {
		t.Error(err)
		return
	}
	if leaves {
		arrives(t, "leave", left)
		departures.Add(1)
	}
	if end := buf[0]; c.Unwatch() != leaves && end != 'b' {
		t.Errorf("Unwatch says %v, want %v, the end being %c", !leaves, leaves, end)
	}
}

// TestWatchRacesWithDeparture checks what Unwatch promises: leave runs once if Unwatch
// says so, and never if it does not.
func TestWatchRacesWithDeparture(t *testing.T) {
	const rounds = 200
	w := newWatcher(t)
	for _, tr := range transports {
		t.Run(tr.name, func(t *testing.T) {
			inner, dial := tr.open(t)
			ln := NewListener(inner, w)
			defer ln.Close()
			seen := 0
			for range rounds {
				if raceOnce(t, ln, dial) {
					seen++
				}
			}
			t.Logf("%d of %d departures met an armed Watch", seen, rounds)
		})
	}
}

func raceOnce(t *testing.T, ln net.Listener, dial func() (net.Conn, error)) (met bool) {
	c, client := connectOver(t, ln, dial)
	go client.Close()
	var calls []*atomic.Int32 // one per Watch
	var said []bool
	for gone := false; !gone; {
		n := new(atomic.Int32)
		gone = c.Watch(func() { n.Add(1) })
		for range len(calls) % 8 {
			runtime.Gosched() // a background read sees nothing before it has begun
		}
		left := c.Unwatch()
		if gone && left {
			t.Error("gone, and leave was called as well")
		}
		calls, said = append(calls, n), append(said, left)
	}
	for i, n := range calls {
		if said[i] {
			met = true
			eventually(t, "the call of leave", func() bool { return n.Load() == 1 })
		}
	}
	c.Close()
	for i, n := range calls {
		if got := n.Load(); got > 1 || got == 1 && !said[i] {
			t.Errorf("leave was called %d times, Unwatch said %v", got, said[i])
		}
	}
	return met
}
