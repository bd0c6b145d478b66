package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"tracegate/bench/load"
)

// bench is one run of the whole benchmark.
type bench struct {
	quick    bool
	rounds   int
	dir      string // of configs and logs
	self     string // this program
	gateway  string // the gateway's binary; its column is left out where there is none
	only     []string
	cpus     cpus
	upstream *process
	columns  []column
	table    table
}

// column is what is put between the load and the upstream.
type column struct {
	name  string
	key   string
	start func(ctx context.Context) (*process, error)
}

// cpus are the CPUs that the programs are bound to; "" where there is no taskset or only one CPU.
type cpus struct{ gateway, load, upstream string }

func benchmark(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	b := &bench{}
	gateway := fs.String("gateway", "bin/gateway", "the gateway's binary; its column is left out where there is none")
	fs.BoolVar(&b.quick, "quick", false, "one short round, less than a minute")
	fs.IntVar(&b.rounds, "rounds", 3, "rounds; every second one runs the columns backwards")
	only := fs.String("only", "", "only these lines: "+strings.Join(workloadNames(), ","))
	jsonFile := fs.String("json", "", "write the values of all rounds to this file")
	limit := fs.Duration("limit", 10*time.Minute, "end after this time, with what has been measured")
	if err := fs.Parse(args); err != nil {
		return usageError(err.Error())
	}
	if *only != "" {
		b.only = strings.Split(*only, ",")
	}
	for _, o := range b.only {
		if !slices.Contains(workloadNames(), o) {
			return usageError(fmt.Sprintf("cannot measure only=%s: it is not one of %s", o, strings.Join(workloadNames(), ", ")))
		}
	}
	if b.quick {
		b.rounds = 1
	}
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	if err := b.prepare(ctx, *gateway); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	defer b.upstream.stop()
	b.measure(ctx)
	b.table.print(os.Stdout)
	if *jsonFile != "" {
		text, err := json.MarshalIndent(&b.table, "", " ")
		if err == nil {
			err = os.WriteFile(*jsonFile, append(text, '\n'), 0o644)
		}
		if err != nil {
			return fmt.Errorf("cannot write file=%s: %w", *jsonFile, err)
		}
	}
	return b.table.verdict()
}

func (b *bench) prepare(ctx context.Context, gateway string) (err error) {
	spread()
	debug.SetGCPercent(400)
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return err
	}
	b.cpus = chooseCPUs()
	if b.cpus.load != "" {
		if out, err := exec.Command("taskset", "-a", "-p", "-c", b.cpus.load, strconv.Itoa(os.Getpid())).CombinedOutput(); err != nil {
			return fmt.Errorf("cannot bind to cpu=%s: %w: %s", b.cpus.load, err, out)
		}
	}
	b.upstream, err = b.start(ctx, "upstream", b.cpus.upstream, readyLine, b.self, "upstream")
	if err != nil {
		return err
	}
	b.columns = []column{{name: "direct", start: b.direct}}
	if nginx, err := exec.LookPath("nginx"); err == nil {
		b.columns = append(b.columns, column{name: "nginx", start: func(ctx context.Context) (*process, error) { return b.startNginx(ctx, nginx) }})
	}
	b.columns = append(b.columns, column{name: "fasthttp", start: func(ctx context.Context) (*process, error) {
		return b.start(ctx, "fasthttp", b.cpus.gateway, readyLine, b.self, "naive", "127.0.0.1:0", b.upstream.addr)
	}})
	if b.gateway, err = filepath.Abs(gateway); err != nil {
		return err
	}
	if _, err := os.Stat(b.gateway); err == nil {
		b.columns = append(b.columns, column{name: "tracegate", key: benchKey, start: b.startGateway})
	} else {
		b.table.note("no gateway at %s: its column is left out", gateway)
	}
	for _, c := range b.columns {
		b.table.Columns = append(b.table.Columns, c.name)
	}
	return nil
}

func (b *bench) direct(context.Context) (*process, error) {
	return &process{addr: b.upstream.addr}, nil
}

