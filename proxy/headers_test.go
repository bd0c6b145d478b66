package proxy

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// What travels in headers, both ways.

// sentUp posts and returns what the engine got, what was recorded and the answer.
func (r *rig) sentUp(t *testing.T, d dialectCase, path string, headers ...string) (fakeengine.RequestLog, *trace.Record, answer) {
	t.Helper()
	a := r.post(path, d.body(true, "hello"), headers...)
	rec := r.record()
	equal(t, "status", a.StatusCode, 200)
	l, ok := r.engine.Request(rec.ID + "-a1")
	if !ok {
		t.Fatalf("the engine has no request with the id %s-a1", rec.ID)
	}
	return l, rec, a
}

func TestRequestHeaders(t *testing.T) {
	r := newRig(t, quickly(setup{}))
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			l, _, _ := r.sentUp(t, d, d.path,
				"Connection: X-Private, keep-alive, x-also", "X-Private: 1", "X-Also: 1", "Keep-Alive: timeout=5", "Proxy-Connection: keep-alive",
				"TE: trailers", "Trailer: X-T", "Proxy-Authorization: Basic x", "Upgrade: h2c", "HTTP2-Settings: x",
				"Accept-Encoding: gzip, br", "X-Forwarded-For: 1.2.3.4", "Forwarded: for=1.2.3.4", "Via: 1.1 x", "X-Real-IP: 1.2.3.4",
				"anthropic-beta: a,b", "anthropic-beta: c", "anthropic-version: 2023-06-01", "X-Unknown-Thing: kept", "x-stainless-lang: go",
				"x-gateway-tags: a,b", "x-gateway-timeout-ms: 60000", "User-Agent: test/1.0", "Accept: text/event-stream", "X-Empty:")
			h := l.Header
			for _, name := range []string{"Connection", "X-Private", "X-Also", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Proxy-Authorization",
				"Upgrade", "Http2-Settings", "X-Forwarded-For", "Forwarded", "Via", "X-Real-Ip", "X-Gateway-Tags", "X-Gateway-Timeout-Ms", "Transfer-Encoding"} {
				if v := h.Values(name); len(v) > 0 {
					t.Errorf("%s was sent upstream: %q", name, v)
				}
			}
			for name, want := range map[string][]string{
				"Anthropic-Beta": {"a,b", "c"}, "Anthropic-Version": {"2023-06-01"}, "X-Unknown-Thing": {"kept"}, "X-Stainless-Lang": {"go"},
				"User-Agent": {"test/1.0"}, "Accept": {"text/event-stream"}, "Accept-Encoding": {"identity"}, "Content-Type": {"application/json"},
				"Authorization": {"Bearer " + upstreamKey}, "X-Empty": {""},
			} {
				if !slices.Equal(h.Values(name), want) {
					t.Errorf("%s upstream: %q, want %q", name, h.Values(name), want)
				}
			}
			equal(t, "traceparents", len(h.Values("Traceparent")), 1)
			equal(t, "lengths", len(h.Values("Content-Length")), 1)
		})
	}
}

// TestNamesInConnection: they stay here however the header is written.
func TestNamesInConnection(t *testing.T) {
	r := newRig(t, quickly(setup{}))
	for name, lines := range map[string][]string{
		"one":           {"Connection: X-Private"},
		"with close":    {"Connection: close, X-Private"},
		"after close":   {"Connection: close", "Connection: X-Private"},
		"second line":   {"Connection: keep-alive", "connection: x-private"},
		"small letters": {"CONNECTION: x-private,x-other"},
		"tabs":          {"Connection:\tkeep-alive ,\tX-PRIVATE "},
	} {
		l, _, _ := r.sentUp(t, dialects[0], dialects[0].path, append(lines, "X-Private: 1", "X-Public: 1")...)
		equal(t, name+": X-Private upstream", l.Header.Get("X-Private"), "")
		equal(t, name+": X-Public upstream", l.Header.Get("X-Public"), "1")
		equal(t, name+": Connection upstream", l.Header.Get("Connection"), "")
	}
}

