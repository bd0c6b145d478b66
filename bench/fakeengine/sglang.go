package fakeengine

import (
	"encoding/json"
	"fmt"
	"slices"
)

// The routes that only SGLang has. A vLLM answers 404, or has them in its developer mode only.

func (x *exchange) onlySGLang() bool {
	if x.e.o.Flavor != SGLang {
		x.notFound()
		return false
	}
	return true
}

// serveAbortRequest aborts by the rid that the request's body had.
func (x *exchange) serveAbortRequest() {
	if !x.onlySGLang() {
		return
	}
	var v struct {
		RID      string `json:"rid"`
		AbortAll bool   `json:"abort_all"`
	}
	if err := json.Unmarshal(x.raw, &v); err != nil {
		x.refuse(badJSON(x.raw, err))
		return
	}
	x.e.mu.Lock()
	x.e.abortCalls = append(x.e.abortCalls, v.RID)
	x.e.mu.Unlock()
	if v.AbortAll {
		x.e.AbortAll()
	} else {
		x.e.core.abortIDs(v.RID)
	}
	x.respond(200, nil)
}

// AbortCalls returns the rids that POST /abort_request named, oldest first.
func (e *Engine) AbortCalls() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.abortCalls)
}

func (x *exchange) serveServerInfo() {
	if !x.onlySGLang() {
		return
	}
	o := x.e.o
	x.json(200, fmt.Appendf(nil, `{"model_path":%s,"served_model_name":%s,"schedule_policy":"fcfs","disable_radix_cache":%t,"max_running_requests":%d,"chunked_prefill_size":%d,"context_length":%d,"page_size":%d,"max_total_num_tokens":%d,"version":%s}`,
		quote(o.Model), quote(o.Model), o.NoPrefixCache, o.MaxNumSeqs, o.ChunkTokens, o.MaxModelLen, blockTokens, o.kvTokens(), quote(version)))
}

func (x *exchange) serveLoads() {
	if !x.onlySGLang() {
		return
	}
	g := x.e.gauges()
	total := x.e.o.kvTokens()
	used := int(g.kv * float64(total))
	x.json(200, fmt.Appendf(nil, `{"loads":[{"dp_rank":0,"num_running_reqs":%d,"num_waiting_reqs":%d,"num_used_tokens":%d,"max_total_num_tokens":%d,"token_usage":%s}]}`,
		g.running, g.waiting, used, total, float(g.kv)))
}

// sglangPage renders SGLang's metrics.
func (e *Engine) sglangPage(p *page, g gauges, m *meters) {
	const engine = `engine_type="unified",`
	model := `model_name=` + quote(e.o.Model) + `,moe_ep_rank="0",pp_rank="0",tp_rank="0"`
	base := engine + model
	total := float64(e.o.kvTokens())
	rate := 0.0
	if m.queries > 0 {
		rate = float64(m.hits) / float64(m.queries)
	}
	for _, v := range []struct {
		name string
		v    float64
	}{
		{"num_running_reqs", float64(g.running)}, {"num_queue_reqs", float64(g.waiting)}, {"num_grammar_queue_reqs", 0},
		{"num_paused_reqs", 0}, {"token_usage", g.kv}, {"num_used_tokens", g.kv * total}, {"kv_available_tokens", total * (1 - g.kv)},
		{"kv_evictable_tokens", 0}, {"max_total_num_tokens", total}, {"context_len", float64(e.o.MaxModelLen)}, {"page_size", float64(blockTokens)},
		{"cache_hit_rate", rate}, {"utilization", 0}, {"num_retracted_reqs", 0},
	} {
		p.family("sglang:"+v.name, "gauge")
		p.sample("sglang:"+v.name, base, v.v)
	}
	for _, v := range []struct {
		name string
		v    int64
	}{
		{"num_requests_total", m.stop + m.length + m.aborted}, {"num_aborted_requests_total", m.aborted}, {"prompt_tokens_total", m.prompt},
		{"generation_tokens_total", m.generation}, {"num_retracted_requests_total", m.preemptions},
	} {
		p.family("sglang:"+v.name, "counter")
		p.sample("sglang:"+v.name, base, float64(v.v))
	}
	p.family("sglang:cached_tokens_total", "counter")
	p.sample("sglang:cached_tokens_total", `cache_source="total",`+base, float64(m.promptCached))
	p.family("sglang:realtime_tokens_total", "counter")
	p.sample("sglang:realtime_tokens_total", engine+`mode="prefill_compute",`+model, float64(m.prompt-m.promptCached))
	p.sample("sglang:realtime_tokens_total", engine+`mode="prefill_cache",`+model, float64(m.promptCached))
	p.sample("sglang:realtime_tokens_total", engine+`mode="decode",`+model, float64(m.generation))
	p.histogram("sglang:time_to_first_token_seconds", base, m.ttft)
	p.histogram("sglang:inter_token_latency_seconds", base, m.itl)
	p.histogram("sglang:e2e_request_latency_seconds", base, m.e2e)
	p.histogram("sglang:queue_time_seconds", base, m.queue)
}
