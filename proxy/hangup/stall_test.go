package hangup

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// limit is the stall limit of the tests in virtual time.
const limit = 30 * time.Second

// readPart reads up to n bytes at the other end after a pause.
func readPart(t *testing.T, c net.Conn, pause time.Duration, n int) {
	<-time.After(pause)
	if _, err := io.ReadFull(c, make([]byte, n)); err != nil {
		t.Error(err)
	}
}

// timedWrite writes and says how long that took.
func timedWrite(c net.Conn, p []byte) (n int, took time.Duration, err error) {
	start := time.Now()
	n, err = c.Write(p)
	return n, time.Since(start), err
}

func TestPipeStallsExactlyAfterTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := inPipe(t)
		c.SetStall(limit)
		n, took, err := timedWrite(c, []byte("x"))
		if n != 0 || err != ErrStalled || took != limit || c.Blocked() != limit {
			t.Errorf("Write = %d, %v after %v, blocked %v; want 0, ErrStalled after %v", n, err, took, c.Blocked(), limit)
		}
	})
}

func TestAcceptedPieceRestartsThePipesStallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, client := inPipe(t)
		c.SetStall(limit)
		go readPart(t, client, limit-time.Second, piece)
		n, took, err := timedWrite(c, make([]byte, 2*piece))
		if n != piece || err != ErrStalled {
			t.Errorf("Write = %d, %v; want %d, ErrStalled", n, err, piece)
		}
		if want := 2*limit - time.Second; took != want {
			t.Errorf("after %v, want %v", took, want)
		}
	})
}

func TestAcceptedPartOfAPieceRestartsTheClockAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, client := inPipe(t)
		c.SetStall(limit)
		go readPart(t, client, time.Second, 10)
		n, took, err := timedWrite(c, make([]byte, 20))
		if n != 10 || err != ErrStalled || took != 2*limit {
			t.Errorf("Write = %d, %v after %v; want 10, ErrStalled after %v", n, err, took, 2*limit)
		}
	})
}

func TestBufferedPipeStallsOnceItIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, client := inMemory(t)
		c.SetStall(limit)
		start := time.Now()
		sent := 0
		for {
			n, err := c.Write([]byte("event"))
			sent += n
			if err != nil {
				if err != ErrStalled || sent == 0 {
					t.Errorf("after %d bytes: %v, want ErrStalled", sent, err)
				}
				break
			}
		}
		if time.Since(start) != limit {
			t.Errorf("after %v, want %v", time.Since(start), limit)
		}
		if _, err := io.ReadFull(client, make([]byte, sent)); err != nil {
			t.Errorf("what Write counted did not arrive: %v", err)
		}
		if _, err := c.Write([]byte("event")); err != nil {
			t.Errorf("Write with room again: %v", err)
		}
	})
}

func TestSlowReaderOfAPipeIsNotStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, client := inPipe(t)
		c.SetStall(limit)
		go func() {
			for range 20 {
				readPart(t, client, limit-time.Second, 1000)
			}
		}()
		for range 20 {
			if _, err := c.Write(make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
		}
		if want := 20 * (limit - time.Second); c.Blocked() != want {
			t.Errorf("blocked %v, want %v", c.Blocked(), want)
		}
	})
}

func TestCutEndsAPipesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := inPipe(t)
		c.SetStall(limit)
		time.AfterFunc(time.Second, c.CutWrites)
		if _, took, err := timedWrite(c, []byte("x")); err != ErrCut || took != time.Second {
			t.Errorf("Write: %v after %v, want ErrCut after 1s", err, took)
		}
		if _, err := c.Write([]byte("x")); err != ErrCut {
			t.Errorf("later Write: %v, want ErrCut", err)
		}
	})
}

func TestOwnersWriteDeadlineOnAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := inPipe(t)
		c.SetStall(limit)
		must(t, c.SetDeadline(time.Now().Add(time.Second)))
		if _, took, err := timedWrite(c, []byte("x")); !isTimeout(err) || took != time.Second {
			t.Errorf("Write: %v after %v, want a timeout after 1s", err, took)
		}
	})
}

func TestStallBelowTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, client := inPipe(t)
		s, _ := handshake(t, c, client)
		c.SetStall(limit)
		if _, took, err := timedWrite(s, []byte("x")); !errors.Is(err, ErrStalled) || took != limit {
			t.Errorf("Write: %v after %v, want ErrStalled after %v", err, took, limit)
		}
	})
}
