package hangup

import (
	"net"
	"testing"
)

// departure is one way in which a client leaves.
type departure struct {
	name  string
	leave func(t *testing.T, c net.Conn)
}

var departures = []departure{
	{"close", func(t *testing.T, c net.Conn) { c.Close() }},
	{"reset", func(t *testing.T, c net.Conn) {
		if tcp, ok := c.(*net.TCPConn); ok {
			if err := tcp.SetLinger(0); err != nil {
				t.Error(err)
			}
		}
		c.Close()
	}},
	{"half-close", func(t *testing.T, c net.Conn) {
		hc, ok := c.(interface{ CloseWrite() error })
		if !ok {
			c.Close()
			return
		}
		if err := hc.CloseWrite(); err != nil {
			t.Error(err)
		}
	}},
}

// everyDeparture runs f for every transport and every way of leaving.
func everyDeparture(t *testing.T, f func(t *testing.T, server *Conn, client net.Conn, leave func())) {
	w := newWatcher(t)
	for _, tr := range transports {
		for _, d := range departures {
			t.Run(tr.name+"/"+d.name, func(t *testing.T) {
				server, client := connect(t, w, tr)
				f(t, server, client, func() { d.leave(t, client) })
			})
		}
	}
}

func TestLeaveIsCalledWhileWatched(t *testing.T) {
	everyDeparture(t, func(t *testing.T, server *Conn, client net.Conn, depart func()) {
		leave, left := signal()
		if server.Watch(leave) {
			t.Fatal("gone before the client left")
		}
		depart()
		arrives(t, "leave", left)
		if !server.Unwatch() {
			t.Error("Unwatch does not say that leave was called")
		}
		if !server.Gone() || !server.Watch(leave) {
			t.Error("gone is not sticky")
		}
		if server.Unwatch() {
			t.Error("the second Watch called leave")
		}
		notLeft(t, left)
	})
}

func TestDepartureBetweenRequestsIsKnownAtTheNext(t *testing.T) {
	everyDeparture(t, func(t *testing.T, server *Conn, client net.Conn, depart func()) {
		leave, left := signal()
		server.Watch(leave)
		if server.Unwatch() {
			t.Fatal("leave was called before the client left")
		}
		depart()
		notLeft(t, left) // nothing is armed
		if !server.Watch(leave) {
			arrives(t, "leave", left)
		}
	})
}

func TestDepartureBehindUnreadBytes(t *testing.T) {
	everyDeparture(t, func(t *testing.T, server *Conn, client net.Conn, depart func()) {
		write(t, client, "one")
		read(t, server, "one")
		leave, left := signal()
		server.Watch(leave)
		write(t, client, "the next request")
		depart()
		arrives(t, "leave", left)
	})
}

func TestDepartureWhileTheOwnerReads(t *testing.T) {
	everyDeparture(t, func(t *testing.T, server *Conn, client net.Conn, depart func()) {
		leave, left := signal()
		server.Watch(leave)
		ended := make(chan error, 1)
		go func() {
			_, err := server.Read(make([]byte, 16))
			ended <- err
		}()
		depart()
		if err := arrives(t, "end of Read", ended); err == nil {
			t.Error("Read returned no error")
		}
		arrives(t, "leave", left)
	})
}

func TestDepartureAfterABodyWasReadWhileWatched(t *testing.T) {
	everyDeparture(t, func(t *testing.T, server *Conn, client net.Conn, depart func()) {
		leave, left := signal()
		server.Watch(leave)
		write(t, client, "body")
		read(t, server, "body")
		write(t, server, "answer")
		read(t, client, "answer")
		depart()
		arrives(t, "leave", left)
	})
}

func TestOurOwnCloseIsNoDeparture(t *testing.T) {
	onEach(t, transports, func(t *testing.T, server *Conn, client net.Conn) {
		leave, left := signal()
		server.Watch(leave)
		if server.ahead != nil {
			write(t, client, "x")
			eventually(t, "the background read", func() bool {
				server.mu.Lock()
				defer server.mu.Unlock()
				return server.ahead.pending() > 0
			})
		}
		server.Close()
		if _, err := client.Read(make([]byte, 1)); err == nil {
			t.Error("the client still reads")
		}
		client.Close()
		backgroundReadEnds(t, server)
		if server.Unwatch() || server.Gone() {
			t.Error("our own close was taken for a departure")
		}
		if server.Watch(leave) {
			t.Error("gone after our own close")
		}
		notLeft(t, left)
	})
}

// TestLeaveIsCalledOncePerWatch: a half-close and the reset after it are two events.
func TestLeaveIsCalledOncePerWatch(t *testing.T) {
	w := newWatcher(t)
	tr := transports[0]
	server, client := connect(t, w, tr)
	barrier, barrierClient := connect(t, w, tr)
	leave, left := signal()
	server.Watch(leave)
	must(t, client.(*net.TCPConn).CloseWrite())
	arrives(t, "leave", left)
	must(t, client.(*net.TCPConn).SetLinger(0))
	client.Close()
	// Events are handed out in order, so this departure comes after the reset.
	other, otherLeft := signal()
	barrier.Watch(other)
	barrierClient.Close()
	arrives(t, "leave of the second client", otherLeft)
	notLeft(t, left)
}

func TestTLSDeparture(t *testing.T) {
	onEach(t, transports, func(t *testing.T, server *Conn, client net.Conn) {
		st, ct := handshake(t, server, client)
		if Of(st) != server {
			t.Fatal("Of does not find the connection below TLS")
		}
		leave, left := signal()
		if Of(st).Watch(leave) {
			t.Fatal("gone")
		}
		// What was read ahead is ciphertext and must reach TLS whole.
		write(t, ct, "the next request")
		write(t, st, "answer")
		read(t, ct, "answer")
		if Of(st).Unwatch() {
			t.Fatal("leave was called")
		}
		read(t, st, "the next request")
		Of(st).Watch(leave)
		ct.Close()
		arrives(t, "leave", left)
	})
}

func TestOfForeignConnections(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if Of(a) != nil || Of(nil) != nil || Of(plainConn{a}) != nil {
		t.Error("found a Conn where there is none")
	}
}

func TestClosedWatcher(t *testing.T) {
	for _, tr := range transports {
		t.Run(tr.name, func(t *testing.T) {
			w := newWatcher(t)
			inner, dial := tr.open(t)
			ln := NewListener(inner, w)
			defer ln.Close()
			before, beforeClient := connectOver(t, ln, dial)
			leave, left := signal()
			before.Watch(leave)
			w.Close()
			w.Close()
			after, afterClient := connectOver(t, ln, dial)
			if after.Watch(leave) {
				t.Error("a new connection is gone")
			}
			beforeClient.Close()
			afterClient.Close()
			backgroundReadEnds(t, before)
			for _, c := range []*Conn{before, after} {
				// Once Read has seen the end, so would the watcher have.
				if _, err := c.Read(make([]byte, 1)); err == nil {
					t.Error("Read after the client's close returned no error")
				}
				if c.Unwatch() || c.Gone() {
					t.Error("departure seen by a closed watcher")
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
			notLeft(t, left)
		})
	}
}
