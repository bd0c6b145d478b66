package proxy

import (
	"context"
	"time"

	"tracegate/trace"
)

// Drain takes the gateway out of service in order. First readiness says no for
// delay, while requests are still served, so that balancers notice; then new
// requests get 503 and the running ones may end within timeout; what is left
// is told in its dialect that the answer is cut, and its upstream request is
// aborted. A cancelled ctx skips what is left of the waiting. It returns how
// many answers were cut.
func (g *Gateway) Drain(ctx context.Context, delay, timeout time.Duration) (cut int) {
	g.mode.Store(unready)
	wait(ctx, delay)
	g.mode.Store(refusing)
	deadline, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if g.idle(deadline) {
		return 0
	}
	g.book.EachRunning(func(t *trace.Timeline) {
		if t.Abort(trace.AbortDrain) {
			cut++
		}
	})
	last, cancelLast := context.WithTimeout(context.Background(), 2*farewell)
	defer cancelLast()
	g.idle(last)
	return cut
}

// idle waits until no exchange is left; false when ctx ended first.
func (g *Gateway) idle(ctx context.Context) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for g.streams.Load() > 0 {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
