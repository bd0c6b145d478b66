package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// TestScripts runs what a person types, with what is printed and the exit code.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("NO_PROXY", "*")
			env.Setenv("GORACE", noExitSleep)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  exits,
			"engine": startEngine,
			"serve":  startServe,
			"chat":   sendChat,
		},
	})
}

// exits CODE COMMAND... runs a command to its end and compares the exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s; stdout:\n%s\nstderr:\n%s", code, args[0], ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// startEngine starts a simulated engine at $ENGINE.
func startEngine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: engine")
	}
	e := fakeengine.New(fakeengine.Options{Model: "public", StepBase: 1e6})
	url, err := e.Start()
	ts.Check(err)
	ts.Defer(e.Close)
	ts.Setenv("ENGINE", url)
}

// startServe ARGS... starts "gateway serve ARGS..." until the script ends; $DATA and $ADMIN are its addresses.
func startServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: serve ARGS...")
	}
	cmd := exec.Command("gateway", append([]string{"serve"}, args...)...)
	cmd.Dir = ts.Getenv("WORK")
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line := make([]byte, 256)
	n := 0
	for n < len(line) && (n == 0 || line[n-1] != '\n') {
		k, err := out.Read(line[n:])
		n += k
		ts.Check(err)
	}
	m := readyLine.FindStringSubmatch(string(line[:n]))
	if m == nil {
		ts.Fatalf("%q is no ready line", line[:n])
	}
	ts.Setenv("DATA", m[1])
	ts.Setenv("ADMIN", m[2])
}

// sendChat ID sends a streamed request with that id to $DATA, reads the answer and waits for its timeline at $ADMIN;
// $ADMIN_KEY is the key there.
func sendChat(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: chat ID")
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequest(http.MethodPost, "http://"+ts.Getenv("DATA")+"/v1/chat/completions", strings.NewReader(chatBody))
	ts.Check(err)
	req.Header.Set("X-Request-Id", args[0])
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: transport}).Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	if resp.StatusCode != http.StatusOK {
		ts.Fatalf("status %d: %s", resp.StatusCode, body)
	}
	for running := true; running; { // the client may see the end of an answer before the timeline has it
		req, err := http.NewRequest(http.MethodGet, "http://"+ts.Getenv("ADMIN")+"/api/v1/requests/"+args[0], nil)
		ts.Check(err)
		req.Header.Set("Authorization", "Bearer "+ts.Getenv("ADMIN_KEY"))
		resp, err := (&http.Client{Transport: transport}).Do(req)
		ts.Check(err)
		if resp.StatusCode != http.StatusOK {
			ts.Fatalf("the admin listener answers %d", resp.StatusCode)
		}
		var r trace.Record
		ts.Check(json.NewDecoder(resp.Body).Decode(&r))
		_ = resp.Body.Close()
		running = r.Running()
	}
}
