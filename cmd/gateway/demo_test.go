package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"tracegate/configs"
)

func TestTheDemosConfigurationHasNoWarnings(t *testing.T) {
	yaml, err := demoYAML([]string{"http://127.0.0.1:1", "http://127.0.0.1:2"})
	if err != nil {
		t.Fatal(err)
	}
	cfg, problems := configs.Parse("demo.yaml", yaml, nil)
	if cfg == nil || len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
}

// demo is what "gateway demo" printed.
type demo struct {
	*process
	curl, request, claude string
}

func startDemo(t *testing.T) demo {
	t.Helper()
	d := demo{process: launch(t, built, "demo", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")}
	d.ready()
	var commands []string
	for line := d.line(); !strings.HasPrefix(line, "Ctrl-C"); line = d.line() {
		if command, ok := strings.CutPrefix(line, "  "); ok {
			commands = append(commands, strings.TrimSuffix(command, "\n"))
		} else if line == "" {
			t.Fatalf("stdout ends before the commands; stderr:\n%s", d.stderr.String())
		}
	}
	if len(commands) != 3 {
		t.Fatalf("%d commands are printed: %q", len(commands), commands)
	}
	d.curl, d.request, d.claude = commands[0], commands[1], commands[2]
	return d
}

// TestTheDemosCommandsWork types what the demo prints.
func TestTheDemosCommandsWork(t *testing.T) {
	d := startDemo(t)
	events, content, last := 0, 0, ""
	for line := range strings.Lines(d.ask()) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			events++
			last = data
			if strings.Contains(data, `"content":"`) && !strings.Contains(data, `"content":""`) {
				content++
			}
		}
	}
	if events < 20 || content < 20 || last != "[DONE]" {
		t.Errorf("%d events, %d with content, the last one %q", events, content, last)
	}

	// What the second command prints, as soon as the request has finished.
	var picture string
	await(t, "the finished request", func() bool {
		out, err := exec.Command("sh", "-c", d.request).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", d.request, err, out)
		}
		picture = string(out)
		return strings.Contains(picture, "  ok  ")
	})
	for _, line := range []string{`^my-first-request  ok  demo -> engine-[01]$`, `^  read, admit +\|`, `^  queue +\|`, `^attempt 1  engine-[01]  ok  200$`,
		`^    connect +\|`, `^    waiting headers +\|`, `^    waiting first token +\|`, `^    streaming +\| *#+`, `ttft [1-9][0-9.]* m?s `} {
		if !regexp.MustCompile("(?m)" + line).MatchString(picture) {
			t.Errorf("%s is not in\n%s", line, picture)
		}
	}
	contains(t, "the third command", d.claude, "ANTHROPIC_BASE_URL=http://"+d.data+" ", "ANTHROPIC_AUTH_TOKEN=sk-demo", "ANTHROPIC_MODEL=demo")
	contains(t, "what it needs", d.messages(), "event: message_start", "event: content_block_delta", "event: message_stop")

	d.signal(syscall.SIGINT)
	equal(t, "exit code", d.wait(), 0)
	equal(t, "the rest of stdout", d.line(), "")
	for name, addr := range map[string]string{"data": d.data, "admin": d.admin} {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			t.Errorf("something still listens on the %s address: a child was left", name)
		}
	}
}

// ask runs the printed curl command, or sends what it would where there is no curl.
func (d demo) ask() string {
	d.t.Helper()
	if _, err := exec.LookPath("curl"); err == nil {
		curl := exec.Command("sh", "-c", d.curl)
		curl.Env = append(os.Environ(), "NO_PROXY=*")
		out, err := curl.Output()
		if err != nil {
			d.t.Fatalf("%s: %v", d.curl, err)
		}
		return string(out)
	}
	m := regexp.MustCompile(`^curl -sN (http\S+) -H '([^']+)' -H '([^']+)' -d '([^']+)'$`).FindStringSubmatch(d.curl)
	if m == nil {
		d.t.Fatalf("unexpected command %s", d.curl)
	}
	return d.post(m[1], m[4], m[2:4]...)
}

// messages sends what Claude Code's requests look like, with the model and the key of the third command.
func (d demo) messages() string {
	d.t.Helper()
	return d.post("http://"+d.data+"/v1/messages?beta=true",
		`{"model":"demo","max_tokens":20,"stream":true,"messages":[{"role":"user","content":"Say hello"}]}`,
		"authorization: Bearer sk-demo", "anthropic-version: 2023-06-01")
}

func (d demo) post(url, body string, headers ...string) string {
	d.t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := client(d.t).Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		d.t.Fatalf("status %d, %v: %s", resp.StatusCode, err, answer)
	}
	return string(answer)
}

// TestThePrintedCommandAsksTheDemo, and not whom GATEWAY_ADMIN names.
func TestThePrintedCommandAsksTheDemo(t *testing.T) {
	for _, c := range []struct{ env, admin, want string }{
		{"", "127.0.0.1:4001", ""},
		{"", "127.0.0.1:5001", " --admin http://127.0.0.1:5001"},
		{"http://10.0.0.5:4001", "127.0.0.1:4001", " --admin http://127.0.0.1:4001"},
		{"https://127.0.0.1:4001", "127.0.0.1:4001", " --admin http://127.0.0.1:4001"},
		{"http://127.0.0.1:5001/", "127.0.0.1:5001", ""},
		{"127.0.0.1:5001", "127.0.0.1:5001", ""},
	} {
		t.Setenv("GATEWAY_ADMIN", c.env)
		var out strings.Builder
		printTry(&out, "127.0.0.1:4000", c.admin)
		contains(t, c.env+" "+c.admin, out.String(), " request my-first-request"+c.want+"\n")
	}
}

// TestTheDemoEndsInTheMiddleOfAnAnswer: Ctrl-C must not need patience.
func TestTheDemoEndsInTheMiddleOfAnAnswer(t *testing.T) {
	d := startDemo(t)
	req, err := http.NewRequest(http.MethodPost, "http://"+d.data+"/v1/chat/completions",
		strings.NewReader(`{"model":"demo","stream":true,"max_tokens":30000,"min_tokens":30000,"ignore_eos":true,"messages":[{"role":"user","content":"Hello"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stream := bufio.NewReader(resp.Body)
	if _, err := stream.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	d.signal(syscall.SIGINT)
	rest, err := io.ReadAll(stream)
	if !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(string(rest), "[DONE]") {
		t.Errorf("the cut answer ends with %v", err)
	}
	contains(t, "its last words", string(rest), `"error"`)
	equal(t, "exit code", d.wait(), 0)
}
