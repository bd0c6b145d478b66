//go:build unix

package hangup

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestSocketStallsExactlyAfterTheLimit(t *testing.T) {
	onFullSocket(t, func(t *testing.T, c *Conn, s *virtualSocket) {
		n, took, err := timedWrite(c, []byte("x"))
		if n != 0 || err != ErrStalled || took != limit {
			t.Errorf("Write = %d, %v after %v; want 0, ErrStalled after %v", n, err, took, limit)
		}
		if c.Blocked() != limit {
			t.Errorf("blocked %v, want %v", c.Blocked(), limit)
		}
		if s.armed() {
			t.Error("a deadline is left behind")
		}
	})
}

func TestAcceptanceRestartsTheSocketsStallClock(t *testing.T) {
	onFullSocket(t, func(t *testing.T, c *Conn, s *virtualSocket) {
		freed := make(chan int, 1)
		time.AfterFunc(limit-time.Second, func() {
			freed <- s.drain()
			s.tell()
		})
		n, took, err := timedWrite(c, make([]byte, 1<<20))
		if err != ErrStalled || n == 0 || n > 1<<19 {
			t.Errorf("Write = %d, %v; want a part and ErrStalled", n, err)
		}
		if want := 2*limit - time.Second; took != want || c.Blocked() != want {
			t.Errorf("after %v, blocked %v; want both %v", took, c.Blocked(), want)
		}
		if <-freed == 0 {
			t.Error("the socket was not full")
		}
	})
}

func TestRoomThatNobodyAnnouncedIsFoundAtTheLimit(t *testing.T) {
	onFullSocket(t, func(t *testing.T, c *Conn, s *virtualSocket) {
		// Without tell: the kernel wakes a writer only when much is free.
		time.AfterFunc(time.Second, func() { s.drain() })
		if n, took, err := timedWrite(c, []byte("answer")); n != 6 || err != nil || took != limit {
			t.Errorf("Write = %d, %v after %v; want 6, nil after %v", n, err, took, limit)
		}
		if got := s.drain(); got != 6 {
			t.Errorf("the client got %d bytes", got)
		}
		if s.armed() {
			t.Error("a deadline is left behind")
		}
	})
}

func TestPartTakenByTheFinalAttemptRestartsTheClock(t *testing.T) {
	onFullSocket(t, func(t *testing.T, c *Conn, s *virtualSocket) {
		time.AfterFunc(time.Second, func() { s.drain() })
		time.AfterFunc(time.Second+limit, s.drainAndTell)
		n, took, err := timedWrite(c, make([]byte, 1<<20))
		if want := 2*limit + time.Second; n == 0 || err != ErrStalled || took != want {
			t.Errorf("Write = %d, %v after %v; want a part and ErrStalled after %v", n, err, took, want)
		}
	})
}

func TestWakeUpWithoutRoomDoesNotRestartTheClock(t *testing.T) {
	onFullSocket(t, func(t *testing.T, c *Conn, s *virtualSocket) {
		time.AfterFunc(limit/2, s.tell)
		if _, took, err := timedWrite(c, []byte("x")); err != ErrStalled || took != limit {
			t.Errorf("Write: %v after %v, want ErrStalled after %v", err, took, limit)
		}
	})
}

func TestStallClockRunsOnlyWhileAWriteWaits(t *testing.T) {
	onFullSocket(t, func(t *testing.T, c *Conn, s *virtualSocket) {
		<-time.After(10 * limit) // a silent upstream is not the client's fault
		time.AfterFunc(limit/2, s.drainAndTell)
		if _, took, err := timedWrite(c, []byte("x")); err != nil || took != limit/2 {
			t.Errorf("Write: %v after %v", err, took)
		}
		if s.armed() {
			t.Error("a deadline is left behind")
		}
		c.ResetBlocked()
		if c.Blocked() != 0 {
			t.Errorf("blocked %v after reset", c.Blocked())
		}
	})
}

