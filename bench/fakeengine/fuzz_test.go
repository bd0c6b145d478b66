package fakeengine

import (
	"encoding/json"
	"testing"
)

func FuzzParseNeverPanicsAndAlwaysAnswers(f *testing.F) {
	f.Add("chat", []byte(`{"model":"m","n":3,"max_tokens":9,`+hello+`}`))
	f.Add("messages", []byte(`{"model":"m","messages":[{"role":"user","content":"FAKE-USE-TOOLS=x FAKE-REASON-3"}],"tools":[{"name":"x","input_schema":{"required":["a"],"properties":{"a":{"type":"array","items":{"type":"object","required":["b"]}}}}}]}`))
	f.Add("responses", []byte(`{"input":"FAKE-USE-TOOL","ignore_eos":true,"max_output_tokens":-4}`))
	f.Add("completions", []byte(`{"prompt":["a",""],"max_tokens":0}`))
	e := New(Options{AnyModel: true, MaxModelLen: 256})
	f.Cleanup(e.Close)
	f.Fuzz(func(t *testing.T, api string, body []byte) {
		switch api {
		case "chat", "messages", "responses", "completions":
		default:
			return
		}
		c, fail := e.parse(api, body)
		if fail != nil {
			if fail.status < 400 || !json.Valid(fail.body(api, VLLM)) {
				t.Errorf("refusal %+v", fail)
			}
			return
		}
		a := e.compose(c)
		if a.total < 1 {
			t.Errorf("an answer of %d tokens", a.total)
		}
		for i := range min(a.total, 300) {
			if p := a.piece(0, i); !json.Valid(appendString(nil, p.text)) {
				t.Errorf("token %d: %q", i, p.text)
			}
		}
	})
}
