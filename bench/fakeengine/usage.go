package fakeengine

import (
	"fmt"
	"strconv"
)

// totals returns the token counts of an answer so far.
func (x *exchange) totals() (prompt, cached, completion, reasoning int) {
	for i, l := range x.lanes {
		completion += l.sent
		reasoning += min(l.sent, x.answer.reasoning)
		if i%x.c.n == 0 { // the choices of one prompt share it
			prompt += l.q.prompt
		}
	}
	return prompt, x.cachedTokens(), completion, reasoning
}

// cachedTokens is what the prefix cache gave to the first sequence.
func (x *exchange) cachedTokens() int {
	x.e.core.mu.Lock()
	defer x.e.core.mu.Unlock()
	return x.lanes[0].q.cached
}

// usage appends the usage object of chat and completions.
func (x *exchange) usage(b []byte, whole bool) []byte {
	prompt, cached, completion, reasoning := x.totals()
	b = fmt.Appendf(b, `{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d`, prompt, prompt+completion, completion)
	switch {
	case x.e.o.UsageDetails && whole:
		b = fmt.Appendf(b, `,"prompt_tokens_details":{"cached_tokens":%d,"created_cache_tokens":0,"multimodal_tokens":null}`, cached)
	case x.e.o.UsageDetails:
		b = fmt.Appendf(b, `,"prompt_tokens_details":{"cached_tokens":%d,"created_cache_tokens":0}`, cached)
	case whole:
		b = append(b, `,"prompt_tokens_details":null`...)
	}
	switch {
	case x.answer.reasoning > 0 || x.e.o.UsageDetails:
		b = fmt.Appendf(b, `,"completion_tokens_details":{"reasoning_tokens":%d}`, reasoning)
	case whole:
		b = append(b, `,"completion_tokens_details":null`...)
	}
	return append(b, '}')
}

// runningUsage appends the usage of continuous_usage_stats, or the null of a fault.
func (x *exchange) runningUsage(b []byte, l *lane, sent int) []byte {
	switch {
	case x.fault(UsageNull) != nil:
		return append(b, `,"usage":null`...)
	case !x.c.continuous || x.fault(NoUsage) != nil:
		return b
	}
	prompt := l.q.prompt
	b = append(b, `,"usage":{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(prompt), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(prompt+sent), 10)
	b = append(b, `,"completion_tokens":`...)
	b = strconv.AppendInt(b, int64(sent), 10)
	return append(b, `,"completion_tokens_details":null}`...)
}

// metrics appends the object of --enable-per-request-metrics: null for several choices. Chat and completions
// streams leave one key out.
func (x *exchange) metrics(b []byte, whole bool) []byte {
	if len(x.lanes) != 1 {
		return append(b, `null`...)
	}
	x.e.core.mu.Lock()
	q := x.lanes[0].q
	arrived, scheduled, first, last, n := q.arrived, q.scheduled, q.first, q.last, q.generated
	x.e.core.mu.Unlock()
	ms := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	span := last.Sub(first).Seconds()
	itl, rate := 0.0, 0.0
	if n > 1 && span > 0 {
		itl, rate = span*1e3/float64(n-1), float64(n)/span
	}
	b = fmt.Appendf(b, `{"time_to_first_token_ms":%s,"generation_time_ms":%s,"queue_time_ms":%s,"mean_itl_ms":%s,"tokens_per_second":%s`,
		ms(first.Sub(scheduled).Seconds()*1e3), ms(span*1e3), ms(scheduled.Sub(arrived).Seconds()*1e3), ms(itl), ms(rate))
	if whole {
		b = append(b, `,"speculative_decoding":null`...)
	}
	return append(b, '}')
}

// fingerprint tells a configuration of the engine from another.
func (e *Engine) fingerprint() string {
	return fmt.Sprintf("vllm-%s-%08x", version, uint32(mix(e.o.Seed+uint64(e.o.MaxNumSeqs))))
}
