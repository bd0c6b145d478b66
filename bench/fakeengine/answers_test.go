package fakeengine

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
)

const tools = `"tools":[{"type":"function","function":{"name":"get_time","parameters":{"type":"object","required":["zone","n"],"properties":{"zone":{"type":"string","enum":["utc"]},"n":{"type":"integer"}}}}}]`

func TestAToolIsCalledOnTheFirstTurnOnly(t *testing.T) {
	_, url := started(t, Options{})
	c := client(t)
	first := `{"role":"user","content":"FAKE-USE-TOOL please MARK-1f"}`
	ask := func(turns string) string {
		return readAll(t, post(t, c, url+"/v1/chat/completions", `{"model":"fake-model","messages":[`+turns+`],`+tools+`}`).Body)
	}
	var got struct {
		Choices []struct {
			FinishReason string `json:"finish_reason"`
			Message      struct {
				Content   *string `json:"content"`
				ToolCalls []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
		}
	}
	if err := json.Unmarshal([]byte(ask(first)), &got); err != nil {
		t.Fatal(err)
	}
	ch := got.Choices[0]
	if ch.FinishReason != "tool_calls" || ch.Message.Content != nil || len(ch.Message.ToolCalls) != 1 ||
		ch.Message.ToolCalls[0].Function.Name != "get_time" || ch.Message.ToolCalls[0].Function.Arguments != `{"zone":"utc","n":1}` {
		t.Errorf("%+v", ch)
	}
	second := ask(first + `,{"role":"assistant","content":null},{"role":"tool","tool_call_id":"x","content":"noon"}`)
	if !strings.Contains(second, `"finish_reason":"stop"`) || !strings.Contains(second, "MARK-1f") || strings.Contains(second, "tool_calls") {
		t.Errorf("after the result: %s", second)
	}
}

func TestToolStreamsOfEveryDialect(t *testing.T) {
	for _, c := range []struct{ api, path, body, want string }{
		{"chat", "/v1/chat/completions", `"messages":[{"role":"user","content":"FAKE-USE-TOOLS"}],` + tools, `"delta":{},"logprobs":null,"finish_reason":"tool_calls"`},
		{"messages", "/v1/messages", `"max_tokens":900,"messages":[{"role":"user","content":"FAKE-USE-TOOLS"}],"tools":[{"name":"get_time","input_schema":{"required":["zone"]}}]`, `"stop_reason":"tool_use"`},
		{"responses", "/v1/responses", `"input":"FAKE-USE-TOOLS","tools":[{"type":"function","name":"get_time","parameters":{"required":["zone"]}}]`, `"status":"completed"`},
	} {
		_, url := started(t, Options{})
		body := readAll(t, post(t, client(t), url+c.path, `{"model":"fake-model","stream":true,`+c.body+`}`).Body)
		starts := map[string]string{"chat": `"type":"function"`, "messages": `"type":"tool_use"`, "responses": "event: response.output_item.added"}
		if n := strings.Count(body, starts[c.api]); n != 2 {
			t.Errorf("%s: %d calls begin, want 2:\n%s", c.api, n, body)
		}
		if !strings.Contains(body, c.want) {
			t.Errorf("%s: no %s in\n%s", c.api, c.want, body)
		}
	}
}

func TestIDs(t *testing.T) {
	for _, c := range []struct {
		name, path, body, header, want string
		flavor                         Flavor
	}{
		{"header", "/v1/chat/completions", `"messages":[],"request_id":"b"`, "h", `"id":"chatcmpl-h"`, VLLM},
		{"body", "/v1/completions", `"prompt":"x","request_id":"b"`, "", `"id":"cmpl-b"`, VLLM},
		{"messages", "/v1/messages", `"max_tokens":2,"messages":[]`, "h", `"id":"chatcmpl-h"`, VLLM},
		{"responses ignores the header", "/v1/responses", `"input":"x","request_id":"resp_b"`, "h", `"id":"resp_b"`, VLLM},
		{"sglang rid", "/v1/chat/completions", `"messages":[],"rid":"r"`, "h", `"id":"r"`, SGLang},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, url := started(t, Options{Flavor: c.flavor})
			got := readAll(t, post(t, client(t), url+c.path, `{"model":"fake-model",`+c.body+`}`, "X-Request-Id", c.header).Body)
			if !strings.Contains(got, c.want) {
				t.Errorf("no %s in %s", c.want, got)
			}
		})
	}
}

