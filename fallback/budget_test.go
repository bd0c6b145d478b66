package fallback

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func taken(b *Budget, ratio float64) (n int) {
	for b.Take(ratio) {
		n++
	}
	return n
}

func TestFurtherAttemptsAreAShareOfTheRequests(t *testing.T) {
	for _, c := range []struct {
		name     string
		requests int
		ratio    float64
		want     int
	}{
		{"none", 0, 0.2, 10},
		{"the floor", 49, 0.2, 10},
		{"the share", 100, 0.2, 20},
		{"a part of an attempt is none", 104, 0.2, 20},
		{"no share", 1000, 0, 10},
		{"more than one each", 50, 3, 150},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b Budget
			for range c.requests {
				b.Request()
			}
			equal(t, "taken", taken(&b, c.ratio), c.want)
		})
	}
}

func TestTheBudgetIsOfTheLastTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Budget
		for range 100 {
			b.Request()
		}
		equal(t, "at once", taken(&b, 0.2), 20)
		time.Sleep(5 * time.Second)
		for range 50 {
			b.Request()
		}
		equal(t, "150 requests, 20 taken", taken(&b, 0.2), 10)
		time.Sleep(5*time.Second - 1)
		equal(t, "just before the first are forgotten", taken(&b, 0.2), 0)
		time.Sleep(time.Nanosecond)
		equal(t, "50 requests, 10 taken", taken(&b, 0.2), 0)
		equal(t, "50 requests, 10 taken, more of them", taken(&b, 0.4), 10)
		time.Sleep(time.Hour)
		equal(t, "after a silence", taken(&b, 0.2), 10)
	})
}

// 1000 requests a second for a minute that all fail: the share holds in every window.
func TestAStormIsNotMultiplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Budget
		var last []time.Time
		requests := 0
		for range 60_000 {
			b.Request()
			requests++
			for b.Take(0.2) {
				last = append(last, time.Now())
			}
			for len(last) > 0 && time.Since(last[0]) >= 9900*time.Millisecond {
				last = last[1:]
			}
			if len(last) > 2000 {
				t.Fatalf("%d further attempts in 9.9 s", len(last))
			}
			time.Sleep(time.Millisecond)
		}
	})
}

func TestABudgetIsSharedExactly(t *testing.T) {
	var b Budget
	var n atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				b.Request()
			}
		})
	}
	all.Wait()
	for range 8 {
		all.Go(func() { n.Add(int64(taken(&b, 0.5))) })
	}
	all.Wait()
	equal(t, "taken", n.Load(), 400)
}
