package fakeengine

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

var streamBodies = map[string]struct{ path, body string }{
	"chat":        {"/v1/chat/completions", `{"model":"fake-model","stream":true,"stream_options":{"include_usage":true},"max_tokens":12,` + hello + `}`},
	"completions": {"/v1/completions", `{"model":"fake-model","stream":true,"max_tokens":12,"prompt":"Hello"}`},
	"messages":    {"/v1/messages", `{"model":"fake-model","stream":true,"max_tokens":12,` + hello + `}`},
	"responses":   {"/v1/responses", `{"model":"fake-model","stream":true,"max_output_tokens":12,"input":"Hello"}`},
}

// faulty asks an engine with a script and returns the raw answer and how its reading ended.
func faulty(t *testing.T, api string, f Fault) (raw []byte, err error) {
	t.Helper()
	e, url := started(t, Options{})
	e.Script(f)
	b := streamBodies[api]
	return io.ReadAll(sendRaw(t, url, request("POST", b.path, b.body)))
}

func TestEndingsOnEveryDialect(t *testing.T) {
	terminal := map[string]string{"chat": "[DONE]", "completions": "[DONE]", "messages": "message_stop", "responses": "response.completed"}
	for api := range streamBodies {
		for _, c := range []struct {
			fault    Fault
			ended    bool   // by the framing
			terminal bool   // with the terminal event
			reset    bool   // connection reset
			has      string // in the body
		}{
			{fault: Fault{Kind: FIN, After: 3}},
			{fault: Fault{Kind: RST, After: 3}, reset: true},
			{fault: Fault{Kind: CutEvent, After: 3}},
			{fault: Fault{Kind: CutUTF8, After: 1}},
			{fault: Fault{Kind: EarlyEnd, After: 3}, ended: true},
			{fault: Fault{Kind: EarlyEnd}, ended: true},
			{fault: Fault{Kind: ErrorLine, After: 2}, ended: true, has: "{\"error\":{\"message\":\"upstream error: \""},
			{fault: Fault{Kind: ErrorEvent, After: 2, Body: "event: error\ndata: {\"x\":1}\n\n"}, ended: true, has: `data: {"x":1}`},
			{fault: Fault{Kind: Finish, After: 2}, ended: true, terminal: true},
		} {
			t.Run(api+"/"+string(c.fault.Kind), func(t *testing.T) {
				raw, err := faulty(t, api, c.fault)
				if got := errors.Is(err, syscall.ECONNRESET); got != c.reset {
					t.Errorf("reset %v, want %v (%v)", got, c.reset, err)
				}
				w := parseWire(t, raw)
				body := strings.Join(w.chunks, "")
				if w.ended != c.ended {
					t.Errorf("ended by framing %v, want %v:\n%s", w.ended, c.ended, raw)
				}
				if got := strings.Contains(body, terminal[api]); got != c.terminal {
					t.Errorf("terminal event %v, want %v:\n%s", got, c.terminal, body)
				}
				if !strings.Contains(body, c.has) {
					t.Errorf("no %q in\n%s", c.has, body)
				}
				if c.fault.Kind == EarlyEnd && c.fault.After == 0 && body != "" {
					t.Errorf("an empty 200 has %q", body)
				}
				if c.fault.Kind == CutUTF8 && utf8.ValidString(body) {
					t.Error("no character is cut")
				}
			})
		}
	}
}

func TestAfterCountsContentEvents(t *testing.T) {
	for api, mark := range map[string]string{"chat": `"delta":{"content":"`, "messages": "content_block_delta\n", "responses": "output_text.delta\n", "completions": `"text":"`} {
		raw, _ := faulty(t, api, Fault{Kind: FIN, After: 5}) // the error is the fault itself
		got := bytes.Count(raw, []byte(mark)) - bytes.Count(raw, []byte(`"content":"","`)) - bytes.Count(raw, []byte(mark+`"`))
		if got != 5 {
			t.Errorf("%s: %d content events before the end, want 5:\n%s", api, got, raw)
		}
	}
}

func TestErrorEventOfChatIsFollowedByDone(t *testing.T) {
	raw, err := faulty(t, "chat", Fault{Kind: ErrorEvent, After: 2, Text: "lost"})
	want := "data: {\"error\": {\"message\": \"lost\", \"type\": \"InternalServerError\", \"param\": null, \"code\": 500}}\n\n"
	if w := parseWire(t, raw); err != nil || !w.ended || w.chunks[len(w.chunks)-2] != want || w.chunks[len(w.chunks)-1] != "data: [DONE]\n\n" {
		t.Errorf("%v: %s", err, raw)
	}
}

