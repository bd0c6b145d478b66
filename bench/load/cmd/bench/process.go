package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// process is a program that was started here.
type process struct {
	cmd  *exec.Cmd
	addr string
	log  string
}

func (p *process) pid() int {
	if p == nil || p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// stop ends the process; it is given some time to end by itself.
func (p *process) stop() {
	if p.pid() == 0 {
		return
	}
	p.cmd.Process.Signal(os.Interrupt)
	t := time.AfterFunc(3*time.Second, func() { p.cmd.Process.Kill() })
	defer t.Stop()
	p.cmd.Wait()
}

// start runs a command on one CPU, with its output in a file of dir. ready reads its standard output until the address is known.
func (b *bench) start(ctx context.Context, name, cpu string, ready func(io.Reader) (string, error), args ...string) (*process, error) {
	if cpu != "" {
		args = append([]string{"taskset", "-c", cpu}, args...)
	}
	p := &process{cmd: exec.Command(args[0], args[1:]...), log: filepath.Join(b.dir, name+".log")}
	logFile, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	p.cmd.Dir, p.cmd.Stderr = b.dir, logFile
	dieWithParent(p.cmd)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start process=%s: %w", name, err)
	}
	found := make(chan error, 1)
	go func() {
		var err error
		p.addr, err = ready(out)
		found <- err
		io.Copy(io.Discard, out)
	}()
	select {
	case err = <-found:
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(15 * time.Second):
		err = errors.New("it was not ready within 15 s")
	}
	if err != nil {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		text, _ := os.ReadFile(p.log)
		return nil, fmt.Errorf("cannot start process=%s: %w: %s", name, err, lastLines(string(text)))
	}
	return p, nil
}

func lastLines(s string) string {
	return strings.TrimSpace(s[max(0, len(s)-600):])
}

// readyLine finds the line "ready data=ADDR ...".
func readyLine(r io.Reader) (string, error) {
	s := bufio.NewScanner(r)
	for s.Scan() {
		if rest, ok := strings.CutPrefix(s.Text(), "ready data="); ok {
			addr, _, _ := strings.Cut(rest, " ")
			return addr, nil
		}
	}
	return "", errors.New("it ended without a ready line")
}

// connects waits until addr accepts connections, for programs without a ready line.
func connects(addr string) func(io.Reader) (string, error) {
	return func(io.Reader) (string, error) {
		for range 100 {
			if nc, err := net.Dial("tcp", addr); err == nil {
				nc.Close()
				return addr, nil
			}
			time.Sleep(50 * time.Millisecond)
		}
		return "", fmt.Errorf("addr=%s does not accept connections", addr)
	}
}

func freeAddr() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

const benchKey = "sk-bench"

// gatewayConfig has everything on that a request passes: keys, limits far above the load, routing over two deployments, metrics
// and timelines. Only the timelines' disk is left out.
func gatewayConfig(listen, admin, upstream string) string {
	return fmt.Sprintf(`listen: %s
admin: {listen: %s}
models:
  - name: bench-model
    deployments:
      - {name: a, base_url: "http://%s", engine: vllm, max_inflight: 100000, metrics_url: "off"}
      - {name: b, base_url: "http://%s", engine: vllm, max_inflight: 100000, metrics_url: "off"}
tenants:
  - name: bench
    keys: [{sha256: "%x"}]
    limits: {rpm: 100000000, tpm: 100000000000, inflight: 100000}
timelines: {store: memory}
limits: {max_streams: 100000}
log: {requests: false}
timeouts: {first_token: 600s, idle: 600s, total: 3600s}
`, listen, admin, upstream, upstream, sha256.Sum256([]byte(benchKey)))
}

func nginxConfig(dir, listen, upstream string) string {
	return fmt.Sprintf(`daemon off; master_process off;
worker_rlimit_nofile 60000;
pid %[1]s/nginx.pid; error_log stderr crit;
events { worker_connections 50000; }
http {
  access_log off;
  client_max_body_size 64m; client_body_buffer_size 4m;
  client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
  keepalive_requests 1000000000; keepalive_timeout 3600s;
  upstream up { server %[3]s; keepalive 1024; keepalive_requests 1000000000; keepalive_timeout 3600s; }
  server {
    listen %[2]s backlog=4096;
    location / {
      proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_request_buffering off;
      proxy_read_timeout 3600s; proxy_send_timeout 3600s; send_timeout 3600s;
    }
  }
}
`, dir, listen, upstream)
}
