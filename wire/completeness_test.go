package wire

import "testing"

func TestCompleteAndAborted(t *testing.T) {
	const (
		role     = `{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`
		one      = `{"choices":[{"index":1,"delta":{"content":"a"}}]}`
		finish0  = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
		finish1  = `{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}`
		far      = `{"choices":[{"index":300,"delta":{"content":"a"}}]}`
		farEnd   = `{"choices":[{"index":300,"delta":{},"finish_reason":"stop"}]}`
		abort    = `{"choices":[{"index":0,"delta":{},"finish_reason":"abort"}]}`
		fault    = `{"error": {"message": "m"}}`
		delta    = `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`
		nullStop = `{"type":"message_delta","delta":{"stop_reason":null}}`
		stop     = `{"type":"message_stop"}`
	)
	tests := []struct {
		name              string
		dialect           Dialect
		events            []string
		complete, aborted bool
	}{
		{"nothing", Chat, nil, false, false},
		{"a lone done", Chat, []string{"[DONE]"}, false, false},
		{"begun", Chat, []string{role, "[DONE]"}, false, false},
		{"finished", Chat, []string{role, finish0}, true, false},
		{"one of two", Chat, []string{role, one, finish0, "[DONE]"}, false, false},
		{"both", Chat, []string{role, one, finish1, finish0}, true, false},
		{"a far choice", Chat, []string{role, far, finish0}, false, false},
		{"a far choice finished", Chat, []string{role, far, finish0, farEnd}, true, false},
		{"error after the finish", Chat, []string{role, finish0, fault, "[DONE]"}, false, false},
		{"thrown out", Chat, []string{role, abort, "[DONE]"}, true, true},
		{"nothing", Messages, nil, false, false},
		{"delta without stop", Messages, []string{delta}, true, false},
		{"stop without delta", Messages, []string{stop}, true, false},
		{"null stop reason", Messages, []string{nullStop}, false, false},
		{"null stop reason and stop", Messages, []string{nullStop, stop}, true, true},
		{"deltas only", Responses, []string{`{"type":"response.output_text.delta","delta":"a"}`}, false, false},
		{"completed", Responses, []string{`{"type":"response.completed","response":{}}`}, true, false},
		{"incomplete", Responses, []string{`{"type":"response.incomplete","response":{}}`}, true, false},
		{"failed", Responses, []string{`{"type":"response.failed","response":{}}`}, false, false},
		{"cancelled", Responses, []string{`{"type":"response.cancelled","response":{}}`}, false, true},
		{"nothing", Other, nil, false, false},
		{"something", Other, []string{"{}"}, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.dialect.Name()+"/"+tt.name, func(t *testing.T) {
			var o Observation
			for range 2 { // the second time after Reset
				o.Reset()
				for _, e := range tt.events {
					tt.dialect.Observe(&o, event(e))
				}
				if o.Complete() != tt.complete || o.Aborted() != tt.aborted {
					t.Errorf("complete %t aborted %t", o.Complete(), o.Aborted())
				}
			}
		})
	}
}

func TestBodyThatIsNoAnswer(t *testing.T) {
	for _, d := range []Dialect{Messages, Chat, Completions, Responses} {
		for _, body := range []string{"", "{}", "null", "<html>", "[]", `{"choices":[{"finish_reason":"stop"}],"content":[{"type":"te`} {
			var o Observation
			d.ObserveBody(&o, []byte(body))
			if o.Complete() {
				t.Errorf("%s: %q counts as a complete answer", d.Name(), body)
			}
		}
	}
}