func TestLoneDone(t *testing.T) {
	raw, _ := faulty(t, "chat", Fault{Kind: LoneDone})
	if w := parseWire(t, raw); !w.ended || len(w.chunks) != 1 || w.chunks[0] != "data: [DONE]\n\n" {
		t.Errorf("%s", raw)
	}
}

func TestReplacements(t *testing.T) {
	for _, c := range []struct {
		name, api   string
		fault       Fault
		status, has string
	}{
		{"429", "chat", Fault{Kind: Status, Status: 429, Header: map[string]string{"Retry-After": "7"}}, "429", "Retry-After: 7\r\n"},
		{"529", "messages", Fault{Kind: Status, Status: 529}, "529", `{"type":"error","error":{"type":"overloaded_error"`},
		{"502 is a page", "chat", Fault{Kind: Status, Status: 502}, "502", "<html>"},
		{"503 is a string", "chat", Fault{Kind: Status, Status: 503}, "503", `{"error":"`},
		{"own body", "responses", Fault{Kind: Status, Status: 403, Body: `{"x":1}`}, "403", `{"x":1}`},
		{"admission", "messages", Fault{Kind: Admission}, "503", `{"type":"error","error":{"type":"Service Unavailable"`},
		{"draining", "chat", Fault{Kind: Draining}, "500", drainMessage},
		{"error in a 200", "chat", Fault{Kind: ErrorBody}, "200", `{"error":{"message":"lost"`},
		{"raw", "chat", Fault{Kind: Raw, Text: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}, "200", "Content-Length: 3\r\nTransfer-Encoding: chunked"},
		{"early hints", "chat", Fault{Kind: EarlyHints}, "103", "\r\n\r\nHTTP/1.1 200 OK\r\n"},
		{"big headers", "chat", Fault{Kind: BigHeaders, N: 70_000}, "200", "X-Fake-69: "},
		{"content type", "chat", Fault{Kind: ContentType, Text: "text/plain"}, "200", "Content-Type: text/plain\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw, err := faulty(t, c.api, c.fault)
			if err != nil || !bytes.HasPrefix(raw, []byte("HTTP/1.1 "+c.status)) || !bytes.Contains(raw, []byte(c.has)) {
				t.Errorf("%v: no %q in\n%.2000s", err, c.has, raw)
			}
		})
	}
}

func TestBendings(t *testing.T) {
	for _, c := range []struct {
		name, api string
		fault     Fault
		ok        func(w wire, body string) bool
	}{
		{"crlf", "chat", Fault{Kind: Framing, Text: "crlf"}, func(_ wire, b string) bool {
			return strings.Contains(b, "\r\n\r\n") && strings.Count(b, "\r") == strings.Count(b, "\n")
		}},
		{"cr", "messages", Fault{Kind: Framing, Text: "cr"}, func(_ wire, b string) bool { return strings.Contains(b, "\r\r") && !strings.Contains(b, "\n") }},
		{"burst", "chat", Fault{Kind: Burst}, func(w wire, b string) bool { return len(w.chunks) == 1 && strings.Contains(b, "[DONE]") }},
		{"merge", "chat", Fault{Kind: Merge, N: 4}, func(w wire, b string) bool { return len(w.chunks) == 4 && strings.Contains(b, "[DONE]") }},
		{"big event", "chat", Fault{Kind: BigEvent, After: 2, N: 1 << 20}, func(_ wire, b string) bool {
			return len(b) > 1<<20 && strings.Contains(b, "[DONE]") && strings.Count(b, "data: ") == 1+12+1+1+1
		}},
		{"no usage", "messages", Fault{Kind: NoUsage}, func(_ wire, b string) bool { return strings.Count(b, `"usage"`) == 1 }},
		{"usage null", "chat", Fault{Kind: UsageNull}, func(_ wire, b string) bool { return strings.Count(b, `"usage":null`) == 13 }},
		{"no names", "messages", Fault{Kind: NoNames}, func(_ wire, b string) bool {
			return !strings.Contains(b, "event:") && strings.Contains(b, "message_stop")
		}},
		{"comments and bom", "chat", Fault{Kind: Comment, N: 3, Text: "PROCESSING"}, func(_ wire, b string) bool {
			return strings.HasPrefix(b, strings.Repeat(": PROCESSING\n\n", 3)+"data: ")
		}},
		{"bom", "chat", Fault{Kind: BOM}, func(_ wire, b string) bool { return strings.HasPrefix(b, "\xef\xbb\xbf"+"data: ") }},
		{"finish reason", "chat", Fault{Kind: Finish, After: 2, Text: "repetition"}, func(_ wire, b string) bool {
			return strings.Contains(b, `"finish_reason":"repetition"`) && strings.Contains(b, `"choices":[],"usage"`)
		}},
		{"gzip", "chat", Fault{Kind: GZip}, func(w wire, b string) bool {
			z, err := gzip.NewReader(strings.NewReader(b))
			if err != nil {
				return false
			}
			text, err := io.ReadAll(z)
			return err == nil && strings.Contains(string(text), "[DONE]") && w.header.Get("Content-Encoding") == "gzip"
		}},
		{"close after", "chat", Fault{Kind: CloseAfter}, func(w wire, _ string) bool { return w.header.Get("Connection") == "close" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw, err := faulty(t, c.api, c.fault)
			w := parseWire(t, raw)
			if err != nil || !w.ended || !c.ok(w, strings.Join(w.chunks, "")) {
				t.Errorf("%v: %.3000s", err, raw)
			}
		})
	}
}

