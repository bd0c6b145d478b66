package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// built is the gateway as users get it, made once for all tests.
var built string

// TestMain makes this test binary a gateway too, under the name "gateway" in PATH: scripts and tests start that one,
// so that the race detector sees it where it is on.
func TestMain(m *testing.M) { testscript.Main(suite{m}, programs) }

// programs are what this test binary can be.
var programs = map[string]func(){"gateway": main}

type suite struct{ m *testing.M }

// noExitSleep makes a process under the race detector end when it ends, not a second later.
const noExitSleep = "atexit_sleep_ms=0"

// Run builds the gateway, runs the tests and looks for goroutines that they left.
func (s suite) Run() int {
	dir, err := os.MkdirTemp("", "gateway-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	built = filepath.Join(dir, "gateway")
	if out, err := exec.Command("go", "build", "-o", built, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "cannot build the gateway: %v\n%s", err, out)
		return 1
	}
	if err := os.Setenv("GORACE", os.Getenv("GORACE")+" "+noExitSleep); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := s.m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
