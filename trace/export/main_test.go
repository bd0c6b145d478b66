package export

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tracegate/trace"
)

func TestMain(m *testing.M) {
	trace.SetStrict(true)
	goleak.VerifyTestMain(m)
}

var update = flag.Bool("update", false, "rewrite the golden files")

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const ms = time.Millisecond

// golden compares got with the file in testdata, or writes it with -update.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	path := "testdata/" + file
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs:\n%s", path, got)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// story makes records with every time given, in milliseconds after noon.
type story struct{ *trace.Record }

func tell(id string, outcome trace.Outcome, phase trace.Phase) story {
	r := trace.NewRecord(noon)
	r.ID, r.Outcome, r.Phase = id, outcome, phase
	r.Tenant, r.Model, r.AskedModel, r.Dialect, r.Stream = "search", "qwen3-32b", "qwen3-32b", "chat", true
	return story{r}
}

func (s story) at(m trace.Mark, after float64) story {
	s.Stamp(m, noon.Add(duration(after)))
	return s
}

func duration(millis float64) time.Duration { return time.Duration(millis * float64(ms)) }

// try adds an attempt that is dispatched at once; negative values are unknown.
func (s story) try(deployment string, start, connect, headers, first, end float64, result trace.Result, fault string, status int) story {
	since := func(v float64) time.Duration {
		if v < 0 {
			return trace.Unknown
		}
		return duration(v)
	}
	s.Attempts = append(s.Attempts, trace.Attempt{N: len(s.Attempts) + 1, Deployment: deployment, Start: since(start),
		Connect: since(connect), Sent: 0, Headers: since(headers), FirstByte: since(headers), FirstToken: since(first),
		End: since(end), Result: result, Fault: fault, Status: status, AbortSent: trace.Unknown})
	return s
}

// stream runs a timeline through a book with the given gaps, so that it has a histogram.
func stream(t *testing.T, tenant, model, deployment string, gaps ...time.Duration) *trace.Record {
	t.Helper()
	tl := trace.NewBook(1).Open(noon)
	tl.Edit(func(r *trace.Record) {
		r.Stream, r.Tenant, r.Model, r.Dialect, r.Status = true, tenant, model, "chat", 200
		r.Tokens = trace.Tokens{Input: 100, Output: int64(len(gaps)) + 1, CacheRead: 64, CacheWrite: trace.Unknown,
			Reasoning: 0, Source: trace.SourceUpstream}
	})
	for _, m := range []trace.Mark{trace.Enqueue, trace.Admit, trace.Pick} {
		tl.MarkAt(m, noon)
	}
	tl.BeginAttempt(deployment)
	at := noon.Add(100 * ms)
	for _, m := range []trace.Mark{trace.Send, trace.Headers, trace.FirstByte} {
		tl.MarkAt(m, noon)
	}
	tl.TokensAt(1, at)
	for _, d := range gaps {
		at = at.Add(d)
		tl.TokensAt(1, at)
	}
	return tl.Finish(trace.OK, nil)
}
