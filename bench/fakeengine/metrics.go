package fakeengine

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// gauges returns the values of the last step boundary.
func (e *Engine) gauges() gauges {
	e.core.mu.Lock()
	defer e.core.mu.Unlock()
	return e.core.gauges
}

// page is a metrics page being written. Labels are given rendered and sorted; le is put in its place.
type page struct {
	bytes.Buffer
	created float64
}

func (p *page) family(name, kind string) {
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, name, name, kind)
}

func (p *page) sample(name, labels string, v float64) {
	p.WriteString(name)
	if labels != "" {
		p.WriteString("{" + labels + "}")
	}
	p.WriteString(" " + metricFloat(v) + "\n")
}

func metricFloat(v float64) string {
	if v >= 1e9 {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	return float(v)
}

// counter writes a counter with its created twin, as the Python client does.
func (p *page) counter(name string, rows ...row) {
	p.family(name+"_total", "counter")
	for _, r := range rows {
		p.sample(name+"_total", r.labels, float64(r.v))
	}
	p.twin(name, rows...)
}

func (p *page) twin(name string, rows ...row) {
	p.family(name+"_created", "gauge")
	for _, r := range rows {
		p.sample(name+"_created", r.labels, p.created)
	}
}

type row struct {
	labels string
	v      int64
}

// histogram writes buckets, count, sum; le stands before model_name.
func (p *page) histogram(name, labels string, h *histogram) {
	p.family(name, "histogram")
	before, after := labels, ""
	if i := strings.Index(labels, "model_name="); i >= 0 {
		before, after = labels[:i], ","+labels[i:]
	}
	if before != "" && before[len(before)-1] != ',' {
		before += ","
	}
	total := int64(0)
	for i, n := range h.counts {
		total += n
		edge := math.Inf(1)
		if i < len(h.edges) {
			edge = h.edges[i]
		}
		le := float(edge)
		if math.IsInf(edge, 1) {
			le = "+Inf"
		}
		p.sample(name+"_bucket", before+`le="`+le+`"`+after, float64(total))
	}
	p.sample(name+"_count", labels, float64(total))
	p.sample(name+"_sum", labels, h.sum)
	p.twin(name, row{labels: labels})
}

func (x *exchange) serveMetrics() {
	x.w.Header().Set("Content-Type", "text/plain; version=1.0.0; charset=utf-8")
	x.respond(200, x.e.metricsPage())
}

// metricsPage renders the page in the chosen names.
func (e *Engine) metricsPage() []byte {
	e.core.mu.Lock()
	defer e.core.mu.Unlock()
	g, m := e.core.gauges, e.core.meters
	p := &page{created: float64(m.started.UnixNano()) / 1e9}
	for _, v := range []struct {
		name, kind string
		v          float64
	}{
		{"process_virtual_memory_bytes", "gauge", 4.5e9}, {"process_resident_memory_bytes", "gauge", 9.8e8},
		{"process_start_time_seconds", "gauge", p.created}, {"process_cpu_seconds_total", "counter", 1},
		{"process_open_fds", "gauge", 34}, {"process_max_fds", "gauge", 20000},
	} {
		p.family(v.name, v.kind)
		p.sample(v.name, "", v.v)
	}
	if e.o.MetricsNames == MetricsSGLang {
		e.sglangPage(p, g, m)
	} else {
		e.vllmPage(p, g, m)
	}
	p.httpFamilies(m)
	return p.Bytes()
}

func (e *Engine) vllmPage(p *page, g gauges, m *meters) {
	model := `model_name=` + quote(e.o.Model)
	base := `engine="0",` + model
	names := e.vllmNames()
	for _, n := range []string{"estimated_flops_per_gpu", "estimated_read_bytes_per_gpu", "estimated_write_bytes_per_gpu"} {
		p.counter("vllm:"+n, row{base, 0})
	}
	gauge := func(name string, rows ...row) {
		p.family("vllm:"+name, "gauge")
		for _, r := range rows {
			p.sample("vllm:"+name, r.labels, float64(r.v))
		}
	}
	gauge("num_requests_running", row{base, int64(g.running)})
	gauge("num_requests_waiting", row{base, int64(g.waiting)})
	gauge("num_requests_waiting_by_reason", row{base + `,reason="capacity"`, int64(g.waiting)}, row{base + `,reason="deferred"`, 0})
	gauge("engine_sleep_state", row{base + `,sleep_state="awake"`, 1}, row{base + `,sleep_state="weights_offloaded"`, 0}, row{base + `,sleep_state="discard_all"`, 0})
	p.family(names.kv, "gauge")
	p.sample(names.kv, base, g.kv)
	p.counter(names.queries, row{base, m.queries})
	p.counter(names.hits, row{base, m.hits})
	for _, n := range []string{"external_prefix_cache_queries", "external_prefix_cache_hits", "mm_cache_queries", "mm_cache_hits"} {
		p.counter("vllm:"+n, row{base, 0})
	}
	p.counter("vllm:num_preemptions", row{base, m.preemptions})
	p.counter("vllm:prompt_tokens", row{base, m.prompt})
	source := func(s string, v int64) row { return row{base + `,source="` + s + `"`, v} }
	p.counter("vllm:prompt_tokens_by_source", source("local_compute", m.prompt-m.promptCached), source("local_cache_hit", m.promptCached), source("external_kv_transfer", 0))
	p.counter("vllm:prompt_tokens_cached", row{base, m.promptCached})
	p.counter("vllm:prompt_tokens_cached_by_source", source("device", m.promptCached), source("host", 0), source("p2p", 0), source("disk", 0), source("external_unspecified", 0))
	p.counter("vllm:generation_tokens", row{base, m.generation})
	reason := func(s string, v int64) row { return row{`engine="0",finished_reason="` + s + `",` + model, v} }
	p.counter("vllm:request_success", reason("stop", m.stop), reason("length", m.length), reason("abort", 0), reason("error", m.errors), reason("repetition", 0))
	p.counter("vllm:admission_rejections", row{model + `,reason="max_num_queued_reqs"`, m.rejectedReqs}, row{model + `,reason="max_num_queued_tokens"`, m.rejectedTokens})
	p.vllmHistograms(base, names, m)
	e.cacheConfig(p)
}

func (p *page) vllmHistograms(base string, names vllmNames, m *meters) {
	for _, h := range []struct {
		name string
		h    *histogram
	}{
		{"vllm:request_prompt_tokens", m.promptTokens}, {"vllm:request_generation_tokens", m.genTokens}, {"vllm:iteration_tokens_total", m.iteration},
		{"vllm:request_max_num_generation_tokens", m.maxGen}, {"vllm:request_params_n", m.paramsN}, {"vllm:request_params_max_tokens", m.paramsMax},
		{"vllm:time_to_first_token_seconds", m.ttft}, {names.itl, m.itl}, {"vllm:request_time_per_output_token_seconds", m.tpot},
		{"vllm:e2e_request_latency_seconds", m.e2e}, {"vllm:request_queue_time_seconds", m.queue}, {"vllm:request_inference_time_seconds", m.infer},
		{"vllm:request_prefill_time_seconds", m.prefill}, {"vllm:request_decode_time_seconds", m.decode}, {"vllm:request_num_preemptions", m.preempted},
		{"vllm:request_prefill_kv_computed_tokens", m.computed},
	} {
		p.histogram(h.name, base, h.h)
	}
}

// vllmNames are the families that were renamed over time.
type vllmNames struct{ kv, queries, hits, itl string }

func (e *Engine) vllmNames() vllmNames {
	if e.o.MetricsNames == MetricsOld {
		return vllmNames{"vllm:gpu_cache_usage_perc", "vllm:gpu_prefix_cache_queries", "vllm:gpu_prefix_cache_hits", "vllm:time_per_output_token_seconds"}
	}
	return vllmNames{"vllm:kv_cache_usage_perc", "vllm:prefix_cache_queries", "vllm:prefix_cache_hits", "vllm:inter_token_latency_seconds"}
}

func (e *Engine) cacheConfig(p *page) {
	prefix := "True"
	if e.o.NoPrefixCache {
		prefix = "False"
	}
	p.family("vllm:cache_config_info", "gauge")
	p.sample("vllm:cache_config_info", fmt.Sprintf(`block_size="%d",cache_dtype="auto",effective_attention_block_size="%d",enable_prefix_caching="%s",engine="0",gpu_memory_utilization="0.92",kv_cache_max_concurrency="%s",kv_cache_size_tokens="%d",num_gpu_blocks="%d",prefix_caching_hash_algo="sha256"`,
		blockTokens, blockTokens, prefix, float(float64(e.o.kvTokens())/float64(e.o.MaxModelLen)), e.o.kvTokens(), e.o.KVBlocks), 1)
}

func (p *page) httpFamilies(m *meters) {
	var rows []row
	for k, n := range m.http {
		rows = append(rows, row{fmt.Sprintf(`handler=%q,method=%q,status=%q`, k.handler, k.method, k.status), n})
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.labels, b.labels) })
	p.counter("http_requests", rows...)
}
