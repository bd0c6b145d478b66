package hangup

import (
	"errors"
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// moreThanFits is more than a socket takes while nobody reads.
const moreThanFits = 24 << 20

func TestClientThatNeverReadsStalls(t *testing.T) {
	onEach(t, sockets, func(t *testing.T, server *Conn, client net.Conn) {
		server.SetStall(10 * time.Millisecond)
		sent := 0
		for {
			n, err := server.Write(make([]byte, 100_000))
			sent += n
			if err == nil {
				continue
			}
			if err != ErrStalled {
				t.Fatalf("Write: %v, want ErrStalled", err)
			}
			break
		}
		if server.Blocked() == 0 {
			t.Error("no time was booked as blocked")
		}
		if server.Gone() {
			t.Error("a client that does not read is taken for gone")
		}
		server.Close()
		if got, err := io.Copy(io.Discard, client); err != nil || got != int64(sent) {
			t.Errorf("the client read %d bytes, %v; Write counted %d", got, err, sent)
		}
	})
}

// TestClientThatReadsSlowlyIsNotStalled reads nothing before a Write waits.
func TestClientThatReadsSlowlyIsNotStalled(t *testing.T) {
	onEach(t, sockets, func(t *testing.T, server *Conn, client net.Conn) {
		server.SetStall(patience)
		wrote := make(chan error, 1)
		go func() {
			_, err := server.Write(make([]byte, moreThanFits))
			wrote <- err
		}()
		eventually(t, "a full socket", func() bool { return waits(server) })
		if _, err := io.CopyN(io.Discard, client, moreThanFits); err != nil {
			t.Fatal(err)
		}
		if err := arrives(t, "end of Write", wrote); err != nil {
			t.Errorf("Write: %v", err)
		}
		if server.Blocked() == 0 {
			t.Error("no time was booked as blocked")
		}
	})
}

func TestWriteErrorsLookLikeTheNetsOwn(t *testing.T) {
	onEach(t, sockets, func(t *testing.T, server *Conn, client net.Conn) {
		client.Close()
		var err error
		for err == nil { // the first may be accepted before the reset is back
			_, err = server.Write([]byte("x"))
		}
		var op *net.OpError
		if !errors.As(err, &op) || op.Op != "write" || !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("Write to a closed client: %v", err)
		}
		server.Close()
		if _, err = server.Write([]byte("x")); !errors.Is(err, net.ErrClosed) || !errors.As(err, &op) || op.Op != "write" {
			t.Errorf("Write after Close: %v", err)
		}
	})
}

func TestCloseEndsAWaitingWrite(t *testing.T) {
	onEach(t, sockets, func(t *testing.T, server *Conn, _ net.Conn) {
		wrote := make(chan error, 1)
		go func() {
			_, err := server.Write(make([]byte, moreThanFits))
			wrote <- err
		}()
		eventually(t, "a full socket", func() bool { return waits(server) })
		server.Close()
		if err := arrives(t, "end of Write", wrote); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Write: %v, want closed", err)
		}
	})
}

// TestCutIsNeverLost cuts at every moment of a Write that would otherwise wait for ever,
// while the Write arms its own deadline.
func TestCutIsNeverLost(t *testing.T) {
	const rounds = 2000
	takeBack := func(c *Conn) { // so that one full socket does for all rounds
		c.out.mu.Lock()
		defer c.out.mu.Unlock()
		c.out.cut.Store(false)
		c.applyWriteDeadline()
	}
	onEach(t, sockets, func(t *testing.T, server *Conn, _ net.Conn) {
		fillSocket(t, server)
		server.SetStall(time.Hour)
		wrote := make(chan error, 1)
		taken := 0
		for i := range rounds {
			takeBack(server)
			go func() {
				_, err := server.Write([]byte("x"))
				wrote <- err
			}()
			for range i % 5 {
				runtime.Gosched()
			}
			server.CutWrites()
			switch err := arrives(t, "end of Write", wrote); err {
			case ErrCut:
			case nil: // the kernel had made room after all
				takeBack(server)
				fillSocket(t, server)
				server.SetStall(time.Hour)
				taken++
			default:
				t.Fatalf("Write: %v, want ErrCut", err)
			}
		}
		if taken > rounds/2 {
			t.Errorf("%d of %d Writes were not refused", taken, rounds)
		}
	})
}

// fillSocket makes the socket refuse the next byte.
func fillSocket(t *testing.T, c *Conn) {
	t.Helper()
	c.SetStall(time.Millisecond)
	for {
		if _, err := c.Write(make([]byte, 100_000)); err == ErrStalled {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	c.SetStall(0)
}
