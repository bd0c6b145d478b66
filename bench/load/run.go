package load

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// run is one run of a plan. start, end and what is above them are set before the links begin.
type run struct {
	plan       Plan
	script     *script
	request    request
	bufSize    int
	held       chan struct{} // Hold: a stream has begun
	start, end int64         // the window
	hard       context.Context
	left       atomic.Int64 // requests that may still begin
	missed     int64        // arrivals that no connection took; written before open returns

	links []*link
	wg    sync.WaitGroup
}

func newRun(p Plan) (*run, error) {
	if err := p.complete(); err != nil {
		return nil, err
	}
	r := &run{plan: p, script: scriptFor(p.Dialect, p.Tokens), request: newRequest(&p), bufSize: 32 << 10}
	r.left.Store(cmp.Or(int64(p.Requests), math.MaxInt64))
	return r, nil
}

func (r *run) inWindow(t int64) bool { return t >= r.start && t < r.end }

// Run puts the plan's load on its address and returns when the load has ended, ctx has ended, or the plan's time is over.
func Run(ctx context.Context, p Plan) (Result, error) {
	r, err := newRun(p)
	if err != nil {
		return Result{}, err
	}
	p = r.plan
	now := Now()
	r.start = now + int64(p.Warm)
	r.end = r.start + int64(p.Window)
	soft, cancelSoft := context.WithDeadline(ctx, time.Now().Add(p.Warm+p.Window))
	defer cancelSoft()
	hard, cancelHard := context.WithDeadline(ctx, time.Now().Add(p.Warm+p.Window+p.Drain))
	defer cancelHard()
	r.hard = hard

	usage := make(chan usageOrError, 1)
	go func() { usage <- r.watch(soft) }()
	if p.Rate > 0 {
		err = r.open(soft)
	} else {
		r.closed(soft)
	}
	r.wg.Wait()
	cancelSoft()
	u := <-usage
	res := r.merge()
	res.Usage = u.usage
	// A run that ended before its window is measured up to its end.
	res.WindowSeconds = max(0, time.Duration(min(Now(), r.end)-r.start).Seconds())
	if err == nil {
		err = u.err
	}
	return res, err
}

type usageOrError struct {
	usage *Usage
	err   error
}

// watch reads the process's usage over the window.
func (r *run) watch(ctx context.Context) usageOrError {
	if r.plan.PID == 0 {
		return usageOrError{}
	}
	t := time.NewTimer(time.Duration(r.start - Now()))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	before, err := CPUTime(r.plan.PID)
	if err != nil {
		return usageOrError{err: err}
	}
	<-ctx.Done()
	after, err := CPUTime(r.plan.PID)
	if err != nil {
		return usageOrError{err: err}
	}
	rss, err := RSS(r.plan.PID)
	if err != nil {
		return usageOrError{err: err}
	}
	return usageOrError{usage: &Usage{CPU: after - before, RSSKB: rss}}
}

// closed keeps every connection busy with one request after the other.
func (r *run) closed(ctx context.Context) {
	for i := range r.plan.Conns {
		l := newLink(r, i)
		r.links = append(r.links, l)
		wait := r.plan.Ramp * time.Duration(i) / time.Duration(r.plan.Conns)
		r.wg.Go(func() {
			defer l.drop()
			if !pauseFor(ctx, wait) {
				return
			}
			for ctx.Err() == nil && Now() < r.end && r.left.Add(-1) >= 0 {
				failed := l.tally.Errors
				l.exchange(Now())
				if l.tally.Errors > failed && !pauseFor(ctx, 10*time.Millisecond) { // an address that refuses is not hammered
					return
				}
			}
		})
	}
}

func pauseFor(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// open begins requests at random moments, whether or not earlier ones have been answered. A request that finds no connection free
// waits, and that wait counts: its latencies run from the moment it was due.
func (r *run) open(ctx context.Context) error {
	a, err := newAlarm()
	if err != nil {
		return err
	}
	rung := make(chan struct{})
	silence := context.AfterFunc(ctx, func() { a.ring(); close(rung) })
	done := make(chan struct{})
	go func() { // its thread is bound to it and ends with it
		defer close(done)
		a.own()
		r.arrivals(ctx, a)
	}()
	<-done
	if !silence() {
		<-rung
	}
	a.close()
	return nil
}

func (r *run) arrivals(ctx context.Context, a *alarm) {
	jobs := make(chan int64)
	defer close(jobs)
	rng := rand.New(rand.NewPCG(7, 7))
	due := float64(Now())
	for ctx.Err() == nil && r.left.Add(-1) >= 0 {
		due += rng.ExpFloat64() / r.plan.Rate * 1e9
		for Now() < int64(due) && ctx.Err() == nil {
			a.wait(int64(due))
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case jobs <- int64(due):
			continue
		default:
		}
		if len(r.links) < r.plan.Conns {
			r.worker(jobs, int64(due))
			continue
		}
		select {
		case jobs <- int64(due):
		case <-r.hard.Done():
			r.missed++
			return
		}
	}
}

func (r *run) worker(jobs <-chan int64, first int64) {
	l := newLink(r, len(r.links))
	r.links = append(r.links, l)
	r.wg.Go(func() {
		defer l.drop()
		l.exchange(first)
		for sched := range jobs {
			l.exchange(sched)
		}
	})
}

// merge adds up the links after they have ended.
func (r *run) merge() Result {
	var sum tally
	for _, l := range r.links {
		t := &l.tally
		for _, f := range [][2]*int64{
			{&sum.Requests, &t.Requests}, {&sum.Completed, &t.Completed}, {&sum.Abandoned, &t.Abandoned}, {&sum.Cancelled, &t.Cancelled},
			{&sum.Redialled, &t.Redialled}, {&sum.Errors, &t.Errors}, {&sum.Changed, &t.Changed}, {&sum.Tokens, &t.Tokens},
			{&sum.CrossTalk, &t.CrossTalk}, {&sum.NoEnd, &t.NoEnd}, {&sum.WindowCompleted, &t.WindowCompleted}, {&sum.WindowTokens, &t.WindowTokens},
		} {
			*f[0] += *f[1]
		}
		for k, n := range t.Faults {
			if sum.Faults == nil {
				sum.Faults = map[string]int64{}
			}
			sum.Faults[k] += n
		}
		sum.Cancels = append(sum.Cancels, t.Cancels...)
		sum.ttft = append(sum.ttft, t.ttft...)
		sum.delay = append(sum.delay, t.delay...)
		sum.total = append(sum.total, t.total...)
		sum.lag = append(sum.lag, t.lag...)
	}
	res := sum.Result
	res.Missed = r.missed
	res.AddedTTFT, res.TokenDelay = describe(sum.ttft), describe(sum.delay)
	res.Total, res.SendLag = describe(sum.total), describe(sum.lag)
	return res
}
