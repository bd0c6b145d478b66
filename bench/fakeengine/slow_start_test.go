package fakeengine

import (
	"net/http"
	"testing"
	"time"
)

// gaps are the times between the tokens of the newest answer.
func gaps(e *Engine) (out []time.Duration) {
	l := e.Requests()
	stamps := l[len(l)-1].TokenStamps
	for i := 1; i < len(stamps); i++ {
		out = append(out, stamps[i].Sub(stamps[i-1]))
	}
	return out
}

// TestSlowStart: steps and prefill are Factor times as long at first, halfway in the middle, and as ever after it.
func TestSlowStart(t *testing.T) {
	o := timed()
	o.NoPrefixCache = true
	o.SlowStart = Slowness{For: time.Minute, Factor: 5}
	virtual(t, o, func(t *testing.T, e *Engine, c *http.Client) {
		ask := func(at time.Duration, began time.Time) (first, step time.Duration) {
			time.Sleep(at - time.Since(began))
			drain(t, send(t, c, t.Context(), prompt(1000, 3, "a")))
			l := e.Requests()
			return l[len(l)-1].FirstToken.Sub(l[len(l)-1].Arrived), gaps(e)[0]
		}
		began := time.Now()
		var firsts, steps []time.Duration
		factors := []float64{5, 3, 2, 1}
		for _, at := range []time.Duration{0, 30 * time.Second, 45 * time.Second, time.Minute} {
			first, step := ask(at, began)
			firsts, steps = append(firsts, first), append(steps, step)
		}
		for i, factor := range factors {
			near(t, "first token", firsts[i], firsts[3], factor)
			near(t, "step", steps[i], steps[3], factor)
		}
		if err := e.Restart(); err != nil {
			t.Fatal(err)
		}
		c.CloseIdleConnections()
		first, _ := ask(0, time.Now())
		near(t, "first token after a restart", first, firsts[3], 5)
	})
}

// near: a little less than factor times as long, for it falls on the way.
func near(t *testing.T, what string, got, plain time.Duration, factor float64) {
	t.Helper()
	if have := float64(got) / float64(plain); have > factor*1.001 || have < factor*0.98 {
		t.Errorf("%s: %v, %.3f times the plain %v; want %.1f times", what, got, have, plain, factor)
	}
}

// TestSlowStartByScript: from the request that it hits, for all.
func TestSlowStartByScript(t *testing.T) {
	virtual(t, timed(), func(t *testing.T, e *Engine, c *http.Client) {
		drain(t, send(t, c, t.Context(), prompt(40, 3, "a")))
		step := gaps(e)[0]
		e.Script(Fault{Kind: SlowStart, Delay: time.Minute, N: 3, Skip: 1, Times: 1})
		for i, factor := range []float64{1, 3, 2, 1} {
			drain(t, send(t, c, t.Context(), prompt(40, 3, "a")))
			near(t, "step", gaps(e)[0], step, factor)
			if i > 0 {
				time.Sleep(30 * time.Second)
			}
		}
	})
}