// whoAsks are headers by which proxies before us tell who the client is.
var whoAsks = []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix", "x-forwarded-user", "X-Forwarded-Client-Cert",
	"X-Original-URI", "X-Original-Forwarded-For", "CF-Connecting-IP", "CF-Ray", "cf-ipcountry", "X-Amz-Cf-Id", "X-AMZ-Security-Token", "X-Amzn-Trace-Id", "X-Amzn-Oidc-Identity",
	"True-Client-IP", "X-Client-IP", "X-Cluster-Client-IP", "Fastly-Client-IP", "X-Envoy-External-Address", "X-Real-IP", "Forwarded", "Via"}

// TestWhoAsksStaysHere: whatever the deployment's credential is.
func TestWhoAsksStaysHere(t *testing.T) {
	lines := []string{"X-Forward: kept", "X-Amzn-Bedrock-Trace: kept", "Cfx: kept"}
	for _, name := range whoAsks {
		lines = append(lines, name+": 203.0.113.7")
	}
	for _, auth := range []string{"bearer", "passthrough", "none"} {
		r := newRig(t, quickly(setup{deployment: "auth: " + auth}))
		l, _, _ := r.sentUp(t, dialects[0], dialects[0].path, lines...)
		for _, name := range whoAsks {
			equal(t, name+" upstream, auth "+auth, l.Header.Get(name), "")
		}
		for _, name := range []string{"X-Forward", "X-Amzn-Bedrock-Trace", "Cfx"} {
			equal(t, name+" upstream", l.Header.Get(name), "kept")
		}
	}
}

// TestConnectionNamesTheContentType: the body's type is known without the client's word.
func TestConnectionNamesTheContentType(t *testing.T) {
	r := newRig(t, quickly(setup{}))
	l, _, _ := r.sentUp(t, dialects[0], dialects[0].path, "Connection: content-type")
	equal(t, "Content-Type upstream", strings.Join(l.Header.Values("Content-Type"), "|"), "application/json")
}

// canaries are keys in every place where a client may put one.
func canaries(n string) []string {
	return []string{"Authorization: Bearer " + testKey, "x-api-key: canary-" + n + "-x-api-key", "api-key: canary-" + n + "-api-key",
		"X-Goog-Api-Key: canary-" + n + "-goog", "Cookie: session=canary-" + n + "-cookie", "Cookie: other=canary-" + n + "-cookie2",
		"Proxy-Authorization: Bearer canary-" + n + "-proxy", "x-gateway-key: " + testKey}
}

// TestNoKeyLeaves: not upstream, not into the log, an error body or a timeline.
func TestNoKeyLeaves(t *testing.T) {
	r := newRig(t, quickly(setup{tenant: moreTenants}))
	secrets := []string{"canary", testKey, otherKey, expiredKey, wrongKey, upstreamKey}
	silent := func(what, text string) {
		t.Helper()
		for _, s := range secrets {
			if strings.Contains(text, s) {
				t.Errorf("%s shows %s: %s", what, s, text)
			}
		}
	}
	const query = "?key=canary-q1&api_key=canary-q2&access_token=canary-q3&%6bey=canary-q4&beta=true"
	faults := []fakeengine.Fault{
		{Kind: fakeengine.Status, Status: 401, Body: `{"error":{"message":"Incorrect API key provided"}}`}, {Kind: fakeengine.Status, Status: 429},
		{Kind: fakeengine.Status, Status: 502}, {Kind: fakeengine.RST, Before: true}, {Kind: fakeengine.FIN, After: 1}, {Kind: fakeengine.Raw, Text: "what?"}, {Kind: fakeengine.Slow},
	}
	for _, d := range dialects {
		for _, f := range faults {
			r.engine.ClearScript()
			r.engine.Script(f)
			a := r.post(d.path+query, d.body(true, "hello"), append([]string{"-Authorization"}, canaries("served")...)...)
			silent("the answer", string(a.body)+headerText(a.Header))
			silent("the timeline", string(must(json.Marshal(r.record()))))
		}
		for _, key := range []string{wrongKey, expiredKey} {
			a := r.post(d.path+query, d.body(true, "hello"), "-Authorization", "x-api-key: "+key, "Cookie: canary-c")
			equal(t, "status", a.StatusCode, 401)
			silent("the refusal", string(a.body)+headerText(a.Header))
			silent("the timeline of the refusal", string(must(json.Marshal(r.record()))))
		}
		c := r.dial()
		_ = must(io.WriteString(c, "POST "+d.path+query+" HTTP/1.1\r\nHost: g\r\nx-api-key: "+testKey+"\r\nAuthorization : Bearer canary\r\nbroken head canary\r\n\r\n"))
		a := read(t, c)
		silent("the answer to a broken head", string(a.body)+headerText(a.Header))
	}
	contains(t, "the log", r.log.String(), "http server") // it has the server's own complaints, too
	silent("the log", r.log.String())
	secrets = []string{"canary", testKey, otherKey, expiredKey, wrongKey}
	for _, l := range r.engine.Requests() {
		silent("the upstream request", l.Path+headerText(l.Header))
		equal(t, "query upstream", l.Path[strings.IndexByte(l.Path, '?'):], "?beta=true")
	}
}

