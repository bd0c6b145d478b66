package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tracegate/bench/fakeengine"
	"tracegate/configs"
)

// stream begins a stream through p that is silent until e thaws.
func stream(t *testing.T, p *process, e *fakeengine.Engine) *bufio.Reader {
	t.Helper()
	resp := chat(t, client(t), "http://"+p.data, "held-request")
	r := bufio.NewReader(resp.Body)
	if line, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
		t.Fatalf("the stream does not begin: %q, %v", line, err)
	}
	e.Freeze()
	return r
}

// whole reads the rest of a stream, which must be complete.
func whole(t *testing.T, r io.Reader) {
	t.Helper()
	rest, err := io.ReadAll(r)
	if err != nil {
		t.Errorf("the stream is cut: %v", err)
	}
	contains(t, "the rest of the stream", string(rest), "data: [DONE]")
}

var retries = regexp.MustCompile(`(?m)^llm_gateway_accept_retries_total (\d+)$`)

// TestStreamsOutliveALackOfDescriptors opens more connections than the process may have.
func TestStreamsOutliveALackOfDescriptors(t *testing.T) {
	const limit = 64
	e, yaml := engine(t, fakeengine.Options{StepBase: 2 * time.Millisecond, DefaultTokens: 200}, "drain: {delay: 0s, timeout: 1h}\n")
	shell := []string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, limit)}
	p := serveWith(t, yaml, "gateway", func(cmd *exec.Cmd) {
		sh, err := exec.LookPath("sh")
		if err != nil {
			t.Fatal(err)
		}
		cmd.Args, cmd.Path = append(shell, cmd.Args...), sh
	})
	admin := client(t) // keeps its connection: there will be no new one
	seen := func() int {
		resp, err := admin.Get("http://" + p.admin + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		m := retries.FindSubmatch(body)
		if m == nil {
			t.Fatalf("no metric of retries, status %d: %s", resp.StatusCode, body)
		}
		n, _ := strconv.Atoi(string(m[1]))
		return n
	}
	equal(t, "retries at the start", seen(), 0)
	rest := stream(t, p, e)
	var crowd []net.Conn
	for range 2 * limit {
		c, err := net.Dial("tcp", p.data)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		crowd = append(crowd, c)
	}
	await(t, "the lack of descriptors", func() bool { return seen() > 0 })
	e.Thaw()
	whole(t, rest)
	for _, c := range crowd {
		_ = c.Close()
	}
	equal(t, "a request afterwards", p.post(), http.StatusOK)
	p.signal(syscall.SIGTERM)
	equal(t, "exit code", p.wait(), 0)
}

func init() { programs["gateway-losing-its-listener"] = losesListener }

// losesListener is "gateway serve" whose listening data socket breaks at SIGUSR1.
func losesListener() {
	os.Exit(func() int {
		broken := make(chan os.Signal, 1)
		signal.Notify(broken, syscall.SIGUSR1)
		cfg, problems := configs.Load(os.Args[3], "listen=127.0.0.1:0", "admin.listen=127.0.0.1:0")
		if cfg == nil {
			fmt.Fprintln(os.Stderr, problems)
			return exitUsage
		}
		a, err := start(cfg, os.Stderr)
		if err != nil {
			return exitCode(err, os.Stderr)
		}
		go func() {
			<-broken
			shutListener(a.data.Addr().(*net.TCPAddr).Port)
		}()
		fmt.Printf("ready data=%s admin=%s\n", a.data.Addr(), a.admin.Addr())
		return exitCode(a.untilStopped(make(chan os.Signal)), os.Stderr)
	}())
}

// shutListener makes accept fail for good on the process's socket that listens on the port.
func shutListener(port int) {
	for fd := 3; fd < 256; fd++ {
		listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
		if err != nil || listens == 0 {
			continue
		}
		if addr, err := unix.Getsockname(fd); err == nil && addr.(*unix.SockaddrInet4).Port == port {
			_ = unix.Shutdown(fd, unix.SHUT_RDWR)
		}
	}
}

// TestAListenerThatFailsLetsAnswersEnd: nobody new can come, but who is there is served.
func TestAListenerThatFailsLetsAnswersEnd(t *testing.T) {
	e, yaml := engine(t, fakeengine.Options{StepBase: 2 * time.Millisecond, DefaultTokens: 200}, "drain: {delay: 1h, timeout: 1h}\n")
	p := serveWith(t, yaml, "gateway-losing-its-listener", nil)
	rest := stream(t, p, e)
	p.signal(syscall.SIGUSR1)
	await(t, "the failure is told", func() bool { return strings.Contains(p.stderr.String(), "cannot serve listen: ") })
	await(t, "readiness fails", func() bool { return p.readyz() == http.StatusServiceUnavailable })
	e.Thaw()
	whole(t, rest)
	equal(t, "exit code", p.wait(), 1)
}
