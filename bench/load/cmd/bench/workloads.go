package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tracegate/bench/load"
)

// workload is a load and the lines that it gives.
type workload struct {
	name string
	run  func(ctx context.Context, b *bench, c column, p *process) error
}

const (
	rowRequest = "CPU us/request, 1 KB, no stream"
	rowToken   = "CPU us/token at 10k tokens/s"
	rowMax     = "CPU us/token at max"
	rowMaxRate = "  tokens/s at max"
	rowTTFT50  = "added TTFT p50, ms"
	rowTTFT99  = "added TTFT p99, ms"
	rowDelay   = "token delay p99 at 10k tokens/s, ms"
	rowBig     = "200 KB prompt: added TTFT p50, ms"
	rowBigCPU  = "200 KB prompt: CPU us/request"
	rowHold    = "RSS KB/open idle stream, %d open"
	rowAbort50 = "abort in %s, client to upstream p50, ms"
	rowAbort99 = "abort in %s, client to upstream p99, ms"
	rowLost    = "abort in %s, lost, %%"
	rowAnswers = "answers checked byte by byte"
	rowWrong   = "answers that were wrong"
)

func workloadNames() []string {
	names := []string{"hold"}
	for _, w := range workloads(true) {
		names = append(names, w.name)
	}
	return names
}

var holdLevels = []int{1000, 5000}

// rows is the order of the table.
func rows() []string {
	r := []string{rowRequest, rowToken, rowMax, rowMaxRate, rowTTFT50, rowTTFT99, rowDelay, rowBig, rowBigCPU}
	for _, n := range holdLevels {
		r = append(r, fmt.Sprintf(rowHold, n))
	}
	for _, phase := range []string{"prefill", "decode"} {
		r = append(r, fmt.Sprintf(rowAbort50, phase), fmt.Sprintf(rowAbort99, phase), fmt.Sprintf(rowLost, phase))
	}
	return append(r, rowAnswers, rowWrong)
}

func workloads(quick bool) []workload {
	window := 2 * time.Second
	if quick {
		window = time.Second
	}
	const warm = 400 * time.Millisecond
	gauge := func(name string, p load.Plan, read func(t *table, column string, r *load.Result)) workload {
		p.Warm, p.Window = warm, window
		return workload{name, func(ctx context.Context, b *bench, c column, proc *process) error {
			r, err := b.load(ctx, c, proc, p)
			if err == nil {
				read(&b.table, c.name, &r)
			}
			return err
		}}
	}
	return []workload{
		{"exact", exactness},
		gauge("request", load.Plan{Whole: true, Body: 1024, Tokens: 64, Conns: 64, Drain: time.Second},
			func(t *table, column string, r *load.Result) {
				t.add(rowRequest, column, r.CPUPer(r.WindowCompleted))
			}),
		// Streams that outlast the window: no request begins or ends in it.
		gauge("tokens", load.Plan{Conns: 200, Tokens: 2000, Gap: 20 * time.Millisecond, Ramp: 200 * time.Millisecond},
			func(t *table, column string, r *load.Result) {
				t.add(rowToken, column, r.CPUPer(r.WindowTokens))
				t.add(rowDelay, column, r.TokenDelay.P99/1e3)
			}),
		// 100,000 tokens/s are asked for: about what one CPU can pass on, so that it has no idle moments between tokens.
		gauge("max", load.Plan{Conns: 500, Tokens: 5000, Gap: 5 * time.Millisecond, Ramp: 200 * time.Millisecond},
			func(t *table, column string, r *load.Result) {
				t.add(rowMax, column, r.CPUPer(r.WindowTokens))
				t.add(rowMaxRate, column, float64(r.WindowTokens)/r.WindowSeconds)
			}),
		gauge("ttft", load.Plan{Rate: 100, Conns: 2000, Body: 4096, Tokens: 16, Gap: 10 * time.Millisecond, Drain: 2 * time.Second},
			func(t *table, column string, r *load.Result) {
				t.add(rowTTFT50, column, r.AddedTTFT.P50/1e3)
				t.add(rowTTFT99, column, r.AddedTTFT.P99/1e3)
			}),
		gauge("prompt", load.Plan{Rate: 40, Conns: 2000, Body: 200 << 10, Tokens: 4, Gap: time.Millisecond, Drain: 2 * time.Second},
			func(t *table, column string, r *load.Result) {
				t.add(rowBig, column, r.AddedTTFT.P50/1e3)
				t.add(rowBigCPU, column, r.CPUPer(r.WindowCompleted))
			}),
		aborts("abort-prefill", load.Plan{Rate: 80, Conns: 2000, Tokens: 8, Prefill: 500 * time.Millisecond, Gap: 20 * time.Millisecond,
			CancelFrac: 1, CancelPhase: "prefill", Window: window, Drain: 2 * time.Second}),
		aborts("abort-decode", load.Plan{Rate: 80, Conns: 2000, Tokens: 6, Prefill: 10 * time.Millisecond, Gap: 200 * time.Millisecond,
			CancelFrac: 1, CancelPhase: "decode", Window: window, Drain: 3 * time.Second}),
	}
}

