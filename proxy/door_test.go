package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tracegate/trace"
)

// Who comes in: keys, where they stand, and which of several counts; probes
// that need none; the list of models.

const (
	otherKey   = "sk-other-tenant-key"
	expiredKey = "sk-expired-key"
	wrongKey   = "sk-nobody-has-this"
)

// moreTenants adds a tenant with other rights and one whose key has expired.
var moreTenants = fmt.Sprintf(`    models: [public]
  - name: other
    keys: [{sha256: %s, id: k2}]
  - name: old
    keys: [{sha256: %s, id: k3, expires: 2020-01-01T00:00:00Z}]
`, digest(otherKey), digest(expiredKey))

// quickly makes the engine spend no time on its answers.
func quickly(s setup) setup {
	s.engine.StepBase, s.engine.StepPerSeq, s.engine.PrefillRate = time.Microsecond, time.Microsecond, 1e9
	return s
}

var keyCases = []struct {
	name    string
	headers []string
	tenant  string // "" = 401
}{
	{"bearer", []string{"Authorization: Bearer " + testKey}, "team"},
	{"bearer in small letters", []string{"authorization: bearer " + testKey}, "team"},
	{"bearer with blanks", []string{"Authorization: Bearer   " + testKey + "  "}, "team"},
	{"x-api-key", []string{"x-api-key: " + testKey}, "team"},
	{"api-key", []string{"api-key: " + testKey}, "team"},
	{"x-gateway-key", []string{"x-gateway-key: " + testKey}, "team"},
	{"another tenant", []string{"x-api-key: " + otherKey}, "other"},
	{"bearer before x-api-key", []string{"x-api-key: " + otherKey, "Authorization: Bearer " + testKey}, "team"},
	{"x-api-key before api-key", []string{"api-key: " + otherKey, "x-api-key: " + testKey}, "team"},
	{"x-gateway-key before bearer", []string{"Authorization: Bearer " + otherKey, "x-gateway-key: " + testKey}, "team"},
	{"good bearer, stale x-api-key", []string{"x-api-key: " + wrongKey, "Authorization: Bearer " + testKey}, "team"},
	{"x-gateway-key, the vendor's own beside it", []string{"Authorization: Bearer sk-ant-oat-x", "x-api-key: sk-ant-x", "x-gateway-key: " + testKey}, "team"},
	{"basic is no key", []string{"Authorization: Basic dGVzdDp0ZXN0", "x-api-key: " + testKey}, "team"},
	{"empty bearer is no key", []string{"Authorization: Bearer ", "x-api-key: " + testKey}, "team"},
	{"empty x-gateway-key is no key", []string{"x-gateway-key: ", "x-api-key: " + testKey}, "team"},
	{"stale bearer, good x-api-key", []string{"Authorization: Bearer " + wrongKey, "x-api-key: " + testKey}, ""},
	{"wrong", []string{"Authorization: Bearer " + wrongKey}, ""},
	{"digest in place of the key", []string{"Authorization: Bearer " + digest(testKey)}, ""},
	{"beginning of a key", []string{"Authorization: Bearer " + testKey[:len(testKey)-1]}, ""},
	{"more than a key", []string{"Authorization: Bearer " + testKey + "x"}, ""},
	{"expired", []string{"x-api-key: " + expiredKey}, ""},
	{"basic", []string{"Authorization: Basic dGVzdDp0ZXN0"}, ""},
	{"none", nil, ""},
	{"in the query", []string{}, ""},
}

func TestKeys(t *testing.T) {
	r := newRig(t, quickly(setup{tenant: moreTenants}))
	for _, c := range keyCases {
		for _, d := range dialects {
			t.Run(c.name+"/"+d.name, func(t *testing.T) {
				path := d.path
				if c.name == "in the query" {
					path += "?key=" + testKey + "&api_key=" + testKey
				}
				a := r.post(path, d.body(false, "hello"), append([]string{"-Authorization"}, c.headers...)...)
				rec := r.record()
				if c.tenant == "" {
					isUnauthorized(t, d, a, rec)
					return
				}
				equal(t, "status", a.StatusCode, 200)
				equal(t, "tenant", rec.Tenant, c.tenant)
			})
		}
	}
	for _, l := range r.engine.Requests() {
		equal(t, "credential upstream", l.Header.Get("Authorization"), "Bearer "+upstreamKey)
	}
}