// recordingConn counts the sizes of their writes.
type recordingConn struct {
	net.Conn
	sizes []int
}

func (c *recordingConn) Write(b []byte) (int, error) {
	c.sizes = append(c.sizes, len(b))
	return c.Conn.Write(b)
}

func TestSplitCutsEveryWriteIntoPieces(t *testing.T) {
	here, there := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, here) }()
	rec := &recordingConn{Conn: there}
	e := New(Options{})
	defer e.Close()
	c := e.remember(rec)
	c.pieces.Store(7)
	if n, err := c.Write(make([]byte, 1000)); n != 1000 || err != nil {
		t.Fatal(n, err)
	}
	_ = c.Close()
	_ = here.Close()
	sum := 0
	for _, n := range rec.sizes {
		sum += n
	}
	if sum != 1000 || len(rec.sizes) < 3 || len(rec.sizes) > 7 {
		t.Errorf("pieces %v", rec.sizes)
	}
}

func TestASplitStreamIsWhole(t *testing.T) {
	raw, err := faulty(t, "chat", Fault{Kind: Split, N: 5})
	if w := parseWire(t, raw); err != nil || !w.ended || len(w.chunks) != 15 {
		t.Errorf("%v: %s", err, raw)
	}
}

func TestHangsEndWhenTheClientLeaves(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault Fault
		until string // what arrives before the silence
	}{
		{"before headers", Fault{Kind: Hang, Before: true}, ""},
		{"after headers", Fault{Kind: Hang}, "HTTP/1.1 200 OK\r\n"},
		{"after tokens", Fault{Kind: Hang, After: 3}, `"delta":{"content":"Fake"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, url := started(t, Options{})
			e.Script(c.fault)
			b := streamBodies["chat"]
			conn := sendRaw(t, url, request("POST", b.path, b.body))
			if c.until != "" {
				readUntil(t, bufio.NewReader(conn), c.until)
			}
			waitFor(t, e, func(l RequestLog) bool { return !l.Arrived.IsZero() })
			if w := parseWire(t, speak(t, url, request("GET", "/health", ""))); w.status != "HTTP/1.1 200 OK" {
				t.Errorf("health %s", w.status)
			}
			_ = conn.Close()
			l := waitFor(t, e, func(l RequestLog) bool { return !l.Finished.IsZero() })
			if l.Outcome != OutcomeClientGone || l.ClientGone.IsZero() {
				t.Errorf("outcome %q", l.Outcome)
			}
		})
	}
}

func TestFaultsMatch(t *testing.T) {
	e, url := started(t, Options{AnyModel: true})
	e.Script(Fault{Kind: Status, Status: 500, API: "chat", Model: "m", Contains: "boom", Skip: 1, Times: 2})
	e.Script(Fault{Kind: Status, Status: 503, Path: "/health", Times: 1})
	c := client(t)
	ask := func(path, model, text string) int {
		return post(t, c, url+path, `{"model":"`+model+`","max_tokens":1,"messages":[{"role":"user","content":"`+text+`"}]}`).StatusCode
	}
	const chat = "/v1/chat/completions"
	got := []int{
		ask(chat, "m", "boom"), ask("/v1/messages", "m", "boom"), ask(chat, "other", "boom"), ask(chat, "m", "calm"),
		ask(chat, "m", "boom"), ask(chat, "m", "boom"), ask(chat, "m", "boom"),
	}
	want := []int{200, 200, 200, 200, 500, 500, 200}
	if !slices.Equal(got, want) {
		t.Fatalf("statuses %v, want %v", got, want)
	}
	for _, want := range []string{"HTTP/1.1 503 Service Unavailable", "HTTP/1.1 200 OK"} {
		if w := parseWire(t, speak(t, url, request("GET", "/health", ""))); w.status != want {
			t.Errorf("health %s, want %s", w.status, want)
		}
	}
}

func TestReuseGoneClosesWithoutAByte(t *testing.T) {
	e, url := started(t, Options{})
	e.Script(Fault{Kind: ReuseGone})
	ask := request("POST", "/v1/completions", `{"model":"fake-model","max_tokens":1,"prompt":"x"}`, "Connection: keep-alive")
	conn := sendRaw(t, url, ask)
	r := bufio.NewReader(conn)
	readUntil(t, r, "Content-Length")
	waitFor(t, e, func(l RequestLog) bool { return l.Outcome == OutcomeFinished })
	if _, err := conn.Write([]byte(ask)); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(r)
	if err != nil || bytes.Contains(rest, []byte("HTTP/1.1")) {
		t.Errorf("a second answer or an error: %v %q", err, rest)
	}
}

func TestPlainAnswersAreCutToo(t *testing.T) {
	e, url := started(t, Options{})
	e.Script(Fault{Kind: FIN})
	w := parseWire(t, speak(t, url, request("POST", "/v1/completions", `{"model":"fake-model","max_tokens":4,"prompt":"x"}`)))
	if want := w.header.Get("Content-Length"); strconv.Itoa(len(w.chunks[0])) == want || len(w.chunks[0]) == 0 {
		t.Errorf("%d of %s bytes", len(w.chunks[0]), want)
	}
}

func TestPlainAnswersGoWrongInTheirOwnWay(t *testing.T) {
	for _, c := range []struct {
		fault       Fault
		status, has string
	}{
		{Fault{Kind: ErrorEvent}, "500", deathMessage},
		{Fault{Kind: EarlyEnd}, "200", "Content-Length: 0\r\n"},
		{Fault{Kind: Finish}, "200", `"finish_reason":"abort"`},
		{Fault{Kind: NoUsage}, "200", `"system_fingerprint":"vllm-0.32.0-`},
		{Fault{Kind: Long, N: 3}, "200", `"completion_tokens":3`},
	} {
		e, url := started(t, Options{})
		e.Script(c.fault)
		raw := string(speak(t, url, request("POST", "/v1/chat/completions", `{"model":"fake-model",`+hello+`}`)))
		if !strings.HasPrefix(raw, "HTTP/1.1 "+c.status) || !strings.Contains(raw, c.has) || c.fault.Kind == NoUsage && strings.Contains(raw, `"usage"`) {
			t.Errorf("%s: %s", c.fault.Kind, raw)
		}
	}
}