// load runs one plan on a column and counts the answers.
func (b *bench) load(ctx context.Context, c column, proc *process, p load.Plan) (load.Result, error) {
	p.Addr, p.Key, p.PID = proc.addr, c.key, proc.pid()
	r, err := load.Run(ctx, p)
	b.table.count(c.name, &r)
	return r, err
}

// exactness passes all dialects, streamed and whole.
func exactness(ctx context.Context, b *bench, c column, proc *process) error {
	for _, dialect := range load.Dialects {
		for _, whole := range []bool{false, true} {
			p := load.Plan{Dialect: dialect, Whole: whole, Conns: 8, Requests: 80, Tokens: 12, Gap: time.Millisecond, Body: 20_000,
				Window: 5 * time.Second, Drain: time.Second}
			r, err := b.load(ctx, c, proc, p)
			if err != nil {
				return err
			}
			if r.Completed != 80 {
				return fmt.Errorf("%s, whole=%t: only %d of 80 answers", dialect, whole, r.Completed)
			}
		}
	}
	return nil
}

func aborts(name string, plan load.Plan) workload {
	return workload{name, func(ctx context.Context, b *bench, c column, proc *process) error {
		if _, err := b.stats(ctx); err != nil { // forget the streams that earlier loads left
			return err
		}
		r, err := b.load(ctx, c, proc, plan)
		if err != nil {
			return err
		}
		time.Sleep(600 * time.Millisecond) // a proxy that notices late has until the upstream's next writes
		s, err := b.stats(ctx)
		if err != nil {
			return err
		}
		latency, lost := load.Lost(r.Cancels, s.Aborts)
		if len(r.Cancels) == 0 {
			return errors.New("no request was cancelled")
		}
		b.table.add(fmt.Sprintf(rowLost, plan.CancelPhase), c.name, 100*float64(lost)/float64(len(r.Cancels)))
		if latency.N > 0 {
			b.table.add(fmt.Sprintf(rowAbort50, plan.CancelPhase), c.name, latency.P50/1e3)
			b.table.add(fmt.Sprintf(rowAbort99, plan.CancelPhase), c.name, latency.P99/1e3)
		}
		return nil
	}}
}

// hold measures the memory of open streams in a new process.
func (b *bench) hold(ctx context.Context, c column, proc *process) error {
	var levels []int
	files, err := openFiles()
	if err != nil {
		return err
	}
	for _, n := range holdLevels {
		if uint64(2*n+500) <= files { // a gateway has two connections for each stream
			levels = append(levels, n)
		} else {
			b.table.note("%d open streams were left out: the limit of open files is %d", n, files)
		}
	}
	if _, err := b.load(ctx, c, proc, load.Plan{Conns: 8, Requests: 200, Window: 5 * time.Second}); err != nil {
		return err
	}
	empty, err := load.RSS(proc.pid())
	if err != nil {
		return err
	}
	return load.Hold(ctx, load.Plan{Addr: proc.addr, Key: c.key, Conns: 64, Body: 1024}, levels, func(level int) error {
		time.Sleep(300 * time.Millisecond)
		kb, err := load.RSS(proc.pid())
		if err == nil {
			b.table.add(fmt.Sprintf(rowHold, level), c.name, float64(kb-empty)/float64(level))
		}
		return err
	})
}
