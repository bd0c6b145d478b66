package fallback

import (
	"testing"
	"time"
)

// Choosing among many deployments asks every one of them.
func TestAskingWhetherAGateIsBlockedAllocatesNothing(t *testing.T) {
	ready, open := NewGate(usual), NewGate(usual)
	opened(t, open)
	now := time.Now()
	equal(t, "allocations", testing.AllocsPerRun(1000, func() {
		ready.Blocked()
		open.Blocked()
		open.BlockedAt(now)
		open.BlockedUntil()
	}), 0)
}

// One closure of gobreaker is what a request costs.
func TestAnAnsweredRequestAllocatesOnce(t *testing.T) {
	g := NewGate(usual)
	equal(t, "allocations", testing.AllocsPerRun(1000, func() {
		p, _ := g.Allow()
		p.Content()
		p.End(answered)
	}), 1)
}

func BenchmarkBlocked(b *testing.B) {
	ready, open := NewGate(usual), NewGate(usual)
	opened(b, open)
	now := time.Now()
	b.Run("ready", func(b *testing.B) {
		for b.Loop() {
			ready.Blocked()
		}
	})
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			open.Blocked()
		}
	})
	b.Run("open, the time is known", func(b *testing.B) {
		for b.Loop() {
			open.BlockedAt(now)
		}
	})
}

func BenchmarkRequest(b *testing.B) {
	g := NewGate(usual)
	b.ReportAllocs()
	for b.Loop() {
		p, _ := g.Allow()
		p.Content()
		p.End(answered)
	}
}

func BenchmarkRequestParallel(b *testing.B) {
	g := NewGate(usual)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p, _ := g.Allow()
			p.Content()
			p.End(answered)
		}
	})
}
