//go:build !race

package wire

import "testing"

func noAllocs(t *testing.T, name string, f func()) {
	t.Helper()
	f()
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%s: %v allocations, want none", name, n)
	}
}

// TestEventsDoNotAllocate: neither an event that fits a shape nor one that is scanned.
func TestEventsDoNotAllocate(t *testing.T) {
	for _, tt := range templates {
		var o Observation
		plain := named(tt.event, render(tt.format, "hello", 10, "pad"))
		quoted := named(tt.event, render(tt.format, `say \"hello\"`, 11, "pad"))
		noAllocs(t, tt.name+" fast", func() { tt.dialect.Observe(&o, plain) })
		noAllocs(t, tt.name+" quoted", func() { tt.dialect.Observe(&o, quoted) })
		noAllocs(t, tt.name+" scanned", func() {
			o.shapes.of[0].n, o.shapes.of[1].n = 0, 0
			tt.dialect.Observe(&o, quoted)
		})
	}
	for _, e := range []struct {
		dialect Dialect
		data    string
	}{
		{Chat, `{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":3,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":2}}}`},
		{Chat, `{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`},
		{Chat, "[DONE]"},
		{Messages, `{"type":"message_start","message":{"id":"m","model":"m","usage":{"input_tokens":1}}}`},
		{Messages, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`},
		{Responses, `{"type":"response.completed","sequence_number":12,"response":{"id":"r","status":"completed","usage":{"input_tokens":1}}}`},
	} {
		var o Observation
		ev := event(e.data)
		noAllocs(t, e.data, func() { e.dialect.Observe(&o, ev) })
	}
}

func TestReadHeadDoesNotAllocate(t *testing.T) {
	body := agentBody(200 << 10)
	var h Head
	for _, d := range All() {
		noAllocs(t, d.Name(), func() {
			if err := ReadHead(d, body, &h); err != nil {
				t.Fatal(err)
			}
		})
	}
	escaped := []byte(`{"m\u006fdel":"a\u0062c","metadata":{"user_id":"{\"device_id\":\"d\",\"session_id\":\"s-1\"}"},"an_unknown_name_of_more_than_thirty_two_bytes":1}`)
	noAllocs(t, "escapes", func() {
		if err := ReadHead(Messages, escaped, &h); err != nil || h.Model != "abc" || h.Session != "s-1" {
			t.Fatal(err, h)
		}
	})
}

func TestRewriteDoesNotAllocate(t *testing.T) {
	body := agentBody(20 << 10)
	var h Head
	if err := ReadHead(Chat, body, &h); err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 0, len(body)+1024)
	r := Rewrite{Model: "other", MaxTokens: 5, IncludeUsage: true, RIDField: "rid", RID: "r"}
	noAllocs(t, "AppendRewritten", func() { dst = h.AppendRewritten(dst[:0], body, r) })
	noAllocs(t, "NeedsRewrite", func() { h.NeedsRewrite(r) })
	noAllocs(t, "AppendKeepalive", func() {
		for _, d := range all {
			dst = d.AppendKeepalive(dst[:0])
		}
	})
}
