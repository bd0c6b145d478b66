package proxy

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Every row of the contract's table of statuses, on the four dialects, against
// golden files: the status, the headers that matter, the body.

// refusalCase is one way not to get an answer.
type refusalCase struct {
	name    string
	fault   *fakeengine.Fault // of the upstream; nil = it is not asked
	setup   setup
	headers []string
	body    func(good string) string // nil = a good one
	stream  bool
	only    string // the dialects in which it exists; "" = all
	relayed bool   // the upstream's own words: no id of ours in them
	status  int
	outcome trace.Outcome
	kind    string // of the timeline's error
	result  trace.Result
}

// says is an upstream's answer with a status. The default body is the route's
// own envelope.
func says(status int, header ...string) *fakeengine.Fault {
	f := &fakeengine.Fault{Kind: fakeengine.Status, Status: status, Header: map[string]string{}}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "body" {
			f.Body = header[i+1]
			continue
		}
		f.Header[header[i]] = header[i+1]
	}
	return f
}

func replaced(old, with string) func(string) string {
	return func(good string) string { return strings.Replace(good, old, with, 1) }
}

const page = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n"

var (
	onlyPublic  = setup{model: secondModel, tenant: "    models: [public]"}
	passthrough = setup{deployment: "auth: passthrough"}
	ownAccount  = []string{"-Authorization", "x-gateway-key: " + testKey, "x-api-key: sk-own"}
)

