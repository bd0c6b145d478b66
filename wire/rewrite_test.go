package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRewrite(t *testing.T) {
	tests := []struct {
		name    string
		dialect Dialect
		body    string
		r       Rewrite
		want    string
	}{
		{"nothing", Chat, ` {"model":"a"} `, Rewrite{}, ` {"model":"a"} `},
		{"same model", Chat, `{"model":"a"}`, Rewrite{Model: "a"}, `{"model":"a"}`},
		{"model", Chat, `{"n":1.0, "model" : "a" ,"x":"\ud800"}`, Rewrite{Model: "b\"/é"}, `{"n":1.0, "model" : "b\"/é" ,"x":"\ud800"}`},
		{"model missing", Chat, `{"n":1}`, Rewrite{Model: "b"}, `{"model":"b","n":1}`},
		{"empty object", Chat, `{ }`, Rewrite{Model: "b", MaxTokens: 3}, `{"model":"b","max_tokens":3 }`},
		{"escaped name", Chat, `{"m\u006fdel":"a"}`, Rewrite{Model: "b"}, `{"m\u006fdel":"b"}`},
		{"limit", Chat, `{"max_tokens":100}`, Rewrite{MaxTokens: 5}, `{"max_tokens":5}`},
		{"limit the same", Chat, `{"max_tokens":5}`, Rewrite{MaxTokens: 5}, `{"max_tokens":5}`},
		{"both limits", Chat, `{"max_tokens":100,"max_completion_tokens":200}`, Rewrite{MaxTokens: 5}, `{"max_tokens":5,"max_completion_tokens":5}`},
		{"the limit that does not win", Chat, `{"max_tokens":100,"max_completion_tokens":5}`, Rewrite{MaxTokens: 5}, `{"max_tokens":5,"max_completion_tokens":5}`},
		{"a lower limit stays", Chat, `{"max_tokens":3,"max_completion_tokens":200}`, Rewrite{MaxTokens: 5}, `{"max_tokens":3,"max_completion_tokens":5}`},
		{"one of two null", Chat, `{"max_tokens":100,"max_completion_tokens":null}`, Rewrite{MaxTokens: 5}, `{"max_tokens":5,"max_completion_tokens":null}`},
		{"limit null", Chat, `{"max_completion_tokens":null}`, Rewrite{MaxTokens: 5}, `{"max_completion_tokens":5}`},
		{"limit missing", Responses, `{"a":1}`, Rewrite{MaxTokens: 5}, `{"max_output_tokens":5,"a":1}`},
		{"limit missing, Messages", Messages, `{"a":1}`, Rewrite{MaxTokens: 5}, `{"max_tokens":5,"a":1}`},
		{"no limit in embeddings", Embeddings, `{"a":1}`, Rewrite{MaxTokens: 5}, `{"a":1}`},
		{"usage added", Chat, `{"stream":true}`, Rewrite{IncludeUsage: true}, `{"stream_options":{"include_usage":true},"stream":true}`},
		{"usage into empty options", Chat, `{"stream":true,"stream_options":{}}`, Rewrite{IncludeUsage: true}, `{"stream":true,"stream_options":{"include_usage":true}}`},
		{"usage into options", Completions, `{"stream":true,"stream_options":{"a":{}}}`, Rewrite{IncludeUsage: true}, `{"stream":true,"stream_options":{"include_usage":true,"a":{}}}`},
		{"usage false", Chat, `{"stream_options":{"a":1,"include_usage":false},"stream":true}`, Rewrite{IncludeUsage: true}, `{"stream_options":{"a":1,"include_usage":true},"stream":true}`},
		{"usage null", Chat, `{"stream_options":{"include_usage":null},"stream":true}`, Rewrite{IncludeUsage: true}, `{"stream_options":{"include_usage":true},"stream":true}`},
		{"options null", Chat, `{"stream":true,"stream_options":null}`, Rewrite{IncludeUsage: true}, `{"stream":true,"stream_options":{"include_usage":true}}`},
		{"usage there", Chat, `{"stream":true,"stream_options":{"include_usage":true}}`, Rewrite{IncludeUsage: true}, `{"stream":true,"stream_options":{"include_usage":true}}`},
		{"usage without a stream", Chat, `{"a":1}`, Rewrite{IncludeUsage: true}, `{"a":1}`},
		{"usage in Messages", Messages, `{"stream":true}`, Rewrite{IncludeUsage: true}, `{"stream":true}`},
		{"id", Chat, `{"a":1}`, Rewrite{RIDField: "rid", RID: "r-1"}, `{"rid":"r-1","a":1}`},
		{"id there", Responses, `{"a":1,"request_id":["x"]}`, Rewrite{RIDField: "request_id", RID: "resp_r-1"}, `{"a":1,"request_id":"resp_r-1"}`},
		{"all at once", Chat, "\xef\xbb\xbf {\"stream\":true,\"model\":\"a\",\"z\":1e5}", Rewrite{"b", 7, true, "rid", "r"},
			"\xef\xbb\xbf {\"max_tokens\":7,\"stream_options\":{\"include_usage\":true},\"rid\":\"r\",\"stream\":true,\"model\":\"b\",\"z\":1e5}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var h Head
			if err := ReadHead(tt.dialect, []byte(tt.body), &h); err != nil {
				t.Fatal(err)
			}
			got := string(h.AppendRewritten([]byte("x"), []byte(tt.body), tt.r))
			if got != "x"+tt.want {
				t.Errorf("got  %s\nwant %s", got[1:], tt.want)
			}
			if needs := tt.body != tt.want; h.NeedsRewrite(tt.r) != needs {
				t.Errorf("NeedsRewrite is %t", !needs)
			}
		})
	}
}

