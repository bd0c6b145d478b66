package fakeengine

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// started gives a running engine on a loopback port that is fast unless o says otherwise.
func started(t *testing.T, o Options) (*Engine, string) {
	t.Helper()
	if o.StepBase == 0 {
		o.StepBase = time.Millisecond
	}
	e := New(o)
	t.Cleanup(e.Close)
	url, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	return e, url
}

// client has its own connections, which the test's end closes.
func client(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func waitFor(t *testing.T, e *Engine, ok func(RequestLog) bool) RequestLog {
	t.Helper()
	l, err := e.WaitFor(deadline(t), ok)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func waitStats(t *testing.T, e *Engine, ok func(Stats) bool) Stats {
	t.Helper()
	s, err := e.WaitStats(deadline(t), ok)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// idle says that everything has ended.
func idle(s Stats) bool { return s.Running == 0 && s.Waiting == 0 && s.Handlers == 0 }

// post sends a JSON body; header is name, value, name, value ...
func post(t *testing.T, c *http.Client, url, body string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(deadline(t), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("read: %v after %q", err, b)
	}
	return string(b)
}

// readUntil reads lines until one contains want, and returns them.
func readUntil(t *testing.T, r *bufio.Reader, want string) string {
	t.Helper()
	var all strings.Builder
	for {
		line, err := r.ReadString('\n')
		all.WriteString(line)
		if strings.Contains(line, want) {
			return all.String()
		}
		if err != nil {
			t.Fatalf("no %q before %v in %q", want, err, all.String())
		}
	}
}
