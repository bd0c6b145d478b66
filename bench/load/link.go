package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ids are unique among all runs that may meet at one upstream; ten digits.
var ids atomic.Int64

func init() { ids.Store(Now() / 1e3 % 8_000_000_000) }

// link is one connection of a run and its goroutine's state.
type link struct {
	run     *run
	answers answerReader
	stop    func() bool // takes the connection off the run's end
	slow    bool
	rng     *rand.Rand
	check   check
	tally   tally

	sched, sent int64 // of the request under way
	cancel      *cancel
}

// tally is what one link counted. No other goroutine reads it before the link's has ended.
type tally struct {
	Result
	ttft, delay, total, lag []int64
}

// cancel gives up one request. The timer's goroutine and the link's meet here.
type cancel struct {
	mu    sync.Mutex
	over  bool // the answer has ended, or the request was given up
	timer *time.Timer
	at    int64
	token int64         // after this token; -1: at once
	wait  time.Duration // and so much more
}

func newLink(r *run, n int) *link {
	l := &link{run: r, rng: rand.New(rand.NewPCG(uint64(n), 1))}
	l.slow = r.plan.SlowFrac > 0 && l.rng.Float64() < r.plan.SlowFrac
	l.check.seen = l.token
	return l
}

// exchange sends one request and reads its answer.
func (l *link) exchange(sched int64) {
	id := ids.Add(1)
	l.sched = sched
	l.tally.Requests++
	err := l.attempt(id)
	for errors.Is(err, errStale) {
		l.tally.Redialled++
		err = l.attempt(id)
	}
	if err == nil {
		return
	}
	l.drop()
	switch {
	case l.cancel != nil && l.cancel.at > 0:
		l.tally.Cancelled++
		l.tally.Cancels = append(l.tally.Cancels, Cancel{id, l.cancel.at})
	case l.run.hard.Err() != nil:
		l.tally.Abandoned++
	default:
		l.tally.Errors++
		l.fault(err.Error())
	}
}

// errStale is the end of an idle connection that crossed with the request.
var errStale = errors.New("the idle connection had been closed")

func (l *link) attempt(id int64) error {
	reused := l.answers.nc != nil
	if err := l.connect(); err != nil {
		return err
	}
	l.check.start(l.run.script, id, l.run.plan.Whole)
	l.sent = Now()
	l.armCancel()
	defer l.disarm()
	var digits [idDigits]byte
	putDigits(digits[:], id)
	req := net.Buffers{l.run.request.before, digits[:], l.run.request.after}
	if _, err := req.WriteTo(l.answers.nc); err != nil {
		return l.stale(reused, err)
	}
	head, fresh, err := l.answers.head()
	if err != nil {
		if fresh {
			return l.stale(reused, err)
		}
		return err
	}
	if head.status != 200 {
		var text []byte
		err = l.answers.body(head, func(b []byte) { text = append(text, b[:min(len(b), 200-min(len(text), 200))]...) })
		return errors.Join(fmt.Errorf("status %d: %s", head.status, text), err)
	}
	err = l.answers.body(head, l.check.feed)
	if !l.disarm() {
		return errGivenUp
	}
	if err != nil && l.run.hard.Err() != nil {
		return err
	}
	l.judge(err)
	if err != nil || head.close {
		l.drop()
	}
	return nil
}

var errGivenUp = errors.New("the client gave the request up")

func (l *link) stale(reused bool, err error) error {
	ended := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	if reused && ended && l.disarm() && l.run.hard.Err() == nil {
		l.drop()
		return errStale
	}
	return err
}

// judge counts an answer that has ended; err says how its transfer failed.
func (l *link) judge(err error) {
	t, now := &l.tally, l.answers.now
	t.Completed++
	if l.run.inWindow(now) {
		t.WindowCompleted++
	}
	if l.run.inWindow(l.sched) {
		t.total = append(t.total, now-l.sched)
		t.lag = append(t.lag, l.sent-l.sched)
	}
	v := l.check.finish(err != nil)
	for _, f := range []struct {
		is   bool
		n    *int64
		what string
	}{
		{v.changed, &t.Changed, "bytes differ from the upstream's"},
		{v.tokens, &t.Tokens, "tokens missing, repeated or out of order"},
		{v.crossTalk, &t.CrossTalk, "token of another request"},
		{v.noEnd, &t.NoEnd, "no terminal event"},
	} {
		if f.is {
			*f.n++
			l.fault(f.what)
		}
	}
	if err != nil {
		t.Errors++
		l.fault(err.Error())
	}
}

func (l *link) fault(what string) {
	if l.tally.Faults == nil {
		l.tally.Faults = map[string]int64{}
	}
	if len(l.tally.Faults) < 20 || l.tally.Faults[what] > 0 {
		l.tally.Faults[what]++
	}
}

// token is called by the check for every token in its place.
func (l *link) token(index int64, s slots) {
	now := l.answers.now
	if l.run.inWindow(now) {
		l.tally.WindowTokens++
		if !l.slow && !l.run.plan.Whole {
			l.tally.delay = append(l.tally.delay, now-s.stamp)
		}
	}
	if index == 0 && l.run.inWindow(l.sched) {
		l.tally.ttft = append(l.tally.ttft, now-l.sched-(s.stamp-s.received))
	}
	if l.cancel != nil && l.cancel.token == index {
		l.cancel.start(l.answers.nc)
	}
	if l.run.held != nil && index == 0 {
		l.run.held <- struct{}{}
	}
}

func (l *link) connect() error {
	if l.answers.nc != nil {
		return nil
	}
	nc, err := dial(l.run.plan.Addr)
	if err != nil {
		return err
	}
	if l.slow {
		nc.(*net.TCPConn).SetReadBuffer(8 << 10)
		l.answers.pause = l.crawl
	}
	if l.answers.buf == nil {
		l.answers.buf = make([]byte, l.run.bufSize)
	}
	l.answers = answerReader{nc: nc, buf: l.answers.buf, pause: l.answers.pause}
	l.stop = context.AfterFunc(l.run.hard, func() { nc.Close() })
	return nil
}

// crawl holds a slow reader back to its rate.
func (l *link) crawl() int {
	const every = 100 * time.Millisecond
	select {
	case <-time.After(every):
	case <-l.run.hard.Done():
	}
	return max(1, l.run.plan.SlowRate/int(time.Second/every))
}

func (l *link) drop() {
	if l.answers.nc != nil {
		l.stop()
		l.answers.nc.Close()
		l.answers.nc = nil
	}
}

func (l *link) armCancel() {
	l.cancel = nil
	p := &l.run.plan
	if p.CancelFrac == 0 || l.rng.Float64() >= p.CancelFrac {
		return
	}
	l.cancel = &cancel{token: -1, wait: time.Duration((0.2 + 0.4*l.rng.Float64()) * float64(p.Prefill))}
	if p.CancelPhase == "prefill" {
		l.cancel.start(l.answers.nc)
		return
	}
	l.cancel.token = l.rng.Int64N(int64(p.Tokens) - 2)
	l.cancel.wait = time.Duration((0.1 + 0.8*l.rng.Float64()) * float64(p.Gap))
}

func (c *cancel) start(nc net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(c.wait, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.over {
			c.over = true
			c.at = Now()
			nc.Close()
		}
	})
}

// disarm ends the cancel; false if it had already struck.
func (l *link) disarm() bool {
	c := l.cancel
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.timer != nil {
		c.timer.Stop()
	}
	return c.at == 0
}