// member is one member of a drawn body.
type member struct{ name, value string }

func drawBody(t *rapid.T) (body string, members []member) {
	text := rapid.StringOf(rapid.SampledFrom([]rune(`ab {}[],:é世`)))
	value := rapid.OneOf(
		rapid.Map(text, strconv.Quote),
		rapid.SampledFrom([]string{`1.0`, `1e5`, `-0`, `true`, `null`, `[ ]`, `{}`, `[1,{"model":"x"}]`, `{"stream":{"max_tokens":[]}}`,
			`"\ud800"`, `"\\\""`, `"\u00e9\/"`, `12345678901234567890123`}),
	)
	known := map[string]*rapid.Generator[string]{
		"model":                 rapid.SampledFrom([]string{`"a"`, `"a\u0062"`, `""`}),
		"stream":                rapid.SampledFrom([]string{`true`, `false`, `null`}),
		"max_tokens":            rapid.SampledFrom([]string{`5`, `null`, `0`}),
		"max_completion_tokens": rapid.SampledFrom([]string{`5`, `null`, `100000`}),
		"stream_options":        rapid.SampledFrom([]string{`null`, `{}`, `{ "include_usage":false }`, `{"x":[1],"include_usage" : true}`, `{"x":2}`}),
		"rid":                   value, "messages": value, "tools": value, "m\\u006fdelx": value,
	}
	names := []string{"model", "stream", "max_tokens", "max_completion_tokens", "stream_options", "rid", "messages", "tools", "m\\u006fdelx"}
	blank := rapid.SampledFrom([]string{"", "", " ", "\n\t"})
	var s strings.Builder
	s.WriteString(blank.Draw(t, "blank") + "{" + blank.Draw(t, "blank"))
	for i, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, len(names), rapid.ID).Draw(t, "names") {
		m := member{name, known[name].Draw(t, name)}
		members = append(members, m)
		if i > 0 {
			s.WriteString("," + blank.Draw(t, "blank"))
		}
		s.WriteString(`"` + name + `"` + blank.Draw(t, "blank") + ":" + blank.Draw(t, "blank") + m.value + blank.Draw(t, "blank"))
	}
	s.WriteString("}" + blank.Draw(t, "blank"))
	return s.String(), members
}

// TestRewriteTouchesNothingElse: after a rewrite the edited members have the asked values, all others the same text in
// the same order, and every byte of the original that is not in an edited value is still there, in order.
func TestRewriteTouchesNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body, members := drawBody(t)
		dialect := rapid.SampledFrom(All()).Draw(t, "dialect")
		r := Rewrite{
			Model:        rapid.SampledFrom([]string{"", "a", "Qwen/\"x\""}).Draw(t, "model"),
			MaxTokens:    rapid.SampledFrom([]int64{0, 5, 8192}).Draw(t, "limit"),
			IncludeUsage: rapid.Bool().Draw(t, "usage"),
		}
		if rapid.Bool().Draw(t, "rid") {
			r.RIDField, r.RID = "rid", "r-1"
		}
		var h, again Head
		if err := ReadHead(dialect, []byte(body), &h); err != nil {
			t.Fatal(err, body)
		}
		out := h.AppendRewritten(nil, []byte(body), r)
		if !json.Valid(out) {
			t.Fatalf("%s became %s", body, out)
		}
		if changed := string(out) != body; changed && !h.NeedsRewrite(r) {
			t.Fatalf("%s became %s without a need", body, out)
		}
		if err := ReadHead(dialect, out, &again); err != nil {
			t.Fatal(err, string(out))
		}
		edited := map[string]bool{"model": r.Model != "", "rid": r.RIDField != "", "max_tokens": r.MaxTokens > 0,
			"max_completion_tokens": r.MaxTokens > 0, "stream_options": r.IncludeUsage}
		rest := out
		for _, m := range members {
			want := `"` + m.name + `"`
			if i := bytes.Index(rest, []byte(want)); i < 0 {
				t.Fatalf("%s became %s: %s is gone or moved", body, out, m.name)
			} else {
				rest = rest[i+len(want):]
			}
			if edited[m.name] {
				continue
			}
			if i := bytes.Index(rest, []byte(m.value)); i < 0 || strings.Trim(string(rest[:i]), " \n\t:") != "" {
				t.Fatalf("%s became %s: the value of %s changed", body, out, m.name)
			} else {
				rest = rest[i+len(m.value):]
			}
		}
		if r.Model != "" && again.Model != r.Model {
			t.Fatalf("model %q in %s", again.Model, out)
		}
		if r.MaxTokens > 0 && h.keys.maxTokensAdd != "" && again.OverLimit(r.MaxTokens) {
			t.Fatalf("limit %d in %s", again.MaxTokens, out)
		}
		if r.IncludeUsage && h.Stream && h.keys.usageOption && !again.IncludeUsage {
			t.Fatalf("no usage in %s", out)
		}
		if again.NeedsRewrite(Rewrite{Model: r.Model, MaxTokens: r.MaxTokens, IncludeUsage: r.IncludeUsage}) {
			t.Fatalf("%s needs another rewrite", out)
		}
	})
}
