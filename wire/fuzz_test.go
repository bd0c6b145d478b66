package wire

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"
)

func seedStreams(f *testing.F) {
	for _, c := range captures(f, "streams") {
		f.Add(c.body[:min(len(c.body), 3000)], 200)
	}
	f.Add([]byte("data: {\"error\": {\"message\": \"m\", \"code\": \"429\"}}\n\ndata: [DONE]\n\n"), 7)
	f.Add([]byte("{\"error\":{\"message\":\"\\ud800\"}"), 3)
}

// FuzzObserve: no stream makes an observer panic, and where it is cut does not matter.
func FuzzObserve(f *testing.F) {
	seedStreams(f)
	f.Fuzz(func(t *testing.T, stream []byte, cut int) {
		cut = min(max(cut, 0), len(stream))
		for _, d := range All() {
			var whole, parts Observation
			want := observe(d, &whole, stream)
			got := observe(d, &parts, stream[:cut], stream[cut:])
			if len(got) != len(want) || summary(&whole) != summary(&parts) {
				t.Fatalf("%s: cut at %d\n%s\n%s", d.Name(), cut, summary(&whole), summary(&parts))
			}
			checkWords(t, &whole)
		}
	})
}

func checkWords(t *testing.T, o *Observation) {
	t.Helper()
	if len(o.ID) > 256 || len(o.Model) > 256 || len(o.FinishReason) > 64 {
		t.Fatalf("unbounded names: %s", summary(o))
	}
	if u := o.Usage; u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite < 0 || u.Reasoning < 0 {
		t.Fatalf("negative usage: %+v", u)
	}
	if f := o.Failure; f != nil && (len(f.Message) > maxWords || len(f.Type) > 64) {
		t.Fatalf("unbounded failure: %+v", f)
	}
}

func FuzzObserveBody(f *testing.F) {
	for _, dir := range []string{"bodies", "errors"} {
		for _, c := range captures(f, dir) {
			f.Add(c.body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, d := range All() {
			var o Observation
			d.ObserveBody(&o, body)
			checkWords(t, &o)
		}
		failure := ReadFailure(0, body)
		checkWords(t, &Observation{Failure: failure})
		for _, d := range All() {
			if e := d.AppendErrorBody(nil, Error{Message: failure.Message, Type: failure.Type}); !json.Valid(e) || !utf8.Valid(e) {
				t.Fatalf("%s: %s", d.Name(), e)
			}
		}
	})
}

// FuzzReadHead: what is accepted can be rewritten; a valid JSON object without repeated names is accepted or refused for
// one of the members that the gateway acts on.
func FuzzReadHead(f *testing.F) {
	f.Add([]byte(`{"model":"a","stream":true,"max_tokens":5,"stream_options":{"include_usage":false},"metadata":{"user_id":"{\"session_id\":\"x\"}"}}`))
	f.Add([]byte(" {\"m\\u006fdel\":\"\\ud800\",\"a\":[{},[1.5e3,null,\"\\\\\"]]} "))
	f.Add([]byte(`{"rid":1,"request_id":null,"max_completion_tokens":null,"prompt_cache_key":"k"}`))
	f.Add(agentBody(3000))
	r := Rewrite{Model: "other", MaxTokens: 77, IncludeUsage: true, RIDField: "rid", RID: "r"}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, d := range All() {
			var h, again Head
			if err := ReadHead(d, body, &h); err != nil {
				if bad := err.(*BadBody); bad.Offset < 0 || bad.Offset > len(body) || bad.Message == "" {
					t.Fatalf("%+v for %q", bad, body)
				}
				continue
			}
			for _, s := range []span{h.model, h.stream, h.maxTokens[0], h.maxTokens[1], h.options, h.usage, h.rid, h.requestID} {
				if s.from < 0 || s.to < s.from || s.to > len(body) {
					t.Fatalf("span %+v of %q", s, body)
				}
			}
			out := h.AppendRewritten(nil, body, r)
			if err := ReadHead(d, out, &again); err != nil || again.Model != "other" {
				t.Fatalf("%q became %q: %v, model %q", body, out, err, again.Model)
			}
			if valid(body) && !valid(out) {
				t.Fatalf("%q became %q, which is not valid JSON", body, out)
			}
		}
	})
}

func valid(b []byte) bool { return json.Valid(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))) }

// FuzzScan: the cursor agrees with encoding/json about every valid text.
func FuzzScan(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"c\"\\"},[],{}],"d":-1.5e+3}`))
	f.Add([]byte(`[true,false,null,""]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := cursor{b: text}
		c.skip()
		c.peek()
		if json.Valid(text) && !c.bad && c.i != len(text) {
			t.Fatalf("%q: stopped at %d", text, c.i)
		}
		if json.Valid(text) && c.bad && c.why != "nested too deep" {
			t.Fatalf("%q: %s at %d", text, c.why, c.at)
		}
	})
}