// isUnauthorized: 401 that no SDK tries again, in the dialect, counted for nobody.
func isUnauthorized(t *testing.T, d dialectCase, a answer, rec *trace.Record) {
	t.Helper()
	equal(t, "status", a.StatusCode, 401)
	equal(t, "x-should-retry", a.Header.Get("X-Should-Retry"), "false")
	isErrorBody(t, d, a)
	equal(t, "outcome", rec.Outcome, trace.Refused)
	equal(t, "tenant", rec.Tenant, "")
	equal(t, "dialect", rec.Dialect, d.name)
	equal(t, "attempts", len(rec.Attempts), 0)
	if _, ok := rec.Offset(trace.Enqueue); ok {
		t.Error("a refused key has an enqueue time")
	}
}

// TestAnonymous: no key is a tenant of its own where it is allowed; a wrong key never is.
func TestAnonymous(t *testing.T) {
	r := newRig(t, quickly(setup{config: "anonymous: {allow: true}"}))
	d := dialects[0]
	a := r.post(d.path, d.body(false, "hello"), "-Authorization")
	equal(t, "status without a key", a.StatusCode, 200)
	rec := r.record()
	equal(t, "tenant", rec.Tenant, "anonymous")
	equal(t, "key id", rec.KeyID, "")
	isUnauthorized(t, d, r.post(d.path, d.body(false, "hello"), "-Authorization", "x-api-key: "+wrongKey), r.record())
	a = r.post(d.path, d.body(false, "hello"))
	equal(t, "status with a key", a.StatusCode, 200)
	equal(t, "tenant with a key", r.record().Tenant, "team")
}