var refusalCases = []refusalCase{
	{name: "unknown_key", headers: []string{"-Authorization", "x-api-key: " + wrongKey}, status: 401, outcome: trace.Refused, kind: "invalid_api_key"},
	{name: "no_key", headers: []string{"-Authorization"}, status: 401, outcome: trace.Refused, kind: "invalid_api_key"},
	{name: "model_not_allowed", setup: onlyPublic, body: replaced("public", "secret"), status: 403, outcome: trace.Refused, kind: "model_not_allowed"},
	{name: "alias_not_allowed", setup: onlyPublic, body: replaced("public", "secret-alias"), status: 403, outcome: trace.Refused, kind: "model_not_allowed"},
	{name: "unknown_model", body: replaced("public", "no such \\\"model"), status: 404, outcome: trace.Refused, kind: "model_not_found"},
	{name: "bad_json", body: replaced("{", "{,"), status: 400, outcome: trace.Refused, kind: "400"},
	{name: "cut_json", body: func(good string) string { return good[:len(good)-2] }, status: 400, outcome: trace.Refused, kind: "400"},
	{name: "no_object", body: func(string) string { return `["model"]` }, status: 400, outcome: trace.Refused, kind: "400"},
	{name: "empty_body", body: func(string) string { return "" }, status: 400, outcome: trace.Refused, kind: "400"},
	{name: "duplicate_model", body: replaced("{", `{"model":"other-name",`), status: 400, outcome: trace.Refused, kind: "400"},
	{name: "duplicate_model_escaped", body: replaced("{", `{"mo\u0064el":"other-name",`), status: 400, outcome: trace.Refused, kind: "400"},
	{name: "no_model", body: replaced(`"model":"public",`, ""), status: 400, outcome: trace.Refused, kind: "400"},
	{name: "model_is_no_text", body: replaced(`"public"`, "7"), status: 400, outcome: trace.Refused, kind: "400"},
	{name: "bad_timeout_header", headers: []string{"x-gateway-timeout-ms: soon"}, status: 400, outcome: trace.Refused, kind: "400"},

	{name: "upstream_refuses_connections", setup: setup{upstream: "http://127.0.0.1:1"}, status: 502, outcome: trace.UpstreamError, kind: "connect", result: trace.ResultFault},
	{name: "upstream_400", fault: says(400, "body", `{"error": {"message":"temperature must be at most 2",  "type":"BadRequestError","x":1}}`), relayed: true,
		status: 400, outcome: trace.ClientError, kind: "client_error", result: trace.ResultNotTheirs},
	{name: "upstream_400_too_long", fault: says(400, "body", `{"error":{"message":"This model's maximum context length is 8192 tokens"}}`), relayed: true,
		status: 400, outcome: trace.ClientError, kind: "context_length", result: trace.ResultNotTheirs},
	{name: "upstream_413", fault: says(413), relayed: true, status: 413, outcome: trace.ClientError, kind: "client_error", result: trace.ResultNotTheirs},
	{name: "upstream_422", fault: says(422, "body", `{"detail":[{"msg":"Field required"}]}`), relayed: true, status: 422, outcome: trace.ClientError, kind: "client_error", result: trace.ResultNotTheirs},
	{name: "upstream_418", fault: says(418), relayed: true, status: 418, outcome: trace.ClientError, kind: "client_error", result: trace.ResultNotTheirs},
	{name: "upstream_401", fault: says(401, "WWW-Authenticate", "Bearer"), status: 502, outcome: trace.UpstreamError, kind: "credential", result: trace.ResultFault},
	{name: "upstream_402", fault: says(402), status: 502, outcome: trace.UpstreamError, kind: "credential", result: trace.ResultFault},
	{name: "upstream_403", fault: says(403), status: 502, outcome: trace.UpstreamError, kind: "credential", result: trace.ResultFault},
	{name: "upstream_404", fault: says(404), relayed: true, status: 404, outcome: trace.ClientError, kind: "not_found", result: trace.ResultFault},
	{name: "upstream_429", fault: says(429, "Retry-After", "7"), relayed: true, status: 429, outcome: trace.ClientError, kind: "backpressure", result: trace.ResultBackpressure},
	{name: "upstream_500", fault: says(500), relayed: true, status: 500, outcome: trace.UpstreamError, kind: "status_5xx", result: trace.ResultFault},
	{name: "upstream_500_draining", fault: &fakeengine.Fault{Kind: fakeengine.Draining}, relayed: true, status: 500, outcome: trace.UpstreamError, kind: "draining", result: trace.ResultNotTheirs},
	{name: "upstream_503", fault: says(503, "Retry-After", "3"), relayed: true, status: 503, outcome: trace.UpstreamError, kind: "backpressure", result: trace.ResultBackpressure},
	{name: "upstream_529", fault: says(529, "Retry-After", "3"), relayed: true, status: 529, outcome: trace.UpstreamError, kind: "backpressure", result: trace.ResultBackpressure},
	{name: "upstream_502_page", fault: says(502, "Content-Type", "text/html", "body", page), status: 502, outcome: trace.UpstreamError, kind: "status_5xx", result: trace.ResultFault},
	{name: "upstream_503_text", fault: says(503, "Content-Type", "text/plain", "Retry-After", "9", "body", "no healthy upstream"), status: 503, outcome: trace.UpstreamError, kind: "status_5xx", result: trace.ResultFault},
	{name: "upstream_redirects", fault: says(307, "Location", "http://elsewhere.test/"), status: 502, outcome: trace.UpstreamError, kind: "protocol", result: trace.ResultFault},
	{name: "upstream_is_not_http", fault: &fakeengine.Fault{Kind: fakeengine.Raw, Text: "SSH-2.0-OpenSSH_9.2p1\r\n"}, status: 502, outcome: trace.UpstreamError, kind: "protocol", result: trace.ResultFault},
	{name: "upstream_closes_without_an_answer", fault: &fakeengine.Fault{Kind: fakeengine.Raw}, status: 502, outcome: trace.UpstreamError, kind: "cut", result: trace.ResultFault},
	{name: "error_in_a_200", fault: &fakeengine.Fault{Kind: fakeengine.ErrorBody, Text: "lost"}, status: 502, outcome: trace.UpstreamError, kind: "status_5xx", result: trace.ResultFault},
	{name: "error_in_a_200_for_a_stream", stream: true, fault: &fakeengine.Fault{Kind: fakeengine.ErrorBody, Text: "lost"}, status: 502, outcome: trace.UpstreamError, kind: "status_5xx", result: trace.ResultFault},
	{name: "error_event_first", only: "messages chat completions", stream: true, fault: &fakeengine.Fault{Kind: fakeengine.ErrorEvent, Text: "engine died"}, status: 502, outcome: trace.UpstreamError, kind: "status_5xx", result: trace.ResultFault},
	{name: "response_failed_first", only: "responses", stream: true, fault: &fakeengine.Fault{Kind: fakeengine.ErrorEvent,
		Body: "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"r\",\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"engine died\"}}}\n\n"},
		status: 502, outcome: trace.UpstreamError, kind: "status_5xx", result: trace.ResultFault},
	{name: "error_line_first", stream: true, fault: &fakeengine.Fault{Kind: fakeengine.ErrorLine, Text: "quota"}, status: 502, outcome: trace.UpstreamError, kind: "status_5xx", result: trace.ResultFault},
	{name: "overloaded_in_a_200", stream: true, fault: &fakeengine.Fault{Kind: fakeengine.ErrorBody, Body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
		status: 502, outcome: trace.UpstreamError, kind: "backpressure", result: trace.ResultBackpressure},
	{name: "lone_done", only: "chat completions", stream: true, fault: &fakeengine.Fault{Kind: fakeengine.Raw, Text: "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: [DONE]\n\n"}, status: 502, outcome: trace.EmptyStream, kind: "empty", result: trace.ResultFault},
	{name: "empty_200_for_a_stream", stream: true, fault: &fakeengine.Fault{Kind: fakeengine.Raw, Text: "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"}, status: 502, outcome: trace.EmptyStream, kind: "empty", result: trace.ResultFault},
	{name: "empty_200", fault: &fakeengine.Fault{Kind: fakeengine.EarlyEnd}, status: 502, outcome: trace.EmptyStream, kind: "empty", result: trace.ResultFault},
	{name: "comments_only", stream: true, fault: &fakeengine.Fault{Kind: fakeengine.Raw, Text: "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: PROCESSING\n\n: PROCESSING\n\n"}, status: 502, outcome: trace.EmptyStream, kind: "empty", result: trace.ResultFault},
	{name: "passthrough_401", setup: passthrough, headers: ownAccount, fault: says(401, "WWW-Authenticate", "Bearer"), relayed: true, status: 401, outcome: trace.ClientError, kind: "credential", result: trace.ResultFault},
	{name: "passthrough_403", setup: passthrough, headers: ownAccount, fault: says(403), relayed: true, status: 403, outcome: trace.ClientError, kind: "credential", result: trace.ResultFault},
}

func TestRefusals(t *testing.T) {
	for _, c := range refusalCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // most of its time is the end of its server
			s := quickly(c.setup)
			s.config += "\nretry: {max_attempts: 1}"
			r := newRig(t, s)
			if c.fault != nil {
				r.engine.Script(*c.fault)
			}
			var golden strings.Builder
			for _, d := range dialects {
				if !d.in(c.only) {
					continue
				}
				body := d.body(c.stream, "hello")
				if c.body != nil {
					body = c.body(body)
				}
				a := r.post(d.path, body, c.headers...)
				rec := r.record()
				fmt.Fprintf(&golden, "== %s\n%s", d.name, render(a, rec))
				c.check(t, r, d, a, rec)
				r.rest()
			}
			compare(t, filepath.Join("testdata", "refusals", c.name+".golden"), golden.String())
		})
	}
}