func TestAnswersAreDeterministicAndEchoTheMarker(t *testing.T) {
	ask := func() string {
		_, url := started(t, Options{Seed: 7})
		return readAll(t, post(t, client(t), url+"/v1/messages", `{"model":"fake-model","max_tokens":500,"messages":[{"role":"user","content":"FAKE-TOKENS-60 MARK-c0ffee"}]}`, "X-Request-Id", "x").Body)
	}
	one, two := ask(), ask()
	if one != two {
		t.Errorf("two answers differ:\n%s\n%s", one, two)
	}
	if n := strings.Count(one, "MARK-c0ffee"); n != 8 {
		t.Errorf("%d markers in 60 tokens, want 8", n)
	}
	if !strings.Contains(one, `"output_tokens":60`) || !strings.Contains(one, `"stop_reason":"end_turn"`) {
		t.Errorf("%s", one)
	}
}

func TestSGLangAborts(t *testing.T) {
	e, url := started(t, Options{Flavor: SGLang, Abort: AbortNever, MetricsNames: MetricsSGLang})
	resp := post(t, client(t), url+"/v1/chat/completions", `{"model":"fake-model","rid":"r-1","stream":true,"ignore_eos":true,`+hello+`}`)
	if resp2 := post(t, client(t), url+"/abort_request", `{"rid":"r-1"}`); resp2.StatusCode != 200 {
		t.Errorf("abort: %s", resp2.Status)
	}
	body := readAll(t, resp.Body)
	if !strings.Contains(body, `"finish_reason":"abort"`) {
		t.Errorf("no abort at the end of %s", body[max(0, len(body)-500):])
	}
	if calls := e.AbortCalls(); len(calls) != 1 || calls[0] != "r-1" {
		t.Errorf("calls %q", calls)
	}
	if !strings.Contains(string(e.metricsPage()), "sglang:num_aborted_requests_total{") || e.Running() != 0 {
		t.Error("not counted or still running")
	}
}

func TestClosesAreCountedByPhase(t *testing.T) {
	e, url := started(t, Options{MaxNumSeqs: 1, PrefillRate: 100_000_000})
	leave := func(stream string, ready func(Stats) bool) {
		t.Helper()
		conn := sendRaw(t, url, request("POST", "/v1/chat/completions", `{"model":"fake-model","ignore_eos":true,"stream":`+stream+`,`+hello+`}`))
		waitStats(t, e, ready)
		_ = conn.Close()
	}
	keep := sendRaw(t, url, request("POST", "/v1/completions", `{"model":"fake-model","ignore_eos":true,"stream":true,"prompt":"x"}`))
	waitFor(t, e, func(l RequestLog) bool { return l.Events > 0 })
	leave("true", func(s Stats) bool { return s.Waiting == 1 })
	waitStats(t, e, func(s Stats) bool { return s.Closes.Queued == 1 && s.Waiting == 0 })
	_ = keep.Close()
	waitStats(t, e, idle)
	leave("false", func(s Stats) bool { return s.Running == 1 && s.KVUsed > 0 })
	s := waitStats(t, e, idle)
	if c := s.Closes; c.Queued != 1 || c.Decode+c.Prefill != 2 || c.NonStream != 1 || c.Other != 0 {
		t.Errorf("closes %+v", c)
	}
}

func TestHalfCloseCountsAsLeaving(t *testing.T) {
	e, url := started(t, Options{})
	conn := sendRaw(t, url, request("POST", "/v1/completions", `{"model":"fake-model","ignore_eos":true,"stream":true,"prompt":"x"}`))
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, e, func(l RequestLog) bool { return l.Outcome == OutcomeClientGone && !l.Freed.IsZero() })
}

