package load

import (
	"net"
	"testing"
	"time"
)

// TestLateAnswersCount: the open loop's latency runs from the moment a request was due, so that a stall is not hidden by the requests
// that could not be sent in it.
func TestLateAnswersCount(t *testing.T) {
	u := listenUpstream(t)
	const prefill = 20 * time.Millisecond
	r := mustRun(t, Plan{Addr: u.Addr(), Rate: 10_000, Conns: 1, Requests: 20, Prefill: prefill, Window: 5 * time.Second, Drain: time.Second})
	// All are due within some milliseconds; the last one is answered after 20 prefills.
	if r.Completed != 20 || r.Total.Max < 10*float64(prefill.Microseconds()) || r.AddedTTFT.Max < 9*float64(prefill.Microseconds()) {
		t.Errorf("%+v", r)
	}
}

// TestStuckReader: a client that does not read holds up no other stream, and gets its own whole stream when it reads again.
func TestStuckReader(t *testing.T) {
	u := listenUpstream(t)
	const tokens = 60_000 // far more than the sockets' buffers hold
	plan := Plan{Addr: u.Addr(), Tokens: tokens, Gap: time.Microsecond}
	if err := plan.complete(); err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial("tcp", u.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.(*net.TCPConn).SetReadBuffer(256 << 10)
	req := newRequest(&plan)
	nc.Write(append(append(req.before, "0000000077"...), req.after...))
	f := &flow{}
	eventually(t, "the stuck stream's first tokens", func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		for c := range u.conns {
			if c.flow != nil {
				f = c.flow
			}
		}
		return f.sent.Load() > 10
	})
	if r := mustRun(t, Plan{Addr: u.Addr(), Conns: 4, Tokens: 20, Gap: time.Millisecond, Requests: 8, Window: 5 * time.Second}); r.Completed != 8 || r.Wrong() != 0 {
		t.Errorf("beside a stuck reader: %+v", r)
	}
	if f.state.Load() != flowing {
		t.Fatal("the stuck stream has ended: the test shows nothing")
	}
	a := answerReader{nc: nc, buf: make([]byte, 64<<10)}
	head, _, err := a.head()
	if err != nil {
		t.Fatal(err)
	}
	var c check
	c.start(scriptFor("chat", tokens), 77, false)
	if err := a.body(head, c.feed); err != nil {
		t.Fatal(err)
	}
	if v := c.finish(false); v != (verdict{}) || c.done != tokens {
		t.Errorf("%+v after %d tokens", v, c.done)
	}
}

// TestSlowReaders: their tokens are checked and counted, their delays are left out.
func TestSlowReaders(t *testing.T) {
	u := listenUpstream(t)
	r := mustRun(t, Plan{Addr: u.Addr(), Conns: 2, SlowFrac: 1, SlowRate: 20_000, Tokens: 8, Gap: time.Millisecond, Requests: 2, Window: 10 * time.Second})
	if r.Completed != 2 || r.Wrong() != 0 || r.WindowTokens != 16 || r.TokenDelay.N != 0 {
		t.Errorf("%+v", r)
	}
}

func TestHold(t *testing.T) {
	u := listenUpstream(t)
	var levels []int
	err := Hold(t.Context(), Plan{Addr: relay(t, u.Addr()), Conns: 8}, []int{5, 30}, func(level int) error {
		levels = append(levels, level)
		if n := u.Stats().Requests; n != int64(level) {
			t.Errorf("level %d: %d requests at the upstream", level, n)
		}
		return nil
	})
	if err != nil || len(levels) != 2 || levels[1] != 30 {
		t.Errorf("%v, levels %v", err, levels)
	}
	eventually(t, "the upstream has no connection left", func() bool { return openConns(u) == 0 })
}

func openConns(u *Upstream) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.conns)
}
