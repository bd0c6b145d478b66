package fakeengine

import (
	"bufio"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var seriesPattern = regexp.MustCompile(`^([a-z_:A-Z]+)(?:\{(.*)\})? `)

// series lists name and label names (with the values of le, reason and the like) of a page.
func series(page string) (out []string) {
	value := regexp.MustCompile(`(model_name|block_size|effective_attention_block_size)="[^"]*"`)
	s := bufio.NewScanner(strings.NewReader(page))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		m := seriesPattern.FindStringSubmatch(s.Text())
		if m == nil || strings.HasPrefix(s.Text(), "#") || strings.HasPrefix(m[1], "http_") || strings.HasSuffix(m[1], "_created") {
			continue
		}
		if m[1] == "vllm:cache_config_info" {
			out = append(out, m[1])
			continue
		}
		out = append(out, m[1]+"{"+value.ReplaceAllString(m[2], "$1")+"}")
	}
	slices.Sort(out)
	return out
}

func TestAnIdlePageHasTheSeriesOfARealServer(t *testing.T) {
	real, err := os.ReadFile("testdata/vllm/metrics_idle.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, url := started(t, Options{})
	w := parseWire(t, speak(t, url, request("GET", "/metrics", "")))
	if ct := w.header.Get("Content-Type"); ct != "text/plain; version=1.0.0; charset=utf-8" {
		t.Errorf("content type %q", ct)
	}
	got, want := series(w.chunks[0]), series(string(real))
	for _, s := range want {
		if !slices.Contains(got, s) {
			t.Errorf("missing %s", s)
		}
	}
	for _, s := range got {
		if !slices.Contains(want, s) {
			t.Errorf("invented %s", s)
		}
	}
}

func TestPagesInOlderAndOtherNames(t *testing.T) {
	for names, want := range map[Names][]string{
		MetricsOld:    {"vllm:gpu_cache_usage_perc{", "vllm:time_per_output_token_seconds_bucket{", "vllm:gpu_prefix_cache_hits_total{"},
		MetricsSGLang: {"sglang:num_running_reqs{", "sglang:token_usage{", `sglang:time_to_first_token_seconds_bucket{engine_type="unified",le="0.001",model_name=`, "sglang:num_aborted_requests_total{"},
	} {
		_, url := started(t, Options{MetricsNames: names})
		page := parseWire(t, speak(t, url, request("GET", "/metrics", ""))).chunks[0]
		for _, w := range want {
			if !strings.Contains(page, w) {
				t.Errorf("no %s in the page of names %d", w, names)
			}
		}
		if strings.Contains(page, "vllm:kv_cache_usage_perc") {
			t.Error("the new name is there too")
		}
	}
}

func TestCountersFollowRequestsAndRestart(t *testing.T) {
	e, url := started(t, Options{})
	c := client(t)
	for range 3 {
		readAll(t, post(t, c, url+"/v1/completions", `{"model":"fake-model","max_tokens":5,"prompt":"Hello"}`).Body)
	}
	page := string(e.metricsPage())
	for _, want := range []string{
		`vllm:generation_tokens_total{engine="0",model_name="fake-model"} 15.0`,
		`vllm:request_success_total{engine="0",finished_reason="length",model_name="fake-model"} 3.0`,
		`vllm:time_to_first_token_seconds_count{engine="0",model_name="fake-model"} 3.0`,
		`vllm:request_queue_time_seconds_count{engine="0",model_name="fake-model"} 3.0`,
		`http_requests_total{handler="/v1/completions",method="POST",status="2xx"} 3.0`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
	start := regexp.MustCompile(`(?m)^process_start_time_seconds .*`)
	before := start.FindString(page)
	if err := e.Restart(); err != nil {
		t.Fatal(err)
	}
	page = string(e.metricsPage())
	if !strings.Contains(page, `vllm:generation_tokens_total{engine="0",model_name="fake-model"} 0.0`) || start.FindString(page) == before {
		t.Error("a restart kept the counters or the start time")
	}
}

func TestAbortsAreInNoCounterOfVLLM(t *testing.T) {
	e, url := started(t, Options{})
	conn := sendRaw(t, url, request("POST", "/v1/completions", `{"model":"fake-model","ignore_eos":true,"stream":true,"prompt":"Hello"}`))
	readUntil(t, bufio.NewReader(conn), "text_completion")
	_ = conn.Close()
	waitFor(t, e, func(l RequestLog) bool { return !l.Freed.IsZero() && !l.Finished.IsZero() })
	page := string(e.metricsPage())
	for _, want := range []string{
		`vllm:request_success_total{engine="0",finished_reason="abort",model_name="fake-model"} 0.0`,
		`vllm:e2e_request_latency_seconds_count{engine="0",model_name="fake-model"} 0.0`,
		`vllm:time_to_first_token_seconds_count{engine="0",model_name="fake-model"} 1.0`,
		`vllm:num_requests_running{engine="0",model_name="fake-model"} 0.0`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
}
