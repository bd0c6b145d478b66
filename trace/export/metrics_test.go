package export

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"tracegate/trace"
)

// played counts one record of every kind.
func played(t *testing.T) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg, Options{Version: "v1", Commit: "abc"})
	ok := tell("ok", trace.OK, trace.PhaseFinished).at(trace.Enqueue, 2).at(trace.Admit, 3).at(trace.Pick, 4).
		at(trace.Send, 4).at(trace.FirstToken, 102).at(trace.LastToken, 302).at(trace.Finish, 310).
		try("vllm-a", 4, 1, 20, 98, 310, trace.ResultOK, "", 200)
	ok.Tokens = trace.Tokens{Input: 100, Output: 21, CacheRead: 64, CacheWrite: trace.Unknown, Reasoning: 0, Source: trace.SourceUpstream}
	ok.Status, ok.PickTime, ok.RelayTime = 200, 2*time.Microsecond, 30*time.Microsecond
	m.Finished(ok.Record)

	retried := tell("retried", trace.StreamInterrupted, trace.PhaseStreaming).at(trace.Enqueue, 0).at(trace.Admit, 0).
		at(trace.Send, 1).at(trace.FirstToken, 2500).at(trace.LastToken, 2600).at(trace.Finish, 2700).
		try("vllm-a", 1, 1, -1, -1, 2000, trace.ResultFault, "timeout_first_token", 0).
		try("hosted", 2001, 1, 100, 400, 2700, trace.ResultFault, "cut", 200)
	retried.Attempts[0].AbortSent, retried.Attempts[0].AbortReason = 1999*ms, trace.AbortTimeoutFirstToken
	retried.Attempts[0].Model = "qwen3-small"
	retried.Status, retried.Tokens.Output = 200, 9
	m.Finished(retried.Record)

	left := tell("left", trace.ClientAbort, trace.PhaseWaitingFirstToken).at(trace.Enqueue, 0).at(trace.Send, 1).
		at(trace.Finish, 900).try("vllm-a", 1, 0, 5, -1, 900, trace.ResultClientAbort, "", 200)
	left.Attempts[0].AbortSent, left.Attempts[0].AbortReason = 900*ms, trace.AbortClientGone
	left.Status = 499
	m.Finished(left.Record)

	whole := tell("whole", trace.OK, trace.PhaseFinished).at(trace.Enqueue, 0).at(trace.Send, 1).at(trace.FirstToken, 5).
		at(trace.Finish, 10).try("vllm-a", 1, 0, 5, -1, 10, trace.ResultOK, "", 200)
	whole.Stream, whole.ReportedTTFT, whole.Status = false, 5*ms, 200
	m.Finished(whole.Record)

	waited := tell("waited", trace.QueueTimeout, trace.PhaseQueue).at(trace.Enqueue, 0).at(trace.Admit, 0).at(trace.Finish, 30000)
	waited.Status = 503
	m.Finished(waited.Record)

	stranger := trace.NewRecord(noon)
	stranger.AskedModel, stranger.Dialect, stranger.Outcome, stranger.Status = "made-up", "gopher", "odd", 799
	m.Finished(stranger)
	return reg
}

func TestMetricsText(t *testing.T) {
	families, err := played(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "metrics.txt", regexp.MustCompile(`go="[^"]*"`).ReplaceAll(text.Bytes(), []byte(`go="GO"`)))
}

func TestMetricsAreLintClean(t *testing.T) {
	reg := played(t)
	m := NewMetrics(prometheus.NewRegistry(), Options{})
	m.Finished(stream(t, "t", "m", "d", ms))
	reg.MustRegister(newNothing(t))
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// newNothing is a log without a writer, for its metric.
func newNothing(t *testing.T) *Log {
	l := NewLog(new(bytes.Buffer), FormatJSON, nil)
	t.Cleanup(l.Close)
	return l
}

func family(t *testing.T, reg *prometheus.Registry, name string) *dto.MetricFamily {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f
		}
	}
	t.Fatalf("no %s", name)
	return nil
}

func TestMergedGapsAreExact(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg, Options{})
	var all []time.Duration
	for range 50 {
		var gaps []time.Duration
		for range 100 {
			gaps = append(gaps, time.Duration(rand.Int64N(int64(2*time.Second))))
		}
		gaps = append(gaps, 700*time.Second, 0, 10*ms, 30*ms, 50*ms, 100*ms, 200*ms, 500*ms) // edges are inclusive
		m.Finished(stream(t, "t", "m", "d", gaps...))
		all = append(all, gaps...)
	}
	h := family(t, reg, "llm_tbt_seconds").GetMetric()[0].GetHistogram()
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	equal(t, "count", h.GetSampleCount(), uint64(len(all)))
	equal(t, "sum", h.GetSampleSum(), sum.Seconds())
	equal(t, "buckets", len(h.GetBucket()), trace.Buckets-1)
	for _, b := range h.GetBucket() {
		n := 0
		for _, d := range all {
			if d.Seconds() <= b.GetUpperBound() {
				n++
			}
		}
		equal(t, fmt.Sprint("le ", b.GetUpperBound()), b.GetCumulativeCount(), uint64(n))
	}
}

