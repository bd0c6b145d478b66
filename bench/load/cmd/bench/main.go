// Command bench answers what the gateway costs, in one table: it starts a scripted upstream, then, each alone on one CPU, a naive
// fasthttp reverse proxy, nginx where it is installed, and the gateway, and puts the same loads on each of them.
//
// It owns the processes that it starts and ends them; they also end with it. Standard output is the table, standard error the
// progress. Exit code 0: measured and every answer right; 1: an answer was wrong or a line could not be measured; 2: wrong use.
//
//	bench [-gateway bin/gateway] [-quick] [-json FILE]   the table
//	bench load -addr 127.0.0.1:4000 ...                  one load on an address that is already served
//	bench upstream -listen ADDR, bench naive LISTEN UPSTREAM
//
// It never leaves the loopback and never runs longer than its -limit.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tracegate/bench/load"
)

func main() {
	os.Exit(dispatch(os.Args[1:]))
}

func dispatch(args []string) int {
	// A child dies with the thread that started it, and all are started from here.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	name := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	var err error
	switch name {
	case "":
		err = benchmark(ctx, args)
	case "load":
		err = oneLoad(ctx, args)
	case "upstream":
		err = upstream(ctx, args)
	case "naive":
		err = naive(ctx, args)
	default:
		err = usageError(fmt.Sprintf("cannot run command=%s: it is not load, upstream or naive", name))
	}
	var wrong usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		return 2
	case errors.As(err, &wrong):
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 2
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	return 1
}

type usageError string

func (e usageError) Error() string { return string(e) }

// spread lets blocked system calls of the alarm's thread not hold up the other goroutines, also on one CPU.
func spread() { runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0))) }

func upstream(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("bench upstream", flag.ContinueOnError)
	listen := fs.String("listen", "127.0.0.1:0", "loopback address")
	if err := fs.Parse(args); err != nil {
		return usageError(err.Error())
	}
	spread()
	u, err := load.ListenUpstream(*listen)
	if err != nil {
		return err
	}
	defer u.Close()
	fmt.Println("ready data=" + u.Addr())
	<-ctx.Done()
	return nil
}

func oneLoad(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("bench load", flag.ContinueOnError)
	var p load.Plan
	var holds string
	var asJSON bool
	fs.StringVar(&p.Addr, "addr", "", "loopback address under load, like 127.0.0.1:4000")
	fs.StringVar(&p.Dialect, "dialect", "chat", strings.Join(load.Dialects, ", "))
	fs.StringVar(&p.Model, "model", "bench-model", "model of the requests")
	fs.StringVar(&p.Key, "key", "", "Bearer key")
	fs.BoolVar(&p.Whole, "whole", false, "no stream")
	fs.IntVar(&p.Body, "body", 1024, "bytes of a request body")
	fs.IntVar(&p.Tokens, "tokens", 16, "tokens of an answer")
	fs.DurationVar(&p.Prefill, "prefill", 0, "upstream's wait before the first token")
	fs.DurationVar(&p.Gap, "gap", 0, "upstream's wait between tokens")
	fs.IntVar(&p.Conns, "c", 1, "closed loop: connections; open loop: most connections")
	fs.Float64Var(&p.Rate, "rate", 0, "open loop: requests a second")
	fs.IntVar(&p.Requests, "n", 0, "stop after this many requests")
	fs.DurationVar(&p.Ramp, "ramp", 0, "closed loop: spread of the first requests")
	fs.DurationVar(&p.Warm, "warm", 0, "time before the window")
	fs.DurationVar(&p.Window, "window", 5*time.Second, "measured time")
	fs.DurationVar(&p.Drain, "drain", 5*time.Second, "time for requests under way after it")
	fs.Float64Var(&p.CancelFrac, "cancel-frac", 0, "fraction of requests that are given up")
	fs.StringVar(&p.CancelPhase, "cancel-phase", "decode", "prefill or decode")
	fs.Float64Var(&p.SlowFrac, "slow-frac", 0, "fraction of connections that read slowly")
	fs.IntVar(&p.SlowRate, "slow-rate", 10_000, "bytes a second of a slow reader")
	fs.IntVar(&p.PID, "pid", 0, "process whose CPU and memory are read")
	fs.StringVar(&holds, "hold", "", "open this many silent streams (N,N,... ascending) and print the memory of -pid")
	fs.BoolVar(&asJSON, "json", false, "print JSON")
	if err := fs.Parse(args); err != nil {
		return usageError(err.Error())
	}
	spread()
	if holds != "" {
		return holdAndPrint(ctx, p, holds)
	}
	r, err := load.Run(ctx, p)
	if err != nil {
		return err
	}
	if asJSON {
		err = json.NewEncoder(os.Stdout).Encode(r)
	} else {
		r.Print(os.Stdout)
	}
	if err == nil && r.Wrong() > 0 {
		err = fmt.Errorf("%d answers were wrong", r.Wrong())
	}
	return err
}

func holdAndPrint(ctx context.Context, p load.Plan, holds string) error {
	var levels []int
	for _, s := range strings.Split(holds, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			return usageError(fmt.Sprintf("cannot hold level=%s: want whole numbers with commas", s))
		}
		levels = append(levels, n)
	}
	p.Conns = max(p.Conns, 64)
	return load.Hold(ctx, p, levels, func(level int) error {
		if p.PID == 0 {
			fmt.Printf("held %d\n", level)
			return nil
		}
		kb, err := load.RSS(p.PID)
		fmt.Printf("held %d  RSS %d KB\n", level, kb)
		return err
	})
}