func TestTheEndsOfAnEngine(t *testing.T) {
	ask := request("POST", "/v1/completions", `{"model":"fake-model","ignore_eos":true,"stream":true,"prompt":"x"}`)
	t.Run("drain", func(t *testing.T) {
		e, url := started(t, Options{})
		e.Drain()
		if w := parseWire(t, speak(t, url, ask)); !strings.Contains(w.chunks[0], drainMessage) || !strings.Contains(w.status, "500") {
			t.Errorf("%v", w)
		}
		if w := parseWire(t, speak(t, url, request("GET", "/health", ""))); !strings.Contains(w.status, "200") {
			t.Errorf("health %s", w.status)
		}
	})
	t.Run("refuse and resume", func(t *testing.T) {
		e, url := started(t, Options{})
		e.StopListening()
		if _, err := client(t).Get(url + "/health"); err == nil {
			t.Error("a connect was not refused")
		}
		if err := e.ResumeListening(); err != nil {
			t.Fatal(err)
		}
		speak(t, url, request("GET", "/health", ""))
	})
	t.Run("silent termination", func(t *testing.T) {
		e, url := started(t, Options{})
		quiet := dialRaw(t, url)
		sendRaw(t, url, ask)
		waitStats(t, e, func(s Stats) bool { return s.Running == 1 && s.Connections == 2 })
		e.TerminateSilently()
		if b, err := io.ReadAll(quiet); err != nil || len(b) != 0 {
			t.Errorf("idle connection: %q, %v", b, err)
		}
		if s := e.Stats(); s.Connections != 1 || s.Handlers != 1 {
			t.Errorf("the open stream is gone: %+v", s)
		}
	})
	t.Run("kill", func(t *testing.T) {
		e, url := started(t, Options{})
		open := sendRaw(t, url, ask)
		waitFor(t, e, func(l RequestLog) bool { return l.Events > 0 })
		e.Kill()
		if _, err := io.ReadAll(open); err == nil {
			t.Error("a killed engine ended its stream politely")
		}
	})
}

func TestControl(t *testing.T) {
	e, url := started(t, Options{})
	c := client(t)
	if r := post(t, c, url+"/_fake/script", `[{"kind":"status","status":429,"times":1,"delay":"1ms"}]`); r.StatusCode != 200 {
		t.Fatal(r.Status)
	}
	if r := post(t, c, url+"/_fake/script", `{"kind":"sttus"}`); r.StatusCode != 400 {
		t.Errorf("a misspelt kind: %s", r.Status)
	}
	if r := post(t, c, url+"/_fake/script", `{"kind":"fin","aftr":1}`); r.StatusCode != 400 {
		t.Errorf("a misspelt key: %s", r.Status)
	}
	ask := func() int {
		return post(t, c, url+"/v1/completions", `{"model":"fake-model","prompt":"x","max_tokens":1}`).StatusCode
	}
	if a, b := ask(), ask(); a != 429 || b != 200 {
		t.Errorf("%d, %d; want 429, 200", a, b)
	}
	waitFor(t, e, func(l RequestLog) bool { return l.Outcome == OutcomeFinished })
	get := func(path string) string {
		r, err := c.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		return readAll(t, r.Body)
	}
	if s := get("/_fake/log"); strings.Count(s, `"outcome":`) != 2 || !strings.Contains(s, `"outcome":"fault"`) {
		t.Errorf("log %s", s)
	}
	if s := get("/_fake/stats"); !strings.Contains(s, `"generated_tokens":1,`) {
		t.Errorf("stats %s", s)
	}
	for _, do := range []string{"freeze", "thaw", "drain", "restart"} {
		if r := post(t, client(t), url+"/_fake/do/"+do, ``); r.StatusCode != 200 {
			t.Errorf("%s: %s", do, r.Status)
		}
	}
}
