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
	synctest.Test(t, func(t *testing.T) {
		c, s := newVirtualSocket(t)
		c.SetStall(limit)
		start := time.Now()
		n, err := c.Write([]byte("x"))
		if n != 0 || err != ErrStalled || time.Since(start) != limit {
			t.Errorf("Write = %d, %v after %v; want 0, ErrStalled after %v", n, err, time.Since(start), limit)
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
	synctest.Test(t, func(t *testing.T) {
		c, s := newVirtualSocket(t)
		c.SetStall(limit)
		start := time.Now()
		freed := make(chan int, 1)
		go func() {
			<-time.After(limit - time.Second)
			freed <- s.drain()
			s.tell()
		}()
		n, err := c.Write(make([]byte, 1<<20))
		if err != ErrStalled || n == 0 || n > 1<<19 {
			t.Errorf("Write = %d, %v; want a part and ErrStalled", n, err)
		}
		if want := 2*limit - time.Second; time.Since(start) != want || c.Blocked() != want {
			t.Errorf("after %v, blocked %v; want both %v", time.Since(start), c.Blocked(), want)
		}
		if <-freed == 0 {
			t.Error("the socket was not full")
		}
	})
}

func TestRoomThatNobodyAnnouncedIsFoundAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newVirtualSocket(t)
		c.SetStall(limit)
		start := time.Now()
		go func() {
			<-time.After(time.Second)
			s.drain() // without tell: the kernel wakes a writer only when much is free
		}()
		if n, err := c.Write([]byte("answer")); n != 6 || err != nil || time.Since(start) != limit {
			t.Errorf("Write = %d, %v after %v; want 6, nil after %v", n, err, time.Since(start), limit)
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
	synctest.Test(t, func(t *testing.T) {
		c, s := newVirtualSocket(t)
		c.SetStall(limit)
		start := time.Now()
		go func() {
			<-time.After(time.Second)
			s.drain()
			<-time.After(limit)
			s.drain()
			s.tell()
		}()
		n, err := c.Write(make([]byte, 1<<20))
		if want := 2*limit + time.Second; n == 0 || err != ErrStalled || time.Since(start) != want {
			t.Errorf("Write = %d, %v after %v; want a part and ErrStalled after %v", n, err, time.Since(start), want)
		}
	})
}

func TestWakeUpWithoutRoomDoesNotRestartTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newVirtualSocket(t)
		c.SetStall(limit)
		start := time.Now()
		go func() {
			<-time.After(limit / 2)
			s.tell()
		}()
		if _, err := c.Write([]byte("x")); err != ErrStalled || time.Since(start) != limit {
			t.Errorf("Write: %v after %v, want ErrStalled after %v", err, time.Since(start), limit)
		}
	})
}

func TestStallClockRunsOnlyWhileAWriteWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newVirtualSocket(t)
		c.SetStall(limit)
		<-time.After(10 * limit) // a silent upstream is not the client's fault
		start := time.Now()
		go func() {
			<-time.After(limit / 2)
			s.drain()
			s.tell()
		}()
		if _, err := c.Write([]byte("x")); err != nil || time.Since(start) != limit/2 {
			t.Errorf("Write: %v after %v", err, time.Since(start))
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
	synctest.Test(t, func(t *testing.T) {
		c, s := newVirtualSocket(t)
		for _, d := range []time.Duration{0, -time.Second} {
			s.fill(t)
			c.SetStall(d)
			start := time.Now()
			go func() {
				<-time.After(1000 * time.Hour)
				s.drain()
				s.tell()
			}()
			if _, err := c.Write([]byte("x")); err != nil || time.Since(start) != 1000*time.Hour {
				t.Errorf("limit %v: Write: %v after %v", d, err, time.Since(start))
			}
		}
	})
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
		s.drain()
		s.tell()
		must(t, <-wrote)
		if c.Blocked() != 2*time.Second {
			t.Errorf("blocked %v, want 2s", c.Blocked())
		}
	})
}

func TestOwnersWriteDeadline(t *testing.T) {
	for name, d := range map[string]time.Duration{"alone": 0, "before the stall limit": limit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := newVirtualSocket(t)
				c.SetStall(d)
				start := time.Now()
				must(t, c.SetWriteDeadline(start.Add(limit/2)))
				_, err := c.Write([]byte("x"))
				var ne net.Error
				if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &ne) || !ne.Timeout() {
					t.Errorf("Write: %v, want a timeout", err)
				}
				if time.Since(start) != limit/2 {
					t.Errorf("after %v, want %v", time.Since(start), limit/2)
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
	synctest.Test(t, func(t *testing.T) {
		c, s := newVirtualSocket(t)
		c.SetStall(limit)
		start := time.Now()
		must(t, c.SetWriteDeadline(start.Add(2*limit)))
		if _, err := c.Write([]byte("x")); err != ErrStalled || time.Since(start) != limit {
			t.Errorf("Write: %v after %v", err, time.Since(start))
		}
		if !s.armed() {
			t.Error("the owner's deadline was taken away")
		}
	})
}

func TestCutEndsASocketsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newVirtualSocket(t)
		c.SetStall(limit)
		start := time.Now()
		time.AfterFunc(time.Second, c.CutWrites)
		if n, err := c.Write([]byte("x")); n != 0 || err != ErrCut || time.Since(start) != time.Second {
			t.Errorf("Write = %d, %v after %v; want 0, ErrCut after 1s", n, err, time.Since(start))
		}
		s.drain()
		if _, err := c.Write([]byte("x")); err != ErrCut {
			t.Errorf("later Write: %v, want ErrCut", err)
		}
		c.ResumeWrites()
		if _, err := c.Write([]byte("x")); err != nil || s.armed() {
			t.Errorf("Write after ResumeWrites: %v, deadline armed %v", err, s.armed())
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
