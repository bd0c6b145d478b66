// Command fakeengine answers: what does a gateway see when it talks to an inference engine?
//
// It owns one simulated engine on one address and prints that address. A person starts it; faults come
// from a file of JSON or over HTTP under /_fake/. It never keeps anything on disk.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"tracegate/bench/fakeengine"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var o fakeengine.Options
	listen := flag.String("listen", "127.0.0.1:8000", "address")
	script := flag.String("script", "", "file with a JSON list of faults")
	flavor := flag.String("flavor", "vllm", "vllm or sglang")
	abort := flag.String("abort", "immediate", "when a client has left: immediate, late, never")
	names := flag.String("metrics", "", "new, old or sglang; default by flavor")
	flag.StringVar(&o.Model, "model", "fake-model", "served model name")
	flag.BoolVar(&o.AnyModel, "any-model", false, "accept every model name")
	flag.StringVar(&o.APIKey, "api-key", "", "Bearer key; empty: open")
	flag.IntVar(&o.MaxNumSeqs, "max-num-seqs", 64, "sequences running at once")
	flag.IntVar(&o.KVBlocks, "kv-blocks", 4096, "KV blocks of 16 tokens")
	flag.IntVar(&o.DefaultTokens, "tokens", 64, "natural length of an answer")
	flag.Float64Var(&o.PrefillRate, "prefill-rate", 20_000, "uncached prompt tokens per second")
	flag.DurationVar(&o.StepBase, "step", 15*time.Millisecond, "shortest engine step")
	flag.DurationVar(&o.StepPerSeq, "step-per-seq", 50*time.Microsecond, "added per running sequence")
	flag.DurationVar(&o.SlowStart.For, "slow-start", 0, "how long it is slow after its start")
	flag.Float64Var(&o.SlowStart.Factor, "slow-factor", 4, "with -slow-start: how many times slower, at first")
	flag.BoolVar(&o.WholePrefill, "whole-prefill", false, "no chunked prefill")
	flag.BoolVar(&o.UsageDetails, "usage-details", false, "cached tokens in usage")
	flag.Uint64Var(&o.Seed, "seed", 0, "of texts and ids")
	flag.Parse()
	if err := choose(&o, *flavor, *abort, *names); err != nil {
		return err
	}
	e := fakeengine.New(o)
	defer e.Close()
	if *script != "" {
		faults, err := readScript(*script)
		if err != nil {
			return err
		}
		e.Script(faults...)
	}
	url, err := e.StartAt(*listen)
	if err != nil {
		return err
	}
	fmt.Println("ready", url)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	<-stop
	return nil
}

func choose(o *fakeengine.Options, flavor, abort, names string) error {
	switch flavor {
	case "vllm":
	case "sglang":
		o.Flavor, o.MetricsNames = fakeengine.SGLang, fakeengine.MetricsSGLang
	default:
		return fmt.Errorf("cannot play flavor=%q: allowed are vllm, sglang", flavor)
	}
	switch abort {
	case "immediate":
	case "late":
		o.Abort = fakeengine.AbortLate
	case "never":
		o.Abort = fakeengine.AbortNever
	default:
		return fmt.Errorf("cannot play abort=%q: allowed are immediate, late, never", abort)
	}
	switch names {
	case "":
	case "new":
		o.MetricsNames = fakeengine.MetricsNew
	case "old":
		o.MetricsNames = fakeengine.MetricsOld
	case "sglang":
		o.MetricsNames = fakeengine.MetricsSGLang
	default:
		return fmt.Errorf("cannot show metrics=%q: allowed are new, old, sglang", names)
	}
	return nil
}

func readScript(file string) ([]fakeengine.Fault, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read script %s: %w", file, err)
	}
	var faults []fakeengine.Fault
	if err := json.Unmarshal(b, &faults); err != nil {
		return nil, fmt.Errorf("cannot read script %s: %w", file, err)
	}
	return faults, nil
}