func headerText(h http.Header) string {
	var b strings.Builder
	_ = h.Write(&b) // a builder takes everything
	return b.String()
}

func TestDeploymentCredentials(t *testing.T) {
	for _, c := range []struct {
		auth                string
		authorization, xAPI string
		headers             []string
	}{
		{"bearer", "Bearer " + upstreamKey, "", []string{"Authorization: Bearer " + testKey}},
		{"x-api-key", "", upstreamKey, []string{"Authorization: Bearer " + testKey}},
		{"none", "", "", []string{"x-api-key: " + testKey}},
		{"passthrough", "Bearer sk-ant-oat-own", "", []string{"x-gateway-key: " + testKey, "Authorization: Bearer sk-ant-oat-own"}},
		{"passthrough", "", "sk-ant-own", []string{"x-gateway-key: " + testKey, "x-api-key: sk-ant-own"}},
	} {
		t.Run(c.auth, func(t *testing.T) {
			r := newRig(t, quickly(setup{deployment: "auth: " + c.auth}))
			for _, d := range dialects {
				l, _, _ := r.sentUp(t, d, d.path, append([]string{"-Authorization"}, c.headers...)...)
				equal(t, "Authorization upstream", strings.Join(l.Header.Values("Authorization"), "|"), c.authorization)
				equal(t, "X-Api-Key upstream", strings.Join(l.Header.Values("X-Api-Key"), "|"), c.xAPI)
				equal(t, "X-Gateway-Key upstream", l.Header.Get("X-Gateway-Key"), "")
				equal(t, "Api-Key upstream", l.Header.Get("Api-Key"), "")
				if text := headerText(l.Header); strings.Contains(text, testKey) {
					t.Errorf("the tenant's key went upstream: %s", text)
				}
			}
		})
	}
}

// TestPassthroughKeepsTheTenantsKey: where the client sends only the gateway's
// key, in a header that else belongs to the upstream, it is still not sent on.
func TestPassthroughKeepsTheTenantsKey(t *testing.T) {
	for _, header := range []string{"Authorization: Bearer " + testKey, "x-api-key: " + testKey, "api-key: " + testKey} {
		t.Run(header[:strings.IndexByte(header, ':')], func(t *testing.T) {
			r := newRig(t, quickly(setup{deployment: "auth: passthrough"}))
			l, _, _ := r.sentUp(t, dialects[0], dialects[0].path, "-Authorization", header)
			if text := headerText(l.Header); strings.Contains(text, testKey) {
				t.Errorf("the tenant's key went upstream: %s", text)
			}
		})
	}
}

func TestBaseURLs(t *testing.T) {
	paths := make(chan string, 16)
	up := newScripted(t, func(c net.Conn, req *http.Request, _ []byte) {
		paths <- req.Host + " " + req.RequestURI
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
	})
	host := strings.TrimPrefix(up.url, "http://")
	for suffix, prefix := range map[string]string{"": "", "/": "", "/v1": "", "/v1/": "", "/api": "/api", "/api/": "/api", "/api/v1": "/api", "/api/v1/": "/api", "/a/b/v1": "/a/b"} {
		t.Run("base"+suffix, func(t *testing.T) {
			r := newRig(t, setup{upstream: up.url + suffix})
			for _, d := range dialects {
				for _, query := range []string{"", "?beta=true", "?a=%2F&b=+"} {
					r.post(d.path+query, d.body(true, "x"))
					equal(t, "upstream", <-paths, host+" "+prefix+d.path+query)
				}
			}
		})
	}
}