// ask sends a request without a body and reads the answer.
func (r *rig) ask(method, path string, headers ...string) answer {
	r.t.Helper()
	c := r.dial()
	lines := ""
	for _, h := range headers {
		lines += h + "\r\n"
	}
	_ = must(io.WriteString(c, method+" "+path+" HTTP/1.1\r\nHost: g\r\n"+lines+"\r\n"))
	br := bufio.NewReader(c)
	resp, err := http.ReadResponse(br, &http.Request{Method: method})
	if err != nil {
		r.t.Fatalf("no answer: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if !resp.Close {
		inSync(r.t, c, br)
	}
	return answer{Response: resp, body: body, err: err}
}

func TestProbesNeedNoKey(t *testing.T) {
	r := newRig(t, setup{})
	for _, path := range []string{"/", "/livez", "/readyz", "/health/liveliness", "/health/readiness", "/?x=1", "/livez?probe=1"} {
		for _, method := range []string{"GET", "HEAD"} {
			a := r.ask(method, path)
			equal(t, method+" "+path, a.StatusCode, 200)
			equal(t, "length of its id", len(a.Header.Get("X-Request-Id")), 26)
			body := "ok\n"
			if method == "HEAD" {
				body = ""
			}
			equal(t, "body of "+method+" "+path, string(a.body), body)
		}
		a := r.ask("DELETE", path)
		equal(t, "DELETE "+path, a.StatusCode, 405)
		equal(t, "Allow", a.Header.Get("Allow"), "GET, HEAD")
	}
	for _, path := range []string{"/v1/models", "/models", "/anthropic/v1/models"} {
		equal(t, "HEAD "+path, r.ask("HEAD", path).StatusCode, 200)
	}
	equal(t, "requests counted", r.book.Running()+len(r.finished), 0)
}

const secondModel = `  - name: secret
    aliases: [secret-alias]
    deployments: [{name: d2, base_url: "http://127.0.0.1:9", model: x}]`

// TestModels: the list in both shapes, with aliases, of what the key may use.
func TestModels(t *testing.T) {
	r := newRig(t, setup{model: secondModel, tenant: moreTenants})
	const asAnthropic = "anthropic-version: 2023-06-01"
	for _, path := range []string{"/v1/models", "/models", "/openai/v1/models", "/anthropic/v1/models", "/v1/models/", "/v1/models?client_version=0.1"} {
		equal(t, "names at "+path, idsOf(t, r.ask("GET", path, "x-api-key: "+testKey)), "public other-name")
		equal(t, "names at "+path+" of another tenant", idsOf(t, r.ask("GET", path, "x-api-key: "+otherKey)), "public other-name secret secret-alias")
		equal(t, "names at "+path+" for Anthropic", idsOf(t, r.ask("GET", path, "x-api-key: "+testKey, asAnthropic)), "public other-name")
		isErrorBody(t, dialects[1], r.ask("GET", path))
		equal(t, "status without a key", r.ask("GET", path).StatusCode, 401)
	}
	openAI := r.ask("GET", "/v1/models", "x-api-key: "+testKey)
	contains(t, "OpenAI's list", string(openAI.body), `"object":"list"`)
	contains(t, "OpenAI's model", string(openAI.body), `"object":"model"`)
	anthropic := r.ask("GET", "/v1/models", "x-api-key: "+testKey, asAnthropic)
	contains(t, "Anthropic's list", string(anthropic.body), `"has_more":false`)
	contains(t, "Anthropic's list", string(anthropic.body), `"first_id":"public"`)
	contains(t, "Anthropic's model", string(anthropic.body), `"type":"model"`)

	for _, name := range []string{"public", "other-name", "%70ublic"} {
		a := r.ask("GET", "/v1/models/"+name, "x-api-key: "+testKey)
		equal(t, "status of "+name, a.StatusCode, 200)
		contains(t, "model", string(a.body), `"object":"model"`)
		a = r.ask("GET", "/v1/models/"+name, "x-api-key: "+testKey, asAnthropic)
		contains(t, "model for Anthropic", string(a.body), `"display_name":`)
	}
	for _, name := range []string{"secret", "secret-alias", "nobody", "d1", "served", "public/x"} {
		a := r.ask("GET", "/v1/models/"+name, "x-api-key: "+testKey)
		equal(t, "status of "+name, a.StatusCode, 404)
		isErrorBody(t, dialects[1], a)
		a = r.ask("GET", "/v1/models/"+name, "x-api-key: "+testKey, asAnthropic)
		isErrorBody(t, dialects[0], a)
	}
}

// idsOf reads the names out of a list of models.
func idsOf(t *testing.T, a answer) string {
	t.Helper()
	var names []string
	for part := range strings.SplitSeq(string(a.body), `"id":"`) {
		if name, _, ok := strings.Cut(part, `"`); ok && name != "" && !strings.HasPrefix(part, "{") {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// TestWebSocket: Codex tries it first and falls back at once on a 426.
func TestWebSocket(t *testing.T) {
	r := newRig(t, setup{})
	upgrade := []string{"Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}
	for _, headers := range [][]string{upgrade, append([]string{"Authorization: Bearer " + testKey}, upgrade...)} {
		for _, path := range []string{"/v1/responses", "/responses", "/openai/v1/responses"} {
			a := r.ask("GET", path, headers...)
			equal(t, "status", a.StatusCode, 426)
			isErrorBody(t, dialects[3], a)
			equal(t, "outcome", r.record().Outcome, trace.Refused)
		}
	}
	equal(t, "requests at the engine", len(r.engine.Requests()), 0)
}

// TestExpect: what would be refused is refused before the body is asked for.
func TestExpect(t *testing.T) {
	r := newRig(t, quickly(setup{config: "limits: {max_body: 64KiB}"}))
	for _, c := range []struct {
		name, path, key, framing string
		status                   int
	}{
		{"wrong key", "/v1/messages", wrongKey, "Content-Length: 30000", 401},
		{"wrong key, chunked", "/v1/messages", wrongKey, "Transfer-Encoding: chunked", 401},
		{"no key, one byte", "/v1/messages", "", "Content-Length: 1", 401},
		{"too large", "/v1/messages", testKey, "Content-Length: 30000000", 413},
		{"unknown path", "/v2/nothing", testKey, "Content-Length: 30000", 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := r.dial()
			_ = must(io.WriteString(conn, "POST "+c.path+" HTTP/1.1\r\nHost: g\r\nx-api-key: "+c.key+"\r\nExpect: 100-continue\r\n"+c.framing+"\r\n\r\n"))
			br := bufio.NewReader(conn)
			a := readFrom(t, br)
			equal(t, "status", a.StatusCode, c.status)
			if strings.HasPrefix(c.path, "/v1") {
				isErrorBody(t, dialects[0], a)
			}
			isClosed(t, br)
		})
	}
	equal(t, "body bytes", r.gateway.BodyBytes(), 0)
	equal(t, "requests at the engine", len(r.engine.Requests()), 0)
	for _, d := range dialects {
		for _, chunked := range []bool{false, true} {
			body := d.body(false, "hello")
			framing, sent := fmt.Sprintf("Content-Length: %d", len(body)), body
			if chunked {
				framing, sent = "Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
			}
			conn := r.dial()
			_ = must(io.WriteString(conn, "POST "+d.path+" HTTP/1.1\r\nHost: g\r\nx-api-key: "+testKey+"\r\nExpect: 100-continue\r\n"+framing+"\r\n\r\n"))
			br := bufio.NewReader(conn)
			equal(t, "interim status", must(http.ReadResponse(br, nil)).StatusCode, 100)
			_ = must(io.WriteString(conn, sent))
			a := readFrom(t, br)
			equal(t, "status", a.StatusCode, 200)
			inSync(t, conn, br)
		}
	}
	for _, l := range r.engine.Requests() {
		equal(t, "Expect upstream", l.Header.Get("Expect"), "")
	}
}
