package fakeengine

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// wire is an answer as it was on the wire.
type wire struct {
	status string
	header http.Header
	chunks []string // of a chunked body, one SSE event each; else the whole body
	ended  bool     // by its framing, not by the end of the connection
}

// parseWire reads a recorded or received answer without trusting an HTTP client's view of it.
func parseWire(t *testing.T, raw []byte) wire {
	t.Helper()
	head, body, ok := bytes.Cut(raw, []byte("\r\n\r\n"))
	if !ok {
		t.Fatalf("no head in %q", raw)
	}
	lines := strings.Split(string(head), "\r\n")
	w := wire{status: lines[0], header: http.Header{}}
	for _, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ": ")
		w.header.Add(name, value)
	}
	if w.header.Get("Transfer-Encoding") != "chunked" {
		w.chunks, w.ended = []string{string(body)}, true
		return w
	}
	for {
		size, rest, ok := bytes.Cut(body, []byte("\r\n"))
		n, err := strconv.ParseInt(string(size), 16, 64)
		if !ok || err != nil || int(n)+2 > len(rest) {
			return w
		}
		if n == 0 {
			w.ended = true
			return w
		}
		w.chunks = append(w.chunks, string(rest[:n]))
		body = rest[n+2:]
	}
}

var keepValues = []string{
	"object", "type", "role", "finish_reason", "stop_reason", "status", "reason", "index", "content_index", "output_index",
	"sequence_number", "code", "param", "owned_by", "completion_tokens", "output_tokens", "detail", "service_tier", "phase",
}

var jsonScalar = regexp.MustCompile(`("(?:[^"\\]|\\.)*")(\s*:\s*)?|(-?\d[-+.0-9eE]*)`)

// shape keeps keys, their order, punctuation, blanks, nulls and the telling values of an event, and blanks
// out texts and numbers.
func shape(event string) string {
	key := ""
	return jsonScalar.ReplaceAllStringFunc(event, func(m string) string {
		if strings.HasSuffix(strings.TrimSpace(m), ":") {
			key = strings.Trim(strings.TrimRight(strings.TrimSpace(m), ":"), `" `)
			return m
		}
		if slices.Contains(keepValues, key) {
			return m
		}
		if m[0] == '"' {
			return `"~"`
		}
		return "0"
	})
}

// shapes are those of all events, a run of equal ones taken once. Numbers that count events are dropped
// then, because a parser may swallow a token here and not there.
func shapes(w wire) (out []string) {
	number := regexp.MustCompile(`"sequence_number":\d+`)
	for i, c := range w.chunks {
		s := shape(c)
		if strings.Contains(s, "sequence_number") && !strings.Contains(s, `"sequence_number":`+strconv.Itoa(i)+`,`) {
			s = "WRONG NUMBER " + s
		}
		s = number.ReplaceAllString(s, `"sequence_number":N`)
		if strings.Contains(c, `"usage":{"prompt_tokens"`) && !strings.Contains(c, `"choices":[]`) { // continuous
			s = regexp.MustCompile(`"completion_tokens":\d+`).ReplaceAllString(s, `"completion_tokens":N`)
		}
		if len(out) == 0 || out[len(out)-1] != s {
			out = append(out, s)
		}
	}
	return out
}

func recorded(t *testing.T, name string) wire {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "vllm", name+".http"))
	if err != nil {
		t.Fatal(err)
	}
	return parseWire(t, raw)
}

// speak sends a request on its own connection and returns all that comes back.
func speak(t *testing.T, addr, request string) []byte {
	t.Helper()
	raw, err := io.ReadAll(sendRaw(t, addr, request))
	if err != nil {
		t.Fatalf("read: %v after %q", err, raw)
	}
	return raw
}

// sendRaw sends a request on a connection of its own.
func sendRaw(t *testing.T, addr, request string) net.Conn {
	t.Helper()
	c := dialRaw(t, addr)
	if _, err := c.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	return c
}