// TestResponseHeaders: the upstream's pass, less what belongs to its own
// connection, account and request ids.
func TestResponseHeaders(t *testing.T) {
	head := "Content-Type: application/json\r\nServer: nginx\r\nDate: Mon, 01 Jan 2001 00:00:00 GMT\r\nX-Request-Id: up-123456\r\nRequest-Id: up-other\r\n" +
		"Keep-Alive: timeout=5\r\nProxy-Authenticate: x\r\nRetry-After: 7\r\nX-RateLimit-Remaining-Requests: 3\r\nanthropic-ratelimit-tokens-remaining: 5\r\n" +
		"anthropic-ratelimit-unified-status: allowed\r\nanthropic-organization-id: org\r\nopenai-organization: org\r\nopenai-processing-ms: 12\r\n" +
		"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Custom: kept\r\nX-Gateway-Deployment: liar\r\n"
	ownConnection := "Connection: keep-alive, X-Hop\r\nconnection: x-HOP-2\r\nX-Hop: 1\r\nX-Hop-2: 1\r\n"
	ofTheHost := "Alt-Svc: h3=\":443\"\r\nStrict-Transport-Security: max-age=9\r\n"
	ofTheAccount := "openai-project: proj\r\nX-Amz-Cf-Id: x\r\nx-amz-request-id: x\r\n"
	head += ownConnection + ofTheHost + ofTheAccount
	up := newScripted(t, func(c net.Conn, req *http.Request, _ []byte) {
		status := "200 OK"
		if req.Header.Get("X-Want") == "429" {
			status = "429 Too Many Requests"
		}
		_, _ = io.WriteString(c, "HTTP/1.1 "+status+"\r\n"+head+"Content-Length: 11\r\n\r\n{\"id\":\"u1\"}")
	})
	for _, auth := range []string{"bearer", "passthrough"} {
		t.Run(auth, func(t *testing.T) {
			r := newRig(t, setup{upstream: up.url, deployment: "auth: " + auth})
			for _, d := range dialects {
				for _, want := range []string{"200", "429"} {
					a := r.post(d.path, d.body(false, "x"), "-Authorization", "x-gateway-key: "+testKey, "X-Want: "+want)
					rec := r.record()
					r.rest()
					h := a.Header
					equal(t, "status", a.Status[:3], want)
					equal(t, "x-request-id", strings.Join(h.Values("X-Request-Id"), "|"), rec.ID)
					equal(t, "request-id", strings.Join(h.Values("Request-Id"), "|"), rec.ID)
					equal(t, "deployment", strings.Join(h.Values("X-Gateway-Deployment"), "|"), "d1")
					equal(t, "server", h.Get("Server"), "")
					equal(t, "dates", len(h.Values("Date")), 1)
					equal(t, "retry-after", h.Get("Retry-After"), "7")
					equal(t, "custom", h.Get("X-Custom"), "kept")
					equal(t, "vendor's time", h.Get("Openai-Processing-Ms"), "12")
					for _, name := range []string{"Keep-Alive", "X-Hop", "X-Hop-2", "Alt-Svc", "Strict-Transport-Security"} {
						equal(t, name, strings.Join(h.Values(name), "|"), "")
					}
					equal(t, "id on the timeline", slices.Contains(rec.UpstreamIDs, "up-123456"), true)
					equal(t, "id of the attempt", rec.Attempts[0].UpstreamID, "up-123456")
					for _, name := range []string{"X-Ratelimit-Remaining-Requests", "Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Unified-Status", "Anthropic-Organization-Id", "Openai-Organization", "Openai-Project", "X-Amz-Cf-Id", "X-Amz-Request-Id", "Set-Cookie"} {
						equal(t, "has "+name, h.Get(name) != "", auth == "passthrough")
					}
					if auth == "passthrough" {
						equal(t, "cookies", strings.Join(h.Values("Set-Cookie"), "|"), "a=1|b=2")
					}
				}
			}
		})
	}
}

func TestStreamHeaders(t *testing.T) {
	r := newRig(t, quickly(setup{}))
	for _, d := range dialects {
		_, _, a := r.sentUp(t, d, d.path)
		equal(t, "X-Accel-Buffering", a.Header.Get("X-Accel-Buffering"), "no")
		equal(t, "Cache-Control", a.Header.Get("Cache-Control"), "no-cache")
		contains(t, "content type", a.Header.Get("Content-Type"), "text/event-stream")
		equal(t, "Server", a.Header.Get("Server"), "")
		equal(t, "chunked", slices.Equal(a.TransferEncoding, []string{"chunked"}), true)
		equal(t, "Vary", a.Header.Get("Vary"), "Origin")
	}
}