func TestWithoutALimitAWriteWaitsForEver(t *testing.T) {
	for name, set := range map[string]func(*Conn){
		"none set": func(*Conn) {},
		"zero":     func(c *Conn) { c.SetStall(0) },
		"negative": func(c *Conn) { c.SetStall(-time.Second) },
		"taken back": func(c *Conn) {
			c.SetStall(limit)
			c.SetStall(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := newVirtualSocket(t)
				set(c)
				time.AfterFunc(1000*time.Hour, s.drainAndTell)
				if _, took, err := timedWrite(c, []byte("x")); err != nil || took != 1000*time.Hour {
					t.Errorf("Write: %v after %v", err, took)
				}
			})
		})
	}
}

func TestBlockedCountsThePresentWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newVirtualSocket(t)
		wrote := make(chan error, 1)
		go func() {
			_, err := c.Write([]byte("x"))
			wrote <- err
		}()
		<-time.After(3 * time.Second)
		if c.Blocked() != 3*time.Second {
			t.Errorf("blocked %v, want 3s", c.Blocked())
		}
		c.ResetBlocked()
		<-time.After(2 * time.Second)
		s.drainAndTell()
		must(t, <-wrote)
		if c.Blocked() != 2*time.Second {
			t.Errorf("blocked %v, want 2s", c.Blocked())
		}
	})
}

func TestOwnersWriteDeadline(t *testing.T) {
	for name, d := range map[string]time.Duration{"alone": 0, "before the stall limit": limit} {
		t.Run(name, func(t *testing.T) {
			onFullSocket(t, func(t *testing.T, c *Conn, s *virtualSocket) {
				c.SetStall(d)
				must(t, c.SetWriteDeadline(time.Now().Add(limit/2)))
				_, took, err := timedWrite(c, []byte("x"))
				var ne net.Error
				if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &ne) || !ne.Timeout() {
					t.Errorf("Write: %v, want a timeout", err)
				}
				if took != limit/2 {
					t.Errorf("after %v, want %v", took, limit/2)
				}
				if !s.armed() {
					t.Error("the owner's deadline was taken away")
				}
				s.drain()
				if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("later Write: %v, want a timeout", err)
				}
				must(t, c.SetWriteDeadline(time.Time{}))
				if _, err := c.Write([]byte("x")); err != nil {
					t.Errorf("Write without deadline: %v", err)
				}
			})
		})
	}
}

func TestStallLimitBeforeTheOwnersDeadline(t *testing.T) {
	onFullSocket(t, func(t *testing.T, c *Conn, s *virtualSocket) {
		must(t, c.SetWriteDeadline(time.Now().Add(2*limit)))
		if _, took, err := timedWrite(c, []byte("x")); err != ErrStalled || took != limit {
			t.Errorf("Write: %v after %v", err, took)
		}
		if !s.armed() {
			t.Error("the owner's deadline was taken away")
		}
	})
}

func TestCutEndsASocketsWait(t *testing.T) {
	onFullSocket(t, func(t *testing.T, c *Conn, s *virtualSocket) {
		time.AfterFunc(time.Second, c.CutWrites)
		if n, took, err := timedWrite(c, []byte("x")); n != 0 || err != ErrCut || took != time.Second {
			t.Errorf("Write = %d, %v after %v; want 0, ErrCut after 1s", n, err, took)
		}
		s.drain()
		if _, err := c.Write([]byte("x")); err != ErrCut {
			t.Errorf("later Write: %v, want ErrCut", err)
		}
	})
}

func TestAcceptedWriteSetsNoDeadline(t *testing.T) {
	c, s := newVirtualSocket(t)
	s.drain()
	c.SetStall(limit)
	if n, err := c.Write(make([]byte, 200)); n != 200 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := c.Write(nil); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if s.settings != 0 || c.Blocked() != 0 {
		t.Errorf("%d deadlines set, blocked %v; want none", s.settings, c.Blocked())
	}
}
