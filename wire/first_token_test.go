package wire

import (
	"testing"

	"tracegate/sse"
)

// TestWhatIsContent is the definition of the first token, event by event.
func TestWhatIsContent(t *testing.T) {
	tests := []struct {
		name    string
		dialect Dialect
		event   string // name, a blank, data; or data alone
		want    Kind
	}{
		{"role only", Chat, `{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`, 0},
		{"role with null", Chat, `{"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}`, 0},
		{"text", Chat, `{"choices":[{"index":0,"delta":{"content":"a"}}]}`, Content},
		{"text with escapes", Chat, `{"choices":[{"delta":{"content":"\"\\"}}]}`, Content},
		{"text in parts", Chat, `{"choices":[{"delta":{"content":[{"type":"text","text":"a"}]}}]}`, Content},
		{"no parts", Chat, `{"choices":[{"delta":{"content":[ ]}}]}`, 0},
		{"reasoning", Chat, `{"choices":[{"index":0,"delta":{"reasoning":"a"}}]}`, Content},
		{"reasoning_content", Chat, `{"choices":[{"index":0,"delta":{"reasoning_content":"a"}}]}`, Content},
		{"empty reasoning", Chat, `{"choices":[{"index":0,"delta":{"reasoning_content":""}}]}`, 0},
		{"refusal", Chat, `{"choices":[{"index":0,"delta":{"refusal":"no"}}]}`, Content},
		{"audio", Chat, `{"choices":[{"index":0,"delta":{"audio":{"id":"a","data":"AA"}}}]}`, Content},
		{"audio id only", Chat, `{"choices":[{"index":0,"delta":{"audio":{"id":"a"}}}]}`, 0},
		{"tool name", Chat, `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}}]}`, Content},
		{"tool arguments", Chat, `{"choices":[{"delta":{"content":null,"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}`, Content},
		{"tool id only", Chat, `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"arguments":""}}]}}]}`, 0},
		{"arguments as object", Chat, `{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":{"a":1}}}]}}]}`, Content},
		{"custom tool", Chat, `{"choices":[{"delta":{"tool_calls":[{"custom":{"input":"x"}}]}}]}`, Content},
		{"old function call", Chat, `{"choices":[{"delta":{"function_call":{"arguments":"x"}}}]}`, Content},
		{"text and finish", Chat, `{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`, Content | Finish},
		{"finish", Chat, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, Finish},
		{"empty finish is none", Chat, `{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}`, Content},
		{"usage chunk", Chat, `{"choices":[],"usage":{"prompt_tokens":1}}`, UsageSeen | UsageOnly},
		{"usage chunk with null choices", Chat, `{"choices":null,"usage":{"prompt_tokens":1}}`, UsageSeen | UsageOnly},
		{"usage before choices", Chat, `{"usage":{"prompt_tokens":1},"choices":[ ]}`, UsageSeen | UsageOnly},
		{"usage with a choice", Chat, `{"choices":[{"delta":{}}],"usage":{"prompt_tokens":1}}`, UsageSeen},
		{"null usage", Chat, `{"choices":[{"delta":{"content":"a"}}],"usage":null}`, Content},
		{"no choices, null usage", Chat, `{"choices":[],"usage":null}`, 0},
		{"content filter chunk", Chat, `{"choices":[],"prompt_filter_results":[]}`, 0},
		{"done", Chat, `[DONE]`, Terminal},
		{"error", Chat, `{"error": {"message": "m", "code": 500}}`, Failed},
		{"error as text", Chat, `{"error":"m"}`, Failed},
		{"finish reason error", Chat, `{"choices":[{"delta":{},"finish_reason":"error"}]}`, Finish | Failed},
		{"no error", Chat, `{"error":null,"choices":[{"delta":{"content":"a"}}]}`, Content},
		{"flat error", Chat, `{"object":"error","message":"m","code":400}`, Failed},
		{"error by name", Chat, `error {"message":"m"}`, Failed},
		{"word error in the text", Chat, `{"choices":[{"delta":{"content":"\"error\":{\"message\":1}"}}]}`, Content},
		{"no object", Chat, `ping`, 0},
		{"a list", Chat, `[1]`, 0},

		{"text", Completions, `{"choices":[{"index":0,"text":"a","finish_reason":null}]}`, Content},
		{"empty text", Completions, `{"choices":[{"index":0,"text":"","finish_reason":null}]}`, 0},
		{"text and finish", Completions, `{"choices":[{"text":"a","finish_reason":"length"}]}`, Content | Finish},
		{"done", Completions, `[DONE]`, Terminal},

		{"start", Messages, `message_start {"type":"message_start","message":{"id":"m","usage":{"input_tokens":1}}}`, UsageSeen},
		{"ping", Messages, `ping {"type": "ping"}`, 0},
		{"block", Messages, `content_block_start {"type":"content_block_start","content_block":{"type":"text","text":""}}`, 0},
		{"block with text", Messages, `{"type":"content_block_start","content_block":{"type":"text","text":"a"}}`, Content},
		{"tool block", Messages, `{"type":"content_block_start","content_block":{"type":"tool_use","name":"f","input":{}}}`, 0},
		{"text", Messages, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`, Content},
		{"type at the end", Messages, `{"delta":{"text":"a"},"type":"content_block_delta"}`, Content},
		{"type by name alone", Messages, `content_block_delta {"delta":{"text":"a"}}`, Content},
		{"thinking", Messages, `{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"a"}}`, Content},
		{"arguments", Messages, `{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}`, Content},
		{"no arguments", Messages, `{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":""}}`, 0},
		{"signature", Messages, `{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"ab"}}`, 0},
		{"block stop", Messages, `{"type":"content_block_stop","index":0}`, 0},
		{"message delta", Messages, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`, UsageSeen | Finish},
		{"stop", Messages, `message_stop {"type":"message_stop"}`, Terminal},
		{"stop without data", Messages, `message_stop `, Terminal},
		{"error", Messages, `error {"type":"error","error":{"type":"overloaded_error","message":"m"}}`, Failed},
		{"error without name", Messages, `{"type":"error","error":{"type":"overloaded_error","message":"m"}}`, Failed},
		{"error of another shape", Messages, `error {"message":"m"}`, Failed},
		{"error that is text", Messages, `error oops`, Failed},
		{"OpenAI's error", Messages, `{"error":{"message":"m"}}`, Failed},
		{"a done that does not belong", Messages, `[DONE]`, 0},

		{"created", Responses, `response.created {"type":"response.created","sequence_number":0,"response":{"id":"r","usage":null}}`, 0},
		{"in progress", Responses, `{"type":"response.in_progress","response":{"error":null}}`, 0},
		{"item", Responses, `{"type":"response.output_item.added","item":{"type":"function_call","name":"f"}}`, 0},
		{"part", Responses, `{"type":"response.content_part.added","part":{"text":""}}`, 0},
		{"text", Responses, `{"type":"response.output_text.delta","sequence_number":4,"delta":"a"}`, Content},
		{"text, type at the end", Responses, `{"delta":"a","sequence_number":4,"type":"response.output_text.delta"}`, Content},
		{"empty text", Responses, `{"type":"response.output_text.delta","delta":""}`, 0},
		{"reasoning", Responses, `{"type":"response.reasoning_text.delta","delta":"a"}`, Content},
		{"summary", Responses, `{"type":"response.reasoning_summary_text.delta","delta":"a"}`, Content},
		{"arguments", Responses, `{"type":"response.function_call_arguments.delta","delta":"{"}`, Content},
		{"custom input", Responses, `{"type":"response.custom_tool_call_input.delta","delta":"x"}`, Content},
		{"mcp", Responses, `{"type":"response.mcp_call_arguments.delta","delta":"x"}`, Content},
		{"code", Responses, `{"type":"response.code_interpreter_call_code.delta","delta":"x"}`, Content},
		{"refusal", Responses, `{"type":"response.refusal.delta","delta":"x"}`, Content},
		{"audio", Responses, `{"type":"response.audio.delta","delta":"AA"}`, Content},
		{"delta as object", Responses, `{"type":"response.reasoning.delta","delta":{"text":"x"}}`, Content},
		{"text done", Responses, `{"type":"response.output_text.done","text":"a"}`, 0},
		{"not a delta", Responses, `{"type":"response.output_text.done","delta":"a"}`, 0},
		{"foreign delta", Responses, `{"type":"x.delta","delta":"a"}`, 0},
		{"keepalive", Responses, `keepalive {"type":"keepalive"}`, 0},
		{"completed", Responses, `{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":1}}}`, UsageSeen | Finish | Terminal},
		{"incomplete", Responses, `{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}`, Finish | Terminal},
		{"failed", Responses, `{"type":"response.failed","response":{"error":{"code":"server_error","message":"m"}}}`, Failed | Terminal},
		{"cancelled", Responses, `{"type":"response.cancelled","response":{"status":"cancelled"}}`, Finish | Terminal},
		{"error", Responses, `error {"type":"error","code":"server_error","message":"m","sequence_number":3}`, Failed},
		{"error without name", Responses, `{"type":"error","code":"server_error","message":"m"}`, Failed},

		{"any event", Other, `{"x":1}`, Content},
		{"text", Other, `x`, Content},
		{"done", Other, `[DONE]`, Terminal},
		{"error", Other, `{"error":{"message":"m"}}`, Failed},
	}
	for _, tt := range tests {
		t.Run(tt.dialect.Name()+"/"+tt.name, func(t *testing.T) {
			var o Observation
			if got := tt.dialect.Observe(&o, event(tt.event)); got != tt.want {
				t.Errorf("%s is %v, want %v", tt.event, got, tt.want)
			}
			if failed := tt.want&Failed != 0; failed != (o.Failure != nil) {
				t.Errorf("failure %v", o.Failure)
			}
			if o.HasContent != (tt.want&Content != 0) {
				t.Errorf("HasContent is %t", o.HasContent)
			}
		})
	}
}

// event reads "name data" or "data".
func event(s string) sse.Event {
	for i, ch := range s {
		switch {
		case ch == ' ' && i > 0:
			ev := sse.Event{Name: []byte(s[:i])}
			if s[i+1:] != "" {
				ev.Data = []byte(s[i+1:])
			}
			return ev
		case (ch < 'a' || ch > 'z') && ch != '_' && ch != '.':
			return sse.Event{Data: []byte(s)}
		}
	}
	return sse.Event{Data: []byte(s)}
}

func TestOversizeEventIsKnownByItsName(t *testing.T) {
	var o Observation
	k := Responses.Observe(&o, sse.Event{Name: []byte("response.completed"), Oversize: true})
	if k != Finish|Terminal || !o.Complete() || o.Uninspected != 1 {
		t.Errorf("%v %s", k, summary(&o))
	}
	if k := Chat.Observe(&o, sse.Event{Oversize: true}); k != 0 || o.Uninspected != 2 {
		t.Errorf("chat: %v", k)
	}
}