func TestEdgesOfTheContract(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg, Options{})
	m.Finished(stream(t, "t", "m", "d", ms))
	for name, want := range map[string][]float64{
		"llm_ttft_seconds":             {0.1, 0.3, 0.5, 1, 2, 5, 600},
		"llm_tbt_seconds":              {0.01, 0.03, 0.05, 0.1, 0.2, 0.5, 600},
		"llm_request_duration_seconds": {1800},
	} {
		var edges []float64
		for _, b := range family(t, reg, name).GetMetric()[0].GetHistogram().GetBucket() {
			edges = append(edges, b.GetUpperBound())
		}
		for _, w := range want {
			if !slices.Contains(edges, w) {
				t.Errorf("%s has no edge at %g", name, w)
			}
		}
	}
}

// A stage that nobody measured has no series: an empty histogram reads as one that costs nothing.
func TestStagesAreShownOnceMeasured(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg, Options{})
	stages := func() string {
		t.Helper()
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range families {
			for _, x := range f.GetMetric() {
				if f.GetName() == "llm_gateway_overhead_seconds" {
					names = append(names, x.GetLabel()[0].GetValue())
				}
			}
		}
		return strings.Join(names, " ")
	}
	equal(t, "before any request", stages(), "")
	r := tell("x", trace.OK, trace.PhaseFinished).at(trace.Enqueue, 2).at(trace.Admit, 3).at(trace.Finish, 9)
	m.Finished(r.Record)
	equal(t, "nothing was dispatched", stages(), "admit")
	m.Finished(r.try("d", 3, 1, 2, 3, 9, trace.ResultOK, "", 200).Record)
	equal(t, "dispatched", stages(), "admit connect")
	r.PickTime, r.RelayTime = 0, ms
	m.Finished(r.Record)
	equal(t, "all measured", stages(), "admit connect pick relay")
}

func TestTooManyNamesBecomeOther(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg, Options{Combinations: 3})
	for i := range 100 {
		r := tell("x", trace.OK, trace.PhaseFinished).at(trace.Enqueue, 0).at(trace.Finish, 1).
			try(fmt.Sprint("d", i), 0, 0, 0, 0, 1, trace.ResultOK, "", 200)
		r.Tenant = fmt.Sprint("tenant", i)
		m.Finished(r.Record)
	}
	total, series := 0.0, 0
	for _, x := range family(t, reg, "llm_requests_total").GetMetric() {
		total += x.GetCounter().GetValue()
		series++
	}
	equal(t, "requests", total, 100)
	if series > 7 {
		t.Errorf("%d series for a cap of 3", series)
	}
	if got := family(t, reg, "llm_gateway_label_overflow_total").GetMetric()[0].GetCounter().GetValue(); got < 90 {
		t.Errorf("overflow = %g", got)
	}
	attempts := 0.0
	for _, x := range family(t, reg, "llm_attempts_total").GetMetric() {
		attempts += x.GetCounter().GetValue()
	}
	equal(t, "attempts", attempts, 100)
}

func TestTextFromClientsIsNeverALabel(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg, Options{})
	for i := range 2000 {
		r := tell(fmt.Sprint("id", i), trace.Outcome(fmt.Sprint("o", i)), trace.Phase(fmt.Sprint("p", i))).
			at(trace.Enqueue, 0).at(trace.Finish, 1)
		r.AskedModel, r.Dialect, r.Status, r.FinishReason = fmt.Sprint("m", i), fmt.Sprint("x", i), 1000+i, fmt.Sprint("f", i)
		r.Error = &trace.ErrorInfo{Kind: fmt.Sprint("k", i), Message: fmt.Sprint("e", i)}
		m.Finished(r.Record)
	}
	equal(t, "series", testutil.CollectAndCount(m.requests), 1)
	equal(t, "series of durations", testutil.CollectAndCount(m.duration), 1)
	for _, l := range m.lines {
		if len(l.requests) > 1000 || len(l.duration) > 1000 {
			t.Errorf("the tables grow: %d and %d", len(l.requests), len(l.duration))
		}
	}
	var names []string
	families, _ := reg.Gather()
	for _, f := range families {
		names = append(names, f.String())
	}
	if all := strings.Join(names, ""); strings.Contains(all, "m1999") || strings.Contains(all, "id1999") {
		t.Error("a client's text became a label")
	}
}

func BenchmarkFinished(b *testing.B) {
	m := NewMetrics(prometheus.NewRegistry(), Options{})
	tl := trace.NewBook(1).Open(noon)
	tl.Edit(func(r *trace.Record) {
		r.Stream, r.Tenant, r.Model, r.Dialect, r.Status = true, "tenant", "model", "chat", 200
		r.Tokens = trace.Tokens{Input: 100, Output: 200, CacheRead: 64, CacheWrite: 3, Reasoning: 4, Source: trace.SourceUpstream}
		r.PickTime, r.RelayTime = ms, ms
	})
	for _, mark := range []trace.Mark{trace.Enqueue, trace.Admit, trace.Pick} {
		tl.MarkAt(mark, noon)
	}
	tl.BeginAttempt("d")
	tl.EditAttempt(func(a *trace.Attempt) { a.Connect = ms })
	tl.MarkAt(trace.Send, noon)
	tl.MarkAt(trace.Headers, noon)
	at := noon
	for range 200 {
		at = at.Add(time.Duration(rand.Int64N(int64(40 * ms))))
		tl.TokensAt(1, at)
	}
	r := tl.Finish(trace.OK, nil)
	b.ReportAllocs()
	for b.Loop() {
		m.Finished(r)
	}
}
