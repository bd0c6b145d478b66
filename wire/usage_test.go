package wire

import "testing"

func TestUsage(t *testing.T) {
	const all = FieldInput | FieldOutput | FieldCacheRead | FieldCacheWrite | FieldReasoning
	tests := []struct {
		name    string
		dialect Dialect
		events  []string
		want    Usage
	}{
		{"absent is unknown", Chat, []string{`{"choices":[]}`}, Usage{}},
		{"prompt includes cached", Chat, []string{`{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":80}}}`},
			Usage{Input: 20, Output: 5, CacheRead: 80, Known: FieldInput | FieldOutput | FieldCacheRead}},
		{"details null", Chat, []string{`{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":null}}`},
			Usage{Input: 100, Output: 5, Known: FieldInput | FieldOutput}},
		{"counts null", Chat, []string{`{"choices":[],"usage":{"prompt_tokens":null,"completion_tokens":5}}`},
			Usage{Output: 5, Known: FieldOutput}},
		{"cached beside the prompt", Chat, []string{`{"usage":{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":80}}}`},
			Usage{Input: 10, CacheRead: 80, Known: FieldInput | FieldCacheRead}},
		{"written and read", Chat, []string{`{"usage":{"prompt_tokens":100,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":30,"created_cache_tokens":20},"completion_tokens_details":{"reasoning_tokens":4}}}`},
			Usage{50, 9, 30, 20, 4, all}},
		{"DeepSeek's names", Chat, []string{`{"usage":{"prompt_tokens":100,"prompt_cache_hit_tokens":60,"prompt_cache_miss_tokens":40}}`},
			Usage{Input: 40, CacheRead: 60, Known: FieldInput | FieldCacheRead}},
		{"both names", Chat, []string{`{"usage":{"prompt_tokens":10,"completion_tokens":3,"input_tokens":0,"output_tokens":0}}`},
			Usage{Input: 10, Output: 3, Known: FieldInput | FieldOutput}},
		{"cumulative, the last wins", Chat, []string{`{"choices":[{}],"usage":{"prompt_tokens":10,"completion_tokens":1}}`,
			`{"choices":[{}],"usage":{"prompt_tokens":10,"completion_tokens":2}}`}, Usage{Input: 10, Output: 2, Known: FieldInput | FieldOutput}},
		{"after the finish", Chat, []string{`{"choices":[{"finish_reason":"stop"}]}`, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2}}`},
			Usage{Input: 10, Output: 2, Known: FieldInput | FieldOutput}},
		{"inside the choice", Chat, []string{`{"choices":[{"usage":{"prompt_tokens":10}}]}`}, Usage{Input: 10, Known: FieldInput}},
		{"cached later than the prompt", Chat, []string{`{"usage":{"prompt_tokens":10}}`, `{"usage":{"prompt_tokens_details":{"cached_tokens":4}}}`},
			Usage{Input: 6, CacheRead: 4, Known: FieldInput | FieldCacheRead}},

		{"delta wins over start", Messages, []string{`{"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":1}}}`,
			`{"type":"message_delta","delta":{},"usage":{"input_tokens":12,"output_tokens":40}}`}, Usage{Input: 12, Output: 40, Known: FieldInput | FieldOutput}},
		{"delta without input", Messages, []string{`{"type":"message_start","message":{"usage":{"input_tokens":25,"cache_read_input_tokens":15000,"output_tokens":1}}}`,
			`{"type":"message_delta","delta":{},"usage":{"output_tokens":40}}`},
			Usage{Input: 25, Output: 40, CacheRead: 15000, Known: FieldInput | FieldOutput | FieldCacheRead}},
		{"delta with a zero", Messages, []string{`{"type":"message_start","message":{"usage":{"input_tokens":25}}}`,
			`{"type":"message_delta","delta":{},"usage":{"input_tokens":0,"output_tokens":40}}`}, Usage{Input: 25, Output: 40, Known: FieldInput | FieldOutput}},
		{"all cached", Messages, []string{`{"type":"message_start","message":{"usage":{"input_tokens":25}}}`,
			`{"type":"message_delta","delta":{},"usage":{"input_tokens":0,"output_tokens":1,"cache_read_input_tokens":25}}`},
			Usage{Input: 0, Output: 1, CacheRead: 25, Known: FieldInput | FieldOutput | FieldCacheRead}},
		{"cached outside of input", Messages, []string{`{"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":3,"cache_creation_input_tokens":2}}}`},
			Usage{Input: 5, CacheRead: 3, CacheWrite: 2, Known: FieldInput | FieldCacheRead | FieldCacheWrite}},

		{"in the response", Responses, []string{`{"type":"response.completed","response":{"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":64},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":3}}}}`},
			Usage{Input: 36, Output: 7, CacheRead: 64, Reasoning: 3, Known: FieldInput | FieldOutput | FieldCacheRead | FieldReasoning}},
		{"not a count", Responses, []string{`{"type":"response.completed","response":{"usage":{"input_tokens":-1,"output_tokens":"7"}}}`}, Usage{}},
	}
	for _, tt := range tests {
		t.Run(tt.dialect.Name()+"/"+tt.name, func(t *testing.T) {
			var o Observation
			for _, e := range tt.events {
				tt.dialect.Observe(&o, event(e))
			}
			if o.Usage != tt.want {
				t.Errorf("got %+v, want %+v", o.Usage, tt.want)
			}
		})
	}
}

func TestEmbeddingsUsage(t *testing.T) {
	var o Observation
	Embeddings.ObserveBody(&o, []byte(`{"object":"list","data":[{"embedding":[0.1,-2e-3],"index":0}],"model":"e","usage":{"prompt_tokens":8,"total_tokens":8}}`))
	if want := (Usage{Input: 8, Known: FieldInput}); o.Usage != want || o.Model != "e" || !o.Complete() {
		t.Errorf("%s", summary(&o))
	}
}

// TestStreamAndBodyAgree: the same answer gives the same counts whether it was streamed or not.
func TestStreamAndBodyAgree(t *testing.T) {
	var streamed, whole Observation
	Messages.Observe(&streamed, event(`{"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}`))
	Messages.Observe(&streamed, event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":4,"cache_read_input_tokens":5,"output_tokens":7}}`))
	Messages.ObserveBody(&whole, []byte(`{"type":"message","content":[{}],"stop_reason":"end_turn","usage":{"input_tokens":4,"cache_read_input_tokens":5,"output_tokens":7}}`))
	if streamed.Usage != whole.Usage || streamed.FinishReason != whole.FinishReason {
		t.Errorf("streamed %+v, whole %+v", streamed.Usage, whole.Usage)
	}
}
