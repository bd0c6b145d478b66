package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// runServe runs the gateway until a signal.
func runServe(args []string, stdout, stderr io.Writer) error {
	fs := newFlags("serve", "", stdout, stderr)
	config := fs.String("config", "gateway.yaml", "configuration `file`")
	listen := fs.String("listen", "", "data `address`, instead of the file's")
	adminListen := fs.String("admin-listen", "", "admin `address`, instead of the file's")
	var sets list
	fs.Var(&sets, "set", "override `path=value`, such as timeouts.idle=5s; may be repeated")
	if _, err := fs.parse(args, 0); err != nil {
		return err
	}
	if *listen != "" {
		sets = append(sets, "listen="+*listen)
	}
	if *adminListen != "" {
		sets = append(sets, "admin.listen="+*adminListen)
	}
	cfg, err := load(*config, sets, stderr)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	a, err := start(cfg, stderr)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "ready data=%s admin=%s\n", a.data.Addr(), a.admin.Addr())
	return a.untilStopped(signals)
}

// untilStopped serves until SIGTERM or SIGINT and drains then. SIGINT skips
// drain.delay, a second signal the rest.
func (a *app) untilStopped(signals <-chan os.Signal) error {
	for {
		select {
		case err := <-a.failed:
			a.close()
			return err
		case s := <-signals:
			if s == syscall.SIGHUP {
				a.log.Warn("SIGHUP: the configuration is read at the start only; restart to apply a changed file")
				continue
			}
			a.drain(s, signals)
			return nil
		}
	}
}

func (a *app) drain(s os.Signal, signals <-chan os.Signal) {
	delay := a.cfg.Drain.Delay
	if s == syscall.SIGINT {
		delay = 0
	}
	a.log.Info("draining", "signal", s.String(), "delay", delay, "timeout", a.cfg.Drain.Timeout)
	ctx, hurry := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // ends with the drain
		defer close(done)
		a.stop(ctx, delay)
	}()
	began := time.Now()
	for {
		select {
		case <-done:
			a.log.Info("stopped", "after", time.Since(began).Round(time.Millisecond))
			hurry()
			return
		case again := <-signals:
			if again != syscall.SIGHUP {
				hurry()
			}
		}
	}
}
