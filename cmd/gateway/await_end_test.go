package main

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheEndIsNotAwaitedForEver(t *testing.T) {
	type sent struct {
		after time.Duration
		s     os.Signal
	}
	const never, limit = -1, time.Hour
	for _, c := range []struct {
		name  string
		sent  []sent
		done  time.Duration
		ended bool
		after time.Duration
	}{
		{"it ends", nil, time.Minute, true, time.Minute},
		{"it blocks", nil, never, false, limit},
		{"a second signal, it ends", []sent{{time.Minute, syscall.SIGTERM}}, time.Minute + quitLimit/2, true, time.Minute + quitLimit/2},
		{"a second signal, it blocks", []sent{{time.Minute, syscall.SIGINT}}, never, false, time.Minute + quitLimit},
		{"a third signal", []sent{{time.Minute, syscall.SIGINT}, {quitLimit / 4, syscall.SIGTERM}}, never, false, time.Minute + quitLimit/4},
		{"SIGHUP hurries nothing", []sent{{time.Second, syscall.SIGHUP}, {time.Second, syscall.SIGHUP}}, time.Minute, true, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				done, signals := make(chan struct{}), make(chan os.Signal, 4)
				if c.done != never {
					time.AfterFunc(c.done, func() { close(done) })
				}
				var at time.Duration
				hurries := 0
				for _, s := range c.sent {
					at += s.after
					time.AfterFunc(at, func() { signals <- s.s })
				}
				began := time.Now()
				equal(t, "ended", awaitEnd(done, signals, func() { hurries++ }, limit), c.ended)
				equal(t, "after", time.Since(began), c.after)
				want := 0
				if len(c.sent) > 0 && c.sent[0].s != syscall.SIGHUP {
					want = 1
				}
				equal(t, "hurries", hurries, want)
			})
		})
	}
}
