package main

import (
	"context"
	"log/slog"
	"os"
	"syscall"
	"time"
)

// How long the end of the process may take where something blocks.
const (
	closeLimit = 500 * time.Millisecond // for connections that have nothing to say
	sayLimit   = 250 * time.Millisecond // for stderr to take a line
	drainGrace = 5 * time.Second        // for a drain, beyond drain.delay and drain.timeout
	quitLimit  = time.Second            // after a second signal
)

// untilStopped serves until SIGTERM or SIGINT, or until a listener fails, and
// drains then. SIGINT and a failure skip drain.delay, a second signal the rest.
// The error has been said.
func (a *app) untilStopped(signals <-chan os.Signal) error {
	for {
		select {
		case err := <-a.failed:
			a.say(slog.LevelError, "a listener failed", "err", err)
			a.drain("failure", 0, signals)
			return errNo
		case s := <-signals:
			delay := a.cfg.Drain.Delay
			switch s {
			case syscall.SIGHUP:
				a.say(slog.LevelWarn, "SIGHUP: the configuration is read at the start only; restart to apply a changed file")
				continue
			case syscall.SIGINT:
				delay = 0
			}
			if !a.drain(s.String(), delay, signals) {
				return errNo
			}
			return nil
		}
	}
}

// drain ends the process's work because of reason, and says whether all of it ended.
func (a *app) drain(reason string, delay time.Duration, signals <-chan os.Signal) bool {
	began := time.Now()
	a.say(slog.LevelInfo, "draining", "reason", reason, "delay", delay, "timeout", a.cfg.Drain.Timeout)
	ctx, hurry := context.WithCancel(context.Background())
	defer hurry()
	done := make(chan struct{})
	go func() { // ends with the drain, or with the process where that was given up
		defer close(done)
		a.stop(ctx, delay)
	}()
	ended := awaitEnd(done, signals, hurry, delay+a.cfg.Drain.Timeout+drainGrace)
	after := time.Since(began).Round(time.Millisecond)
	if ended {
		a.say(slog.LevelInfo, "stopped", "after", after)
	} else {
		a.say(slog.LevelError, "stopped before everything had ended", "after", after)
	}
	return ended
}

// awaitEnd waits for done and says whether it came. A signal hurries, and leaves
// quitLimit to end in; another one ends the wait. Nothing makes it wait longer
// than limit.
func awaitEnd(done <-chan struct{}, signals <-chan os.Signal, hurry func(), limit time.Duration) bool {
	giveUp := time.NewTimer(limit)
	defer giveUp.Stop()
	for hurried := false; ; {
		select {
		case <-done:
			return true
		case <-giveUp.C:
			return false
		case s := <-signals:
			if s == syscall.SIGHUP {
				continue
			}
			if hurried {
				return false
			}
			hurried = true
			hurry()
			giveUp.Reset(min(limit, quitLimit))
		}
	}
}

// say logs, but waits only sayLimit for stderr: what reads it may have stopped,
// and the process must be able to end all the same.
func (a *app) say(level slog.Level, message string, args ...any) {
	said := make(chan struct{})
	go func() { // until stderr takes the line, or to the end of the process
		defer close(said)
		a.log.Log(context.Background(), level, message, args...)
	}()
	limit := time.NewTimer(sayLimit)
	defer limit.Stop()
	select {
	case <-said:
	case <-limit.C:
	}
}

// stop drains and ends the process's work. delay is how long requests are
// still served while readiness says no. A cancelled ctx hurries.
func (a *app) stop(ctx context.Context, delay time.Duration) {
	if cut := a.gateway.Drain(ctx, delay, a.cfg.Drain.Timeout); cut > 0 {
		a.say(slog.LevelWarn, "answers were cut", "count", cut, "drain.timeout", a.cfg.Drain.Timeout)
	}
	a.close()
}

func (a *app) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	if a.data != nil {
		_ = a.server.ShutdownWithContext(ctx) // connections that never sent a request are left to the end of the process
		_ = a.data.Close()                    // where Serve had not begun
	}
	if a.admin != nil {
		_ = a.adminServer.Shutdown(ctx)
		_ = a.adminServer.Close() // ends event streams and what else is left
	}
	if a.watcher != nil {
		a.watcher.Close()
	}
	if a.gateway != nil {
		a.gateway.Close()
	}
	if a.requests != nil {
		a.requests.Close()
	}
}
