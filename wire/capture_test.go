package wire

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tracegate/sse"
)

var update = flag.Bool("update", false, "write the golden files anew")

// capture is one recorded answer of a real server.
type capture struct {
	name    string // file name without extension
	dialect Dialect
	status  int
	body    []byte // without framing
}

// captures reads testdata/dir; the dialect is the part of the file name before the first '_'.
func captures(t testing.TB, dir string) []capture {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.http"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures in %s: %v", dir, err)
	}
	var all []capture
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := capture{name: strings.TrimSuffix(filepath.Base(file), ".http")}
		kind, _, _ := strings.Cut(c.name, "_")
		if c.dialect = ByName(kind); c.dialect == nil {
			c.dialect = Other
		}
		head, body, ok := bytes.Cut(raw, []byte("\r\n\r\n"))
		if !ok {
			t.Fatalf("%s: no end of the head", file)
		}
		c.status, _ = strconv.Atoi(string(head[9:12]))
		c.body = body
		if bytes.Contains(bytes.ToLower(head), []byte("transfer-encoding: chunked")) {
			c.body = dechunk(body)
		}
		all = append(all, c)
	}
	return all
}

// dechunk removes the chunk framing; a cut body is returned as far as it goes.
func dechunk(b []byte) (out []byte) {
	for {
		line, rest, ok := bytes.Cut(b, []byte("\r\n"))
		n, err := strconv.ParseInt(string(line), 16, 64)
		if !ok || err != nil || n == 0 {
			return out
		}
		n = min(n, int64(len(rest)))
		out = append(out, rest[:n]...)
		b = bytes.TrimPrefix(rest[n:], []byte("\r\n"))
	}
}

// observe reads a stream in the given pieces and returns the kind of each event.
func observe(d Dialect, o *Observation, pieces ...[]byte) (kinds []Kind) {
	var p sse.Parser
	for _, piece := range pieces {
		for b := piece; len(b) > 0; {
			ev, n, ok := p.Next(b)
			if ok {
				kinds = append(kinds, d.Observe(o, ev))
			}
			b = b[n:]
		}
	}
	if ev, ok := p.End(); ok {
		kinds = append(kinds, d.Observe(o, ev))
	}
	return kinds
}

// summary writes an observation in full.
func summary(o *Observation) string {
	var s strings.Builder
	fmt.Fprintf(&s, "id %q model %q finish %q created %t\n", o.ID, o.Model, o.FinishReason, o.Created > 0)
	fmt.Fprintf(&s, "complete %t aborted %t terminated %t content %t malformed %d\n",
		o.Complete(), o.Aborted(), o.Terminated(), o.HasContent, o.Malformed)
	count := func(name string, n int64, f Fields) {
		if o.Usage.Has(f) {
			fmt.Fprintf(&s, " %s %d", name, n)
		} else {
			fmt.Fprintf(&s, " %s ?", name)
		}
	}
	s.WriteString("usage")
	count("input", o.Usage.Input, FieldInput)
	count("output", o.Usage.Output, FieldOutput)
	count("cache_read", o.Usage.CacheRead, FieldCacheRead)
	count("cache_write", o.Usage.CacheWrite, FieldCacheWrite)
	count("reasoning", o.Usage.Reasoning, FieldReasoning)
	s.WriteByte('\n')
	if o.Reported {
		fmt.Fprintf(&s, "reported ttft %.3f ms queue %.3f ms\n", o.ReportedTTFT, o.ReportedQueue)
	}
	if o.HasSequence {
		fmt.Fprintf(&s, "sequence %d\n", o.Sequence)
	}
	if f := o.Failure; f != nil {
		fmt.Fprintf(&s, "failure status %d type %q code %q message %q\n", f.Status, f.Type, f.Code, f.Message)
	}
	return s.String()
}

// golden compares got with testdata/dir/name.golden.
func golden(t *testing.T, dir, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", dir, name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}

// runs writes kinds in short: "content x3".
func runs(kinds []Kind) string {
	var s strings.Builder
	for i := 0; i < len(kinds); {
		n := 1
		for i+n < len(kinds) && kinds[i+n] == kinds[i] {
			n++
		}
		fmt.Fprintf(&s, "%v x%d\n", kinds[i], n)
		i += n
	}
	return s.String()
}

func TestCapturedStreams(t *testing.T) {
	for _, c := range captures(t, "streams") {
		t.Run(c.name, func(t *testing.T) {
			var o Observation
			kinds := observe(c.dialect, &o, c.body)
			golden(t, "streams", c.name, runs(kinds)+summary(&o))
		})
	}
}

func TestCapturedBodies(t *testing.T) {
	for _, c := range captures(t, "bodies") {
		t.Run(c.name, func(t *testing.T) {
			var o Observation
			c.dialect.ObserveBody(&o, c.body)
			golden(t, "bodies", c.name, summary(&o))
		})
	}
}

func TestCapturedErrors(t *testing.T) {
	for _, c := range captures(t, "errors") {
		t.Run(c.name, func(t *testing.T) {
			f := ReadFailure(c.status, c.body)
			golden(t, "errors", c.name, fmt.Sprintf("status %d type %q code %q message %q\n", f.Status, f.Type, f.Code, f.Message))
		})
	}
}