func dialRaw(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(addr, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

// request renders a request that closes its connection unless more is said in header lines.
func request(method, path, body string, header ...string) string {
	var b strings.Builder
	b.WriteString(method + " " + path + " HTTP/1.1\r\nHost: fake\r\n")
	if method == "POST" {
		b.WriteString("Content-Length: " + strconv.Itoa(len(body)) + "\r\n")
	}
	all := strings.Join(header, "\r\n")
	if !strings.Contains(all, "Content-Type") {
		b.WriteString("Content-Type: application/json\r\n")
	}
	if !strings.Contains(all, "Connection") {
		b.WriteString("Connection: close\r\n")
	}
	for _, h := range header {
		b.WriteString(h + "\r\n")
	}
	b.WriteString("\r\n" + body)
	return b.String()
}

func compare(t *testing.T, name string, got, want wire) {
	t.Helper()
	if got.status != want.status {
		t.Errorf("%s: status %q, want %q", name, got.status, want.status)
	}
	for h := range want.header {
		if h == "Date" || h == "Content-Length" || h == "Location" {
			if got.header.Get(h) == "" {
				t.Errorf("%s: no header %s", name, h)
			}
			continue
		}
		if g, w := got.header.Get(h), want.header.Get(h); g != w && h != "Vary" && h != "X-Request-Id" && h != "Endpoint-Load-Metrics" {
			t.Errorf("%s: %s: %q, want %q", name, h, g, w)
		}
	}
	if got.ended != want.ended {
		t.Errorf("%s: body ended by its framing: %v, want %v", name, got.ended, want.ended)
	}
	g, w := shapes(got), shapes(want)
	for i := range max(len(g), len(w)) {
		a, b := "(nothing)", "(nothing)"
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			t.Errorf("%s: event %d\n got %s\nwant %s", name, i, a, b)
			return
		}
	}
}

const hello = `"messages":[{"role":"user","content":"Hello"}]`

func TestAnswersHaveTheShapeOfARealServer(t *testing.T) {
	flags := Options{UsageDetails: true, RequestMetrics: true, EchoRequestID: true}
	reasonAll := `"messages":[{"role":"user","content":"Hello FAKE-REASON-4"}]`
	reasonLong := `"messages":[{"role":"user","content":"FAKE-REASON-9 ` + strings.Repeat("long prompt ", 300) + `"}]`
	cases := []struct {
		name, method, path, body string
		o                        Options
		warm                     bool // the same prompt was asked before
	}{
		{name: "chat", path: "/v1/chat/completions", body: `{"model":"tiny","max_tokens":8,` + hello + `}`},
		{name: "chat_stream", path: "/v1/chat/completions", body: `{"model":"tiny","max_tokens":8,` + hello + `,"stream":true,"stream_options":{"include_usage":true}}`},
		{name: "chat_stream_no_usage", path: "/v1/chat/completions", body: `{"model":"tiny","max_tokens":8,` + hello + `,"stream":true}`},
		{name: "chat_stream_continuous_usage", path: "/v1/chat/completions", body: `{"model":"tiny","max_tokens":8,` + hello + `,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`},
		{name: "chat_stream_interval", path: "/v1/chat/completions", body: `{"model":"tiny","max_tokens":24,` + hello + `,"stream":true,"stream_interval":8,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`},
		{name: "chat_stream_n2", path: "/v1/chat/completions", body: `{"model":"tiny","max_tokens":5,` + hello + `,"n":2,"stream":true,"stream_options":{"include_usage":true}}`},
		{name: "completions", path: "/v1/completions", body: `{"model":"tiny","max_tokens":8,"prompt":"Hello"}`},
		{name: "completions_stream", path: "/v1/completions", body: `{"model":"tiny","max_tokens":8,"prompt":"Hello","stream":true,"stream_options":{"include_usage":true}}`},
		{name: "messages", path: "/v1/messages", body: `{"model":"tiny","max_tokens":8,` + hello + `}`},
		{name: "messages_stream", path: "/v1/messages", body: `{"model":"tiny","max_tokens":8,` + hello + `,"stream":true}`},
		{name: "messages_count_tokens", path: "/v1/messages/count_tokens", body: `{"model":"tiny",` + hello + `}`},
		{name: "responses", path: "/v1/responses", body: `{"model":"tiny","max_output_tokens":8,"input":"Hello","temperature":0}`},
		{name: "responses_stream", path: "/v1/responses", body: `{"model":"tiny","max_output_tokens":8,"input":"Hello","temperature":0,"stream":true}`},
		{name: "models", method: "GET", path: "/v1/models"},
		{name: "version", method: "GET", path: "/version"},
		{name: "load", method: "GET", path: "/load"},
		{name: "health", method: "GET", path: "/health"},
		{name: "flags/chat_stream_reasoning", o: flags, path: "/v1/chat/completions", body: `{"model":"tiny","max_tokens":5,` + reasonAll + `,"stream":true,"stream_options":{"include_usage":true}}`},
		{name: "flags/chat_stream_usage_details_metrics", o: flags, warm: true, path: "/v1/chat/completions", body: `{"model":"tiny","max_tokens":4,` + reasonLong + `,"stream":true,"stream_options":{"include_usage":true}}`},
		{name: "flags/chat_usage_details_metrics_warm", o: flags, warm: true, path: "/v1/chat/completions", body: `{"model":"tiny","max_tokens":4,` + reasonLong + `}`},
		{name: "flags/messages_stream_cached", o: flags, warm: true, path: "/v1/messages", body: `{"model":"tiny","max_tokens":4,` + reasonLong + `,"stream":true}`},
		{name: "flags/messages_stream_thinking", o: flags, path: "/v1/messages", body: `{"model":"tiny","max_tokens":4,` + reasonAll + `,"stream":true}`},
		{name: "flags/responses_stream_reasoning", o: flags, path: "/v1/responses", body: `{"model":"tiny","max_output_tokens":4,"input":"Hello FAKE-REASON-9","temperature":0,"stream":true}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.o.Model = "tiny"
			_, url := started(t, c.o)
			if c.method == "" {
				c.method = "POST"
			}
			if c.warm {
				speak(t, url, request(c.method, c.path, c.body))
			}
			got := parseWire(t, speak(t, url, request(c.method, c.path, c.body)))
			compare(t, c.name, got, recorded(t, c.name))
		})
	}
}

func TestTwoPromptsGiveTwoChoices(t *testing.T) {
	_, url := started(t, Options{Model: "tiny"})
	got := parseWire(t, speak(t, url, request("POST", "/v1/completions", `{"model":"tiny","max_tokens":4,"prompt":["a","b"],"stream":true,"stream_options":{"include_usage":true}}`)))
	want := recorded(t, "completions_stream_two_prompts")
	g, w := slices.Sorted(slices.Values(shapesOf(got))), slices.Sorted(slices.Values(shapesOf(want))) // the order of the choices is the engine's
	if !slices.Equal(slices.Compact(g), slices.Compact(w)) {
		t.Errorf("got %q\nwant %q", g, w)
	}
}

func shapesOf(w wire) (out []string) {
	for _, c := range w.chunks {
		out = append(out, shape(c))
	}
	return out
}

func TestErrorsHaveTheShapeOfARealServer(t *testing.T) {
	const chat, messages, responses, completions = "/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/completions"
	long := strings.Repeat("import os sys def class return self value key name path file error line text ", 450)
	cases := []struct {
		name, path, body string
		header           []string
		o                Options
	}{
		{name: "chat_bad_json", path: chat, body: `{"model": "tiny", `},
		{name: "chat_max_tokens_too_large", path: chat, body: `{"model":"tiny","max_tokens":100000,` + hello + `}`},
		{name: "chat_missing_field", path: chat, body: `{"model": "tiny", "max_tokens": 3, "temperature": 0}`},
		{name: "chat_stream_options_without_stream", path: chat, body: `{"model":"tiny","max_tokens":3,` + hello + `,"stream_options":{"include_usage":true}}`},
		{name: "chat_temperature", path: chat, body: `{"model":"tiny","max_tokens":3,` + hello + `,"temperature":5}`},
		{name: "chat_invalid_utf8", path: chat, body: "{\"model\":\"tiny\",\"x\":\"\xff\"}"},
		{name: "chat_text_plain", path: chat, body: `{"model":"tiny",` + hello + `}`, header: []string{"Content-Type: text/plain"}},
		{name: "chat_too_long", path: chat, body: `{"model":"tiny","messages":[{"role":"user","content":"` + long + `"}]}`},
		{name: "chat_too_long_stream", path: chat, body: `{"model":"tiny","stream":true,"messages":[{"role":"user","content":"` + long + `"}]}`},
		{name: "chat_unknown_model", path: chat, body: `{"model":"nope",` + hello + `}`},
		{name: "completions_missing_field", path: completions, body: `{"model": "tiny", "max_tokens": 3, "temperature": 0}`},
		{name: "messages_max_tokens_too_large", path: messages, body: `{"model":"tiny","max_tokens":100000,` + hello + `}`},
		{name: "messages_missing_field", path: messages, body: `{"model": "tiny", "max_tokens": 3, "temperature": 0}`},
		{name: "messages_too_long", path: messages, body: `{"model":"tiny","max_tokens":3,"messages":[{"role":"user","content":"` + long + `"}]}`},
		{name: "messages_unknown_model", path: messages, body: `{"model":"nope","max_tokens":3,` + hello + `}`},
		{name: "responses_max_tokens_too_large", path: responses, body: `{"model":"tiny","max_output_tokens":100000,"input":"Hello"}`},
		{name: "responses_missing_field", path: responses, body: `{"model": "tiny", "max_output_tokens": 3, "temperature": 0, "stream": false}`},
		{name: "responses_unknown_model", path: responses, body: `{"model":"nope","input":"Hello"}`},
		{name: "not_found", path: "/v1/nothing", body: `{}`},
		{name: "scale_out_disabled", path: "/inference/v1/abort_requests", body: `{"request_ids":["x"]}`},
		{name: "trailing_slash", path: "/v1/chat/completions/", body: `{"model":"tiny",` + hello + `}`},
		{name: "chat_queue_full_503", path: chat, body: `{"model":"tiny",` + hello + `,"n":2}`, o: Options{MaxQueuedReqs: 1}},
		{name: "messages_queue_full_503", path: messages, body: `{"model":"tiny","max_tokens":3,` + hello + `}`, o: Options{MaxQueuedTokens: 1}},
		{name: "unauthorized", path: chat, body: `{}`, o: Options{APIKey: "sk-lab"}},
		{name: "unauthorized_messages_x_api_key", path: messages, body: `{}`, header: []string{"x-api-key: sk-lab"}, o: Options{APIKey: "sk-lab"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.o.Model, c.o.MaxModelLen, c.o.EchoRequestID = "tiny", 8192, true
			_, url := started(t, c.o)
			got := parseWire(t, speak(t, url, request("POST", c.path, c.body, c.header...)))
			want := recorded(t, "errors/"+c.name)
			compare(t, c.name, got, want)
			if got.chunks[0] != want.chunks[0] && c.name != "chat_missing_field" && c.name != "messages_missing_field" {
				t.Errorf("%s: body\n got %s\nwant %s", c.name, got.chunks[0], want.chunks[0])
			}
		})
	}
	t.Run("chat_method_get", func(t *testing.T) {
		_, url := started(t, Options{Model: "tiny"})
		compare(t, "method", parseWire(t, speak(t, url, request("GET", chat, ""))), recorded(t, "errors/chat_method_get"))
	})
}

func TestDeathHasTheShapeOfARealServer(t *testing.T) {
	for _, api := range []struct{ name, path, body string }{
		{"chat", "/v1/chat/completions", `{"model":"tiny","ignore_eos":true,` + hello},
		{"completions", "/v1/completions", `{"model":"tiny","ignore_eos":true,"prompt":"Hello"`},
		{"messages", "/v1/messages", `{"model":"tiny","ignore_eos":true,"max_tokens":5000,` + hello},
		{"responses", "/v1/responses", `{"model":"tiny","ignore_eos":true,"temperature":0,"max_output_tokens":5000,"input":"Hello"`},
	} {
		t.Run(api.name, func(t *testing.T) {
			e, url := started(t, Options{Model: "tiny"})
			plain := sendRaw(t, url, request("POST", api.path, api.body+`}`))
			stream := sendRaw(t, url, request("POST", api.path, api.body+`,"stream":true}`))
			waitFor(t, e, func(l RequestLog) bool { return l.Events >= 20 })
			e.Die()
			raw, err := io.ReadAll(plain)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, "plain", parseWire(t, raw), recorded(t, "engine_death/"+api.name))
			if raw, err = io.ReadAll(stream); err != nil {
				t.Fatal(err)
			}
			compare(t, "stream", parseWire(t, raw), recorded(t, "engine_death/"+api.name+"_stream"))
			compare(t, "health", parseWire(t, speak(t, url, request("GET", "/health", ""))), recorded(t, "engine_death/health"))
		})
	}
}

func TestAnAbortByEndpointEndsAQueuedStreamWithNothing(t *testing.T) {
	e, url := started(t, Options{Model: "tiny", ScaleOut: true, EchoRequestID: true, MaxNumSeqs: 1})
	const ask = `{"model":"tiny","stream":true,"ignore_eos":true,` + hello + `}`
	first := sendRaw(t, url, request("POST", "/v1/chat/completions", ask))
	readUntil(t, bufio.NewReader(first), "assistant")
	queued := sendRaw(t, url, request("POST", "/v1/chat/completions", ask, "X-Request-Id: cap-q-0"))
	waitStats(t, e, func(s Stats) bool { return s.Waiting == 1 })
	speak(t, url, request("POST", "/inference/v1/abort_requests", `{"request_ids":["chatcmpl-cap-q-0"]}`))
	raw, err := io.ReadAll(queued)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "abort", parseWire(t, raw), recorded(t, "flags/chat_stream_abort_by_endpoint"))
}
