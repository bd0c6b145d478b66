//go:build unix

package main

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"tracegate/bench/fakeengine"
)

// full is the writing end of a pipe that takes no byte and that nobody reads.
func full(t *testing.T) *os.File {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = out.Close() })
	fill := make([]byte, 4096)
	for size := len(fill); size > 0; size /= 2 { // the last bytes too
		for err = nil; err == nil; {
			if err = in.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)); err == nil {
				_, err = in.Write(fill[:size])
			}
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	if err := syscall.SetNonblock(int(in.Fd()), false); err != nil { // as a terminal or a shell's pipe is
		t.Fatal(err)
	}
	return in
}

// TestABlockedStderrDoesNotHoldTheProcess: what reads the log has stopped, and a line waits.
func TestABlockedStderrDoesNotHoldTheProcess(t *testing.T) {
	for _, s := range [][]syscall.Signal{{syscall.SIGTERM}, {syscall.SIGINT}, {syscall.SIGHUP, syscall.SIGTERM}} {
		t.Run(s[len(s)-1].String(), func(t *testing.T) {
			_, yaml := engine(t, fakeengine.Options{StepBase: 1e6}, "drain: {delay: 0s, timeout: 1h}\n")
			p := serveWith(t, yaml, "gateway", func(cmd *exec.Cmd) { cmd.Stderr = full(t) })
			c := client(t)
			_, _ = io.Copy(io.Discard, chat(t, c, "http://"+p.data, "unlogged-request").Body)
			equal(t, "livez", status(t, c, "http://"+p.data+"/livez"), http.StatusOK)
			for _, s := range s {
				p.signal(s)
			}
			equal(t, "exit code", p.wait(), 0)
		})
	}
}
