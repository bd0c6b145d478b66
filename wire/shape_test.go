package wire

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tracegate/sse"
)

// templates are ordinary content events. TEXT is the inside of the generated string, NUMBER a sequence number, PAD a
// string of no meaning.
var templates = []struct {
	name    string
	dialect Dialect
	event   string // event name
	format  string
}{
	{"chat", Chat, "", `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1796075362,"model":"tiny","choices":[{"index":0,"delta":{"content":"TEXT"},"logprobs":null,"finish_reason":null,"token_ids":null}]}`},
	{"chat reasoning", Chat, "", `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1796075362,"model":"tiny","choices":[{"index":0,"delta":{"reasoning":"TEXT"},"finish_reason":null}]}`},
	{"chat tool", Chat, "", `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":null,"tool_calls":[{"index":0,"function":{"arguments":"TEXT"}}]},"finish_reason":null}]}`},
	{"chat obfuscated", Chat, "", `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"TEXT"},"finish_reason":null}],"obfuscation":"PAD"}`},
	{"completions", Completions, "", `{"id":"cmpl-1","object":"text_completion","created":1796075385,"model":"tiny","choices":[{"index":0,"text":"TEXT","logprobs":null,"finish_reason":null,"stop_reason":null}]}`},
	{"messages", Messages, "content_block_delta", `{"type":"content_block_delta","delta":{"type":"text_delta","text":"TEXT"},"index":0}`},
	{"messages thinking", Messages, "content_block_delta", `{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"TEXT"},"index":0}`},
	{"responses", Responses, "response.output_text.delta", `{"content_index":0,"delta":"TEXT","item_id":"msg_1","logprobs":[],"output_index":0,"sequence_number":NUMBER,"type":"response.output_text.delta"}`},
	{"responses obfuscated", Responses, "response.output_text.delta", `{"type":"response.output_text.delta","sequence_number":NUMBER,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"TEXT","logprobs":[],"obfuscation":"PAD"}`},
}

func render(format, text string, sequence int64, pad string) []byte {
	return []byte(strings.NewReplacer("TEXT", text, "NUMBER", strconv.FormatInt(sequence, 10), "PAD", pad).Replace(format))
}

func named(name string, data []byte) sse.Event {
	if name == "" {
		return sse.Event{Data: data}
	}
	return sse.Event{Name: []byte(name), Data: data}
}

// TestFastPathIsUsed: the second event of a shape is not scanned.
func TestFastPathIsUsed(t *testing.T) {
	for _, tt := range templates {
		t.Run(tt.name, func(t *testing.T) {
			var o Observation
			if k := tt.dialect.Observe(&o, named(tt.event, render(tt.format, `first \"one\"`, 9, "ab"))); k != Content {
				t.Fatalf("the first event is %v", k)
			}
			ev := named(tt.event, render(tt.format, `an\n\"other\\`, 10, "abcd"))
			if o.match(&ev) != Content {
				t.Fatal("the second event does not fit the learned shape")
			}
			if o.HasSequence && o.Sequence != 10 {
				t.Errorf("sequence %d, want 10", o.Sequence)
			}
			for _, text := range []string{``, `a\`, `a"`, `a","finish_reason":"stop`} {
				ev := named(tt.event, render(tt.format, text, 11, "x"))
				if o.match(&ev) != 0 {
					t.Errorf("%q fits the shape and must not", text)
				}
			}
			ev = named(tt.event, append(render(tt.format, "a", 11, "x"), `,{"error":"x"}`...))
			if o.match(&ev) != 0 {
				t.Error("an event with something after it fits the shape")
			}
			ev = named(tt.event, render(tt.format, "a", 12, "x"))
			if ev.Name = []byte("error"); o.match(&ev) != 0 {
				t.Error("an event called error fits the shape")
			}
		})
	}
}

// TestOnlyPlainContentIsLearned: an event that is more than content is more each time.
func TestOnlyPlainContentIsLearned(t *testing.T) {
	var o Observation
	for range 3 {
		if k := Chat.Observe(&o, event(`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`)); k != Content|Finish {
			t.Errorf("last content is %v", k)
		}
		if k := Chat.Observe(&o, event(`{"choices":[{"delta":{"content":"a"}}],"usage":{"completion_tokens":1}}`)); k != Content|UsageSeen {
			t.Errorf("content with usage is %v", k)
		}
	}
}

// TestFastPathMeansTheSame: whatever stands in the holes, an Observation that has learned shapes says the same as one
// that scans every event.
func TestFastPathMeansTheSame(t *testing.T) {
	raw := rapid.OneOf(
		rapid.StringMatching(`[a-z ]{0,6}`),
		rapid.StringOf(rapid.SampledFrom([]rune(`ab"\{}[]:,n0 é`))),
		rapid.SampledFrom([]string{`\"`, `\\`, `\\\"`, `","error":{"message":"x"},"y":"`, `"},"finish_reason":"stop","z":{"q":"`}),
	)
	rapid.Check(t, func(t *rapid.T) {
		var learned Observation
		dialect := rapid.SampledFrom([]Dialect{Chat, Completions, Messages, Responses}).Draw(t, "dialect")
		for range rapid.IntRange(2, 12).Draw(t, "events") {
			tt := rapid.SampledFrom(templates).Filter(func(tt struct {
				name    string
				dialect Dialect
				event   string
				format  string
			}) bool {
				return tt.dialect == dialect
			}).Draw(t, "template")
			data := render(tt.format, raw.Draw(t, "text"), rapid.Int64Range(0, 1e6).Draw(t, "sequence"), raw.Draw(t, "pad"))
			if rapid.Bool().Draw(t, "drop a byte") {
				i := rapid.IntRange(0, len(data)-1).Draw(t, "at")
				data = slices.Delete(data, i, i+1)
			}
			var fresh Observation
			ev := named(tt.event, data)
			want := dialect.Observe(&fresh, ev)
			if got := dialect.Observe(&learned, ev); got != want {
				t.Fatalf("%s is %v for the one that learned, %v when scanned", data, got, want)
			}
			if want == Content && fresh.Malformed == 0 && fresh.HasSequence && learned.Sequence != fresh.Sequence {
				t.Fatalf("%s: sequence %d, want %d", data, learned.Sequence, fresh.Sequence)
			}
		}
	})
}
