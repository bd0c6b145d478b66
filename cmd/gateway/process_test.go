package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tracegate/bench/fakeengine"
)

// patience is how long a test waits for what must come; it is never a measure.
const patience = 60 * time.Second

// process is a gateway that a test started.
type process struct {
	t           testing.TB
	cmd         *exec.Cmd
	lines       *bufio.Reader // stdout
	stderr      locked
	stdout      io.Closer
	data, admin string // addresses, from the ready line
	ended       chan struct{}
}

// launch starts a gateway and ends it with the test.
func launch(t testing.TB, binary string, args ...string) *process {
	t.Helper()
	return launchWith(t, nil, binary, args...)
}

// launchWith lets change alter the command before it starts.
func launchWith(t testing.TB, change func(*exec.Cmd), binary string, args ...string) *process {
	t.Helper()
	p := &process{t: t, ended: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	p.cmd = exec.CommandContext(ctx, binary, args...)
	p.cmd.Stderr = &p.stderr
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.lines, p.stdout = in, bufio.NewReader(out), out
	if change != nil {
		change(p.cmd)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	go func() { // until the process ends, at the latest with the test
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		cancel()
		<-p.ended
		_ = out.Close()
		if t.Failed() {
			t.Logf("stderr of %v:\n%s", p.cmd.Args, p.stderr.String())
		}
	})
	return p
}

var readyLine = regexp.MustCompile(`^ready data=(127\.0\.0\.1:[1-9]\d*) admin=(127\.0\.0\.1:[1-9]\d*)\n$`)

// serve starts "gateway serve" with a configuration on free ports, and waits for its ready line.
func serve(t testing.TB, yaml string, args ...string) *process {
	t.Helper()
	return serveWith(t, yaml, "gateway", nil, args...)
}

// serveWith starts another binary, or a command that change has altered.
func serveWith(t testing.TB, yaml, binary string, change func(*exec.Cmd), args ...string) *process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launchWith(t, change, binary, append([]string{"serve", "--config", file, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, args...)...)
	p.ready()
	return p
}

// ready reads the ready line, which must be the first one.
func (p *process) ready() {
	p.t.Helper()
	line := p.line()
	m := readyLine.FindStringSubmatch(line)
	if m == nil {
		p.t.Fatalf("the first line is %q, not the ready line; stderr:\n%s", line, p.stderr.String())
	}
	p.data, p.admin = m[1], m[2]
}

// line is the next line of stdout, with its end; what there is of it when stdout was closed.
func (p *process) line() string {
	p.t.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		p.t.Fatal(err)
	}
	return line
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("cannot send %v: %v", s, err)
	}
}

// wait is the exit code of the process, which must end by itself.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("the process does not end; stderr:\n%s", p.stderr.String())
		return -1
	}
}

// await looks until ok says so: for what another process does and nothing announces.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%s: it did not come to that", what)
		}
	}
}

// client makes connections of its own for every test, and leaves none behind.
func client(t testing.TB) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func status(t testing.TB, c *http.Client, url string) int {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

const chatBody = `{"model":"public","stream":true,"messages":[{"role":"user","content":"Hello"}]}`

// chat sends a streamed request and returns when its head has come.
func chat(t testing.TB, c *http.Client, base, id string) *http.Response {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, base+"/v1/chat/completions", strings.NewReader(chatBody))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", id)
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// engine starts a simulated engine and gives the configuration of a gateway before it. more is top-level YAML.
func engine(t testing.TB, o fakeengine.Options, more string) (*fakeengine.Engine, string) {
	t.Helper()
	o.Model = "public"
	e := fakeengine.New(o)
	t.Cleanup(e.Close)
	url, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	return e, configOf(url) + more
}

func configOf(url string) string {
	return "models:\n  - {name: public, deployments: [{name: d1, base_url: \"" + url + "\"}]}\n" +
		"anonymous: {allow: true, trust_request_id: true}\ntimelines: {store: memory}\n"
}

// locked is a buffer that the process's output goes to while a test reads it.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func contains(t testing.TB, what, got string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q is not in %q", what, want, got)
		}
	}
}