func (b *bench) startNginx(ctx context.Context, nginx string) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(nginxConfig(b.dir, addr, b.upstream.addr)), 0o600); err != nil {
		return nil, err
	}
	return b.start(ctx, "nginx", b.cpus.gateway, connects(addr), nginx, "-p", b.dir, "-c", file)
}

func (b *bench) startGateway(ctx context.Context) (*process, error) {
	listen, err1 := freeAddr()
	admin, err2 := freeAddr()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	file := filepath.Join(b.dir, "gateway.yaml")
	if err := os.WriteFile(file, []byte(gatewayConfig(listen, admin, b.upstream.addr)), 0o600); err != nil {
		return nil, err
	}
	return b.start(ctx, "tracegate", b.cpus.gateway, readyLine, b.gateway, "serve", "--config", file)
}

// chooseCPUs gives the gateway a CPU of its own, and another to the load and the upstream (one each where there are three).
func chooseCPUs() cpus {
	if _, err := exec.LookPath("taskset"); err != nil {
		return cpus{}
	}
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return cpus{}
	}
	_, rest, _ := strings.Cut(string(text), "Cpus_allowed_list:")
	list, _, _ := strings.Cut(rest, "\n")
	var all []string
	for _, r := range strings.Split(strings.TrimSpace(list), ",") {
		from, to, ranged := strings.Cut(r, "-")
		if !ranged {
			to = from
		}
		lo, err1 := strconv.Atoi(from)
		hi, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil {
			return cpus{}
		}
		for ; lo <= hi; lo++ {
			all = append(all, strconv.Itoa(lo))
		}
	}
	switch len(all) {
	case 0, 1:
		return cpus{}
	case 2:
		return cpus{gateway: all[1], load: all[0], upstream: all[0]}
	}
	return cpus{gateway: all[2], load: all[0], upstream: all[1]}
}

func (b *bench) measure(ctx context.Context) {
	for round := range b.rounds {
		order := slices.Clone(b.columns)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, c := range order {
			if ctx.Err() != nil {
				b.table.fail("ended early: %v", context.Cause(ctx))
				return
			}
			began := time.Now()
			if err := b.column(ctx, c); err != nil {
				b.table.fail("%s: %v", c.name, err)
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %s took %.0f s\n", round+1, b.rounds, c.name, time.Since(began).Seconds())
		}
	}
}

// column measures all lines of one column once.
func (b *bench) column(ctx context.Context, c column) error {
	p, err := c.start(ctx)
	if err != nil {
		return err
	}
	defer func() { p.stop() }()
	before := b.foreign()
	began := time.Now()
	for _, w := range workloads(b.quick) {
		if len(b.only) > 0 && !slices.Contains(b.only, w.name) {
			continue
		}
		if err := w.run(ctx, b, c, p); err != nil {
			b.table.fail("%s: %s: %v", c.name, w.name, err)
		}
	}
	used := b.foreign() - before
	if cpu, err := load.CPUTime(p.pid()); err == nil && p.pid() != 0 {
		used -= cpu
	}
	b.table.Foreign = append(b.table.Foreign, used.Seconds()/time.Since(began).Seconds())
	if p.pid() == 0 || len(b.only) > 0 && !slices.Contains(b.only, "hold") {
		return nil
	}
	p.stop() // memory is measured in a process that has not yet seen the other loads
	if p, err = c.start(ctx); err != nil {
		return err
	}
	return b.hold(ctx, c, p)
}

// foreign is the CPU that programs other than load and upstream (and the one under test) have used.
func (b *bench) foreign() time.Duration {
	all, err := load.MachineCPU()
	if err != nil {
		return 0
	}
	for _, pid := range []int{os.Getpid(), b.upstream.pid()} {
		if cpu, err := load.CPUTime(pid); err == nil {
			all -= cpu
		}
	}
	return all
}

// stats asks the upstream for what it saw since the last call.
func (b *bench) stats(ctx context.Context) (s load.Stats, err error) {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+b.upstream.addr+"/load/stats", nil)
	if err != nil {
		return s, err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}
