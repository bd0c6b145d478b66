package hangup

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchingInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := inMemory(t)
		leave, left := signal()
		server.Watch(leave)
		start := time.Now()
		time.AfterFunc(time.Hour, func() { client.Close() })
		<-left // passes only if the background read lets virtual time go on
		if d := time.Since(start); d != time.Hour {
			t.Errorf("left after %v, want 1h", d)
		}
	})
}

func TestPipelinedBytesAreHandedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := inMemory(t)
		leave, left := signal()
		server.Watch(leave)
		write(t, client, "second ")
		write(t, client, "request")
		synctest.Wait()
		if server.Unwatch() {
			t.Fatal("bytes were taken for a departure")
		}
		read(t, server, "second r")
		server.Watch(leave)
		read(t, server, "equest")
		write(t, client, "third")
		synctest.Wait()
		read(t, server, "third")
		server.Unwatch()
		write(t, client, "fourth")
		read(t, server, "fourth")
		notLeft(t, left)
	})
}

func TestUnwatchLosesNoByte(t *testing.T) {
	onEach(t, transports[2:], func(t *testing.T, server *Conn, client net.Conn) {
		want := make([]byte, 200_000)
		for i := range want {
			want[i] = byte(i * 7 >> 3)
		}
		go func() {
			for rest := want; len(rest) > 0; {
				n, err := client.Write(rest[:min(len(rest), 1+len(rest)%37)])
				if err != nil {
					t.Error(err)
					return
				}
				rest = rest[n:]
			}
		}()
		var got []byte
		for buf := make([]byte, 64); len(got) < len(want); {
			server.Watch(func() { t.Error("leave was called") })
			if len(got)%3 == 0 {
				server.Unwatch()
			}
			n, err := server.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, buf[:n]...)
			server.Unwatch()
		}
		if !bytes.Equal(got, want) {
			t.Error("bytes were lost or reordered")
		}
	})
}

func TestOwnersReadDeadlineSurvivesWatching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := inMemory(t)
		leave, left := signal()
		start := time.Now()
		must(t, server.SetReadDeadline(start.Add(2*time.Second)))
		server.Watch(leave)
		<-time.After(time.Second) // virtual
		if server.Unwatch() {
			t.Fatal("leave was called")
		}
		if _, err := server.Read(make([]byte, 1)); !isTimeout(err) || time.Since(start) != 2*time.Second {
			t.Errorf("Read: %v after %v, want a timeout after 2s", err, time.Since(start))
		}
		// A deadline that passes, or is set, while watched is no departure either.
		server.Watch(leave)
		must(t, server.SetDeadline(time.Now().Add(time.Second)))
		<-time.After(2 * time.Second) // virtual
		if !readsAhead(server) {
			t.Error("a read deadline ended the watching")
		}
		if server.Unwatch() {
			t.Fatal("a read deadline was taken for a departure")
		}
		if _, err := server.Read(make([]byte, 1)); !isTimeout(err) {
			t.Errorf("Read: %v, want a timeout", err)
		}
		must(t, server.SetReadDeadline(time.Time{}))
		server.Watch(leave)
		server.Unwatch()
		time.AfterFunc(time.Hour, func() { server.Close() })
		if _, err := server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("Read: %v, want EOF and no timeout", err)
		}
		notLeft(t, left)
	})
}

func TestReadWhileWatchedObeysItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := inMemory(t)
		leave, left := signal()
		server.Watch(leave)
		start := time.Now()
		must(t, server.SetReadDeadline(start.Add(time.Second)))
		if _, err := server.Read(make([]byte, 1)); !isTimeout(err) || time.Since(start) != time.Second {
			t.Errorf("Read: %v after %v, want a timeout after 1s", err, time.Since(start))
		}
		notLeft(t, left)
		client.Close()
		<-left
	})
}

func TestSpillIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := inPipe(t)
		leave, left := signal()
		server.Watch(leave)
		go func() {
			for {
				if _, err := client.Write([]byte(strings.Repeat("x", 1000))); err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		full := func() {
			t.Helper()
			if pending := server.ahead.pending(); pending != maxSpill || readsAhead(server) {
				t.Errorf("pending %d, running %v; want %d and false", pending, readsAhead(server), maxSpill)
			}
		}
		full()
		// Reading makes room, and the watching goes on.
		if n, err := io.ReadFull(server, make([]byte, maxSpill)); err != nil {
			t.Fatal(n, err)
		}
		synctest.Wait()
		full()
		client.Close()
		if _, err := io.Copy(io.Discard, server); err != nil && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Error(err)
		}
		<-left
	})
}

func TestNoGoroutineWithoutWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := inMemory(t)
		if readsAhead(server) {
			t.Error("reading ahead before Watch")
		}
		server.Watch(func() {})
		if !readsAhead(server) {
			t.Error("not reading ahead while watched")
		}
		synctest.Wait() // it has a buffer
		server.Unwatch()
		if readsAhead(server) {
			t.Error("reading ahead after Unwatch")
		}
		write(t, client, "x")
		read(t, server, "x")
		if server.ahead.spill != nil {
			t.Error("an idle connection holds a buffer")
		}
		server.Watch(func() {})
		server.Close()
		synctest.Wait()
		if readsAhead(server) {
			t.Error("reading ahead after Close")
		}
	})
}

func TestUnwatchFromLeave(t *testing.T) {
	onEach(t, transports, func(t *testing.T, server *Conn, client net.Conn) {
		said := make(chan bool, 1)
		server.Watch(func() { said <- server.Unwatch() })
		client.Close()
		if !arrives(t, "leave", said) {
			t.Error("Unwatch does not say that leave was called")
		}
	})
}

// noDeadlines cannot be interrupted, so it must not be read ahead.
type noDeadlines struct{ net.Conn }

func (noDeadlines) SetReadDeadline(time.Time) error { return os.ErrNoDeadline }

func TestConnectionWithoutDeadlinesIsNotReadAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := net.Pipe()
		server := newConn(noDeadlines{s}, newWatcher(t))
		defer server.Close()
		defer client.Close()
		if server.Watch(func() {}) {
			t.Error("gone")
		}
		synctest.Wait()
		server.Unwatch() // would wait for ever
	})
}

// TestWatchDuringARead: two readers at once would take each other's bytes.
func TestWatchDuringARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := inPipe(t)
		got := make(chan string, 1)
		go func() {
			buf := make([]byte, 16)
			n, _ := server.Read(buf)
			got <- string(buf[:n])
		}()
		synctest.Wait()
		leave, left := signal()
		server.Watch(leave)
		synctest.Wait()
		if readsAhead(server) {
			t.Error("two goroutines read")
		}
		write(t, client, "bytes")
		if s := <-got; s != "bytes" {
			t.Errorf("Read got %q", s)
		}
		client.Close()
		<-left
	})
}

// TestPipeClosedBeforeWatch: such a pipe refuses deadlines, which is no reason not to
// read it.
func TestPipeClosedBeforeWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := inPipe(t)
		client.Close()
		leave, left := signal()
		if !server.Watch(leave) {
			<-left
		}
	})
}