// check is what holds for every refusal, besides its golden file.
func (c refusalCase) check(t *testing.T, r *rig, d dialectCase, a answer, rec *trace.Record) {
	t.Helper()
	equal(t, "status", a.StatusCode, c.status)
	equal(t, "end of the body", a.err, nil)
	equal(t, "x-request-id", a.Header.Get("X-Request-Id"), rec.ID)
	equal(t, "request-id", a.Header.Get("Request-Id"), rec.ID)
	equal(t, "attempts header", a.Header.Get("X-Gateway-Attempts"), fmt.Sprint(len(rec.Attempts)))
	equal(t, "outcome", rec.Outcome, c.outcome)
	equal(t, "status on the timeline", rec.Status, c.status)
	if rec.Error == nil || rec.Error.Kind != c.kind {
		t.Errorf("error %+v, want kind %s", rec.Error, c.kind)
	}
	if !c.relayed {
		isErrorBody(t, d, a)
	}
	if c.result == "" {
		equal(t, "attempts", len(rec.Attempts), 0)
		equal(t, "requests at the engine", len(r.engine.Requests()), 0)
		return
	}
	if len(rec.Attempts) != 1 {
		t.Fatalf("%d attempts, want 1", len(rec.Attempts))
	}
	equal(t, "attempt's result", rec.Attempts[0].Result, c.result)
	equal(t, "attempt's fault", rec.Attempts[0].Fault, c.kind)
	equal(t, "deployment header", a.Header.Get("X-Gateway-Deployment"), "d1")
	if c.relayed && c.fault.Body != "" {
		equal(t, "the upstream's own bytes", string(a.body), c.fault.Body)
	}
	if c.fault != nil && c.fault.Header["Retry-After"] != "" {
		equal(t, "retry-after", a.Header.Get("Retry-After"), c.fault.Header["Retry-After"])
	}
}

// render shows an answer with its ids masked.
func render(a answer, rec *trace.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d\n", a.StatusCode)
	var names []string
	for name := range a.Header {
		if name != "Date" && name != "Content-Length" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(a.Header[name], " | "))
	}
	if a.Close {
		b.WriteString("(closes)\n")
	}
	fmt.Fprintf(&b, "\n%s\n\n", strings.TrimSuffix(string(a.body), "\n"))
	return port.ReplaceAllString(strings.ReplaceAll(b.String(), rec.ID, "ID"), "addr=127.0.0.1:PORT")
}

var port = regexp.MustCompile(`addr=127\.0\.0\.1:\d{2,}`)

// compare holds a text against its golden file.
func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew):\n%s\nwant\n%s", file, got, want)
	}
}
