package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestReadHead(t *testing.T) {
	tests := []struct {
		name    string
		dialect Dialect
		body    string
		want    Head // of the exported fields, without the estimate
	}{
		{"empty", Chat, `{}`, Head{MaxTokens: -1}},
		{"blanks and mark", Chat, "\xef\xbb\xbf \r\n{ \"model\" : \"m\" }\n ", Head{Model: "m", HasModel: true, MaxTokens: -1}},
		{"all of Chat", Chat, `{"model":"m","stream":true,"max_tokens":5,"stream_options":{"x":1,"include_usage":true},"prompt_cache_key":"k"}`,
			Head{Model: "m", HasModel: true, Stream: true, MaxTokens: 5, IncludeUsage: true, Session: "k"}},
		{"max_completion_tokens wins", Chat, `{"max_tokens":5,"max_completion_tokens":7}`, Head{MaxTokens: 7}},
		{"max_completion_tokens wins, first", Chat, `{"max_completion_tokens":7,"max_tokens":5}`, Head{MaxTokens: 7}},
		{"null is absent", Chat, `{"max_completion_tokens":null,"max_tokens":5,"stream":null,"stream_options":null}`, Head{MaxTokens: 5}},
		{"zero", Completions, `{"max_tokens":0}`, Head{MaxTokens: 0}},
		{"not Chat's key", Completions, `{"max_completion_tokens":"x"}`, Head{MaxTokens: -1}},
		{"Responses' key", Responses, `{"max_output_tokens":9,"max_tokens":"x","prompt_cache_key":"k"}`, Head{MaxTokens: 9, Session: "k"}},
		{"Messages", Messages, `{"model":"m","max_tokens":9,"metadata":{"user_id":"u-1"},"stream_options":{"include_usage":true}}`,
			Head{Model: "m", HasModel: true, MaxTokens: 9, Session: "u-1"}},
		{"session in JSON in a string", Messages, `{"metadata":{"user_id":"{\"device_id\":\"d\",\"account_uuid\":\"\",\"session_id\":\"s-\\u0031\"}"}}`, Head{MaxTokens: -1, Session: "s-1"}},
		{"JSON without a session", Messages, `{"metadata":{"user_id":"{\"device_id\":\"d\"}"}}`, Head{MaxTokens: -1}},
		{"session after the user", Messages, `{"metadata":{"user_id":"user_1_account_2_session_3-4"}}`, Head{MaxTokens: -1, Session: "3-4"}},
		{"metadata null", Messages, `{"metadata":null}`, Head{MaxTokens: -1}},
		{"user_id null", Messages, `{"metadata":{"user_id":null}}`, Head{MaxTokens: -1}},
		{"session too long", Chat, `{"prompt_cache_key":"` + strings.Repeat("x", 300) + `"}`, Head{MaxTokens: -1}},
		{"session of another type", Chat, `{"prompt_cache_key":5}`, Head{MaxTokens: -1}},
		{"escaped names", Chat, `{"\u006dodel":"a\u00e9\ud83d\ude00\ud800b","strea\u006D":true}`, Head{Model: "aé😀\ufffdb", HasModel: true, Stream: true, MaxTokens: -1}},
		{"model deeper", Chat, `{"x":{"model":1,"stream":2},"messages":[{"model":3}],"y":"\"model\":"}`, Head{MaxTokens: -1}},
		{"lone surrogate in the prompt", Chat, `{"model":"a","messages":[{"content":"x\ud800y"}],"n":1.0}`, Head{Model: "a", HasModel: true, MaxTokens: -1}},
		{"big numbers elsewhere", Chat, `{"seed":123456789012345678901234567890,"t":1e400}`, Head{MaxTokens: -1}},
		{"Other", Other, `{"model":"rerank","query":"q"}`, Head{Model: "rerank", HasModel: true, MaxTokens: -1}},
	}
	h := Head{Model: "left over", Session: "left over", Stream: true}
	for _, tt := range tests {
		t.Run(tt.dialect.Name()+"/"+tt.name, func(t *testing.T) {
			if err := ReadHead(tt.dialect, []byte(tt.body), &h); err != nil {
				t.Fatal(err)
			}
			got := Head{Model: h.Model, HasModel: h.HasModel, Stream: h.Stream, MaxTokens: h.MaxTokens,
				IncludeUsage: h.IncludeUsage, Session: h.Session}
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestReadHeadRefuses(t *testing.T) {
	tests := []struct {
		name   string
		body   string
		offset int
		words  string
	}{
		{"nothing", ``, 0, "not a JSON object"},
		{"a list", ` [1]`, 1, "not a JSON object"},
		{"a string", `"model"`, 0, "not a JSON object"},
		{"form data", `--boundary`, 0, "not a JSON object"},
		{"ends after a comma", `{"model": "tiny", `, 18, "ends in the middle"},
		{"ends in a string", `{"model": "ti`, 13, "ends in the middle"},
		{"ends in an array", `{"model":"a","messages":[{"a":1}`, 32, "ends in the middle"},
		{"something after it", `{"model":"a"} {}`, 14, "after the JSON object"},
		{"NUL after it", "{}\x00", 2, "after the JSON object"},
		{"comma before the end", `{"model":"a",}`, 13, "member name"},
		{"no comma", `{"a":1 "b":2}`, 7, "','"},
		{"no colon", `{"a" 1}`, 5, "':'"},
		{"no value", `{"a":}`, 5, "a value"},
		{"bad literal", `{"a":nul}`, 5, "a value"},
		{"bare word", `{"a":x}`, 5, "a value"},
		{"single quotes", `{'a':1}`, 1, "member name"},
		{"mismatched brackets", `{"a":[1}`, 7, "','"},
		{"comma in an array", `{"a":[1,]}`, 8, "a value"},
		{"comment", `{/**/}`, 1, "member name"},
		{"two models", `{"model":"a","model":"a"}`, 21, `"model" appears twice`},
		{"two models, one escaped", `{"model":"a","m\u006fdel":"b"}`, 26, `"model" appears twice`},
		{"two models, one in another case", `{"model":"a","MODEL":"b"}`, 21, `the key "MODEL" differs from a known one by its case only, which some upstreams do not tell apart`},
		{"a key in another case", `{"Stream":true}`, 10, `the key "Stream" differs from a known one by its case only, which some upstreams do not tell apart`},
		{"two streams", `{"stream":true,"stream":false}`, 24, `"stream" appears twice`},
		{"two limits", `{"max_tokens":5,"max_tokens":6}`, 29, `"max_tokens" appears twice`},
		{"two options", `{"stream_options":{},"stream_options":{}}`, 38, `"stream_options" appears twice`},
		{"model a number", `{"model":5}`, 9, `"model" must be a string`},
		{"model null", `{"model":null}`, 9, `"model" must be a string`},
		{"model a list", `{"model":["a"]}`, 9, `"model" must be a string`},
		{"model too long", `{"model":"` + strings.Repeat("x", 257) + `"}`, 9, "longer than 256"},
		{"stream a number", `{"stream":1}`, 10, `"stream" must be true or false`},
		{"stream text", `{"stream":"true"}`, 10, `"stream" must be true or false`},
		{"limit a fraction", `{"max_tokens":1.5}`, 14, `"max_tokens" must be a whole number`},
		{"limit negative", `{"max_tokens":-1}`, 14, `"max_tokens" must be a whole number`},
		{"limit text", `{"max_completion_tokens":"5"}`, 25, `"max_completion_tokens" must be a whole number`},
		{"limit huge", `{"max_tokens":99999999999999999999}`, 14, `"max_tokens" must be a whole number`},
		{"too deep", `{"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`, 5 + maxDepth, "nested too deep"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var h Head
			err := ReadHead(Chat, []byte(tt.body), &h)
			var bad *BadBody
			if !errors.As(err, &bad) {
				t.Fatalf("error %v, want a *BadBody", err)
			}
			if bad.Offset != tt.offset || !strings.Contains(bad.Message, tt.words) {
				t.Errorf("got %v, want offset %d and %q", err, tt.offset, tt.words)
			}
		})
	}
}

func TestEstimatedTokens(t *testing.T) {
	blob := "iVBORw0KGgo" + strings.Repeat("AAECAwQFBgcICQoL", 5000)
	tests := []struct {
		name      string
		text      string
		low, high int
	}{
		{"English", strings.Repeat("The quick brown fox jumps over the lazy dog. ", 100), 1000, 1300},
		{"Chinese", strings.Repeat("流式推理网关", 100), 390, 430},
		{"Chinese, escaped", strings.Repeat(`\u6d41\u5f0f\u63a8`, 200), 390, 430},
		{"much Chinese, escaped", strings.Repeat(`\u6d41\u5f0f\u63a8`, 20000), 39000, 41000},
		{"four bytes", strings.Repeat("😀", 300), 200, 230},
		{"a picture", blob, 1500, 1550},
		{"a picture in a URL", "data:image/png;base64," + blob, 1500, 1550},
		{"a long word", strings.Repeat("x", 40000), 10000, 10050},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var h Head
			if err := ReadHead(Chat, []byte(`{"model":"m","messages":[{"content":"`+tt.text+`"}]}`), &h); err != nil {
				t.Fatal(err)
			}
			if h.EstimatedTokens < tt.low || h.EstimatedTokens > tt.high {
				t.Errorf("estimated %d tokens, want %d to %d", h.EstimatedTokens, tt.low, tt.high)
			}
		})
	}
}

// agentBody is a request like a coding agent's, of about n bytes: long texts with line ends and quotes, and tools.
func agentBody(n int) []byte {
	var s strings.Builder
	s.WriteString(`{"model":"qwen3-32b","max_tokens":32000,"stream":true,"messages":[`)
	text := strings.Repeat(`The quick brown fox\njumps over the lazy dog, says \"why\" and goes on to do more of the same.\n`, 20)
	for i := 0; s.Len() < n*9/10; i++ {
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, `{"role":"user","content":[{"type":"text","text":"%s"}]}`, text)
	}
	s.WriteString(`],"tools":[`)
	for i := 0; s.Len() < n; i++ {
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, `{"name":"tool%d","description":"does a thing","input_schema":{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer","minimum":0}},"required":["path"]}}`, i)
	}
	s.WriteString(`]}`)
	return []byte(s.String())
}