func TestFaultsBeforeTheFirstByte(t *testing.T) {
	for _, k := range []FaultKind{FIN, CutEvent, CutUTF8} {
		if raw, err := faulty(t, "chat", Fault{Kind: k, Before: true}); err != nil || len(raw) != 0 {
			t.Errorf("%s: %q, %v", k, raw, err)
		}
	}
	if raw, err := faulty(t, "chat", Fault{Kind: RST, Before: true}); !errors.Is(err, syscall.ECONNRESET) || len(raw) != 0 {
		t.Errorf("rst: %q, %v", raw, err)
	}
}

func TestABurstIsStampedWhenItIsWritten(t *testing.T) {
	virtual(t, timed(), func(t *testing.T, e *Engine, c *http.Client) {
		e.Script(Fault{Kind: Burst})
		drain(t, send(t, c, t.Context(), prompt(40, 50, "a")))
		l := e.Requests()[0]
		if d := l.FirstToken.Sub(l.Headers); d < 490*time.Millisecond || l.FirstToken != l.LastToken || l.Terminal != l.LastToken {
			t.Errorf("first token %v after the headers, last %v after the first", d, l.LastToken.Sub(l.FirstToken))
		}
	})
}

func TestPingsAndDelaysInVirtualTime(t *testing.T) {
	raw := func(f ...Fault) (events []string, took time.Duration) {
		o := timed()
		o.PrefillRate = 100
		virtualRaw(t, o, f, prompt(100, 3, "a"), func(b string, d time.Duration) { events, took = strings.SplitAfter(b, "\n\n"), d })
		return events, took
	}
	plain, base := raw()
	pinged, _ := raw(Fault{Kind: Ping, Delay: 300 * time.Millisecond, Text: "event"})
	if n := len(pinged) - len(plain); n != 3 || !strings.HasPrefix(pinged[0], "event: ping") {
		t.Errorf("%d pings in a second of prefill, want 3: %q", n, pinged)
	}
	_, late := raw(Fault{Kind: HeaderDelay, Delay: time.Second}, Fault{Kind: Linger, Delay: 2 * time.Second}, Fault{Kind: Slow, Delay: time.Second})
	if d := late - base; d < 3900*time.Millisecond || d > 4100*time.Millisecond {
		t.Errorf("delays added %v, want two seconds for two gaps and two for the end; the head waits during the prefill", d)
	}
	early, _ := raw(Fault{Kind: EarlyRole})
	if len(early) != len(plain) || !strings.Contains(early[0], `"role":"assistant"`) {
		t.Errorf("early role: %q", early)
	}
}
