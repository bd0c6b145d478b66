package proxy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tracegate/trace"
)

// Raw bytes at the front door: every request that two parsers could read
// differently gets one answer and a closed connection, and no byte of it, nor
// of what follows it, reaches the engine.

// framingCase is one request as raw bytes. In head, LEN stands for the length
// of the body; it follows the request line, "Host" and the tenant's credential.
type framingCase struct {
	name   string
	line   string // "" = POST {path} HTTP/1.1
	head   string // whole lines
	body   string // "" = a good one
	status int
	lost   bool // the request line does not tell the path: OpenAI's shape on every route
}

const smuggled = "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer " + testKey + "\r\nContent-Length: 2\r\n\r\n{}"

var framingCases = []framingCase{
	{name: "content length and transfer encoding", head: "Content-Length: LEN\r\nTransfer-Encoding: chunked\r\n", body: "0\r\n\r\n" + smuggled, status: 400},
	{name: "transfer encoding and content length", head: "Transfer-Encoding: chunked\r\nContent-Length: LEN\r\n", body: "0\r\n\r\n" + smuggled, status: 400},
	{name: "identity with a length", head: "Transfer-Encoding: identity\r\nContent-Length: LEN\r\n", status: 400},
	{name: "identity alone", head: "Transfer-Encoding: identity\r\n", status: 400},
	{name: "two equal lengths", head: "Content-Length: LEN\r\nContent-Length: LEN\r\n", status: 400},
	{name: "two lengths", head: "Content-Length: LEN\r\nContent-Length: 3\r\n", status: 400},
	{name: "list of lengths", head: "Content-Length: 3, 3\r\n", status: 400},
	{name: "length with a sign", head: "Content-Length: +3\r\n", status: 400},
	{name: "negative length", head: "Content-Length: -1\r\n", status: 400},
	{name: "hexadecimal length", head: "Content-Length: 0x3\r\n", status: 400},
	{name: "length that overflows", head: "Content-Length: 99999999999999999999999\r\n", status: 400},
	{name: "two transfer encodings", head: "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", body: "0\r\n\r\n", status: 400},
	{name: "gzip, chunked", head: "Transfer-Encoding: gzip, chunked\r\n", body: "0\r\n\r\n", status: 400},
	{name: "xchunked", head: "Transfer-Encoding: xchunked\r\n", body: "0\r\n\r\n", status: 400},
	{name: "space before the colon of a length", head: "Content-Length : LEN\r\n", status: 400},
	{name: "space before the colon of an encoding", head: "Transfer-Encoding : chunked\r\n", body: "0\r\n\r\n", status: 400},
	{name: "space inside a name", head: "X Odd: 1\r\nContent-Length: LEN\r\n", status: 400},
	{name: "no name", head: ": 1\r\nContent-Length: LEN\r\n", status: 400},
	{name: "no colon", head: "Content-Length: LEN\r\nX-Odd\r\n", status: 400},
	{name: "parenthesis in a name", head: "X(odd): 1\r\nContent-Length: LEN\r\n", status: 400},
	{name: "NUL in a value", head: "X-Odd: a\x00b\r\nContent-Length: LEN\r\n", status: 400},
	{name: "bare CR in a value", head: "X-Odd: a\rb\r\nContent-Length: LEN\r\n", status: 400},
	{name: "folded header", head: "X-Odd: a\r\n b\r\nContent-Length: LEN\r\n", status: 400},
	{name: "folded with a tab", head: "X-Odd: a\r\n\tb\r\nContent-Length: LEN\r\n", status: 400},
	{name: "folded encoding", head: "Transfer-Encoding:\r\n chunked\r\n", body: "0\r\n\r\n", status: 400},
	{name: "bare LF after a header", head: "X-Odd: a\nContent-Length: LEN\r\n", status: 400},
	{name: "second Host", head: "Host: other\r\nContent-Length: LEN\r\n", status: 400},
	{name: "two blanks in the request line", line: "POST  {path} HTTP/1.1", head: "Content-Length: LEN\r\n", lost: true, status: 400},
	{name: "absolute form", line: "POST http://evil.test{path} HTTP/1.1", head: "Content-Length: LEN\r\n", status: 400},
	{name: "authority form", line: "CONNECT evil.test:80 HTTP/1.1", head: "Content-Length: LEN\r\n", status: 400},
	{name: "HTTP/1.0", line: "POST {path} HTTP/1.0", head: "Content-Length: LEN\r\n", status: 505},
	{name: "HTTP/1.0 with keep-alive", line: "POST {path} HTTP/1.0", head: "Connection: keep-alive\r\nContent-Length: LEN\r\n", status: 505},
	{name: "unknown expectation", head: "Expect: 200-ok\r\nContent-Length: LEN\r\n", status: 417},
	{name: "headers too large", head: "X-Big: " + strings.Repeat("b", 70<<10) + "\r\nContent-Length: LEN\r\n", status: 431},
	{name: "many headers, too large", head: strings.Repeat("X-Many: abcdefghijklmnop\r\n", 3000) + "Content-Length: LEN\r\n", status: 431},
	{name: "chunk with an odd size", head: "Transfer-Encoding: chunked\r\n", body: "zz\r\n{}\r\n0\r\n\r\n", status: 400},
	{name: "chunk size with a prefix", head: "Transfer-Encoding: chunked\r\n", body: "0x2\r\n{}\r\n0\r\n\r\n", status: 400},
	{name: "chunk longer than it says", head: "Transfer-Encoding: chunked\r\n", body: "2\r\n{}xx\r\n0\r\n\r\n", status: 400},
	{name: "chunk lines end with LF", head: "Transfer-Encoding: chunked\r\n", body: "2\n{}\n0\n\n", status: 400},
	{name: "LF in a chunk extension", head: "Transfer-Encoding: chunked\r\n", body: "2;a=\nb\r\n{}\r\n0\r\n\r\n", status: 400},
	{name: "chunk size overflows", head: "Transfer-Encoding: chunked\r\n", body: "fffffffffffffffff\r\n{}\r\n0\r\n\r\n", status: 400},
	{name: "length in a trailer", head: "Transfer-Encoding: chunked\r\n", body: "2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n", status: 400},
	{name: "HTTP/1.2", line: "POST {path} HTTP/1.2", head: "Content-Length: LEN\r\n", status: 505},
}

func TestFraming(t *testing.T) {
	r := newRig(t, setup{})
	for _, c := range framingCases {
		for _, d := range dialects {
			t.Run(c.name+"/"+d.name, func(t *testing.T) {
				conn := r.dial()
				_, _ = io.WriteString(conn, c.render(d)) // the answer may come before the last byte is taken
				br := bufio.NewReader(conn)
				a := readFrom(t, br)
				equal(t, "status", a.StatusCode, c.status)
				c.isRefused(t, d, a)
				isClosed(t, br)
				equal(t, "requests at the engine", len(r.engine.Requests()), 0)
			})
		}
	}
	r.await("all refused", func() bool { return r.gateway.Streams() == 0 })
}

func (c framingCase) render(d dialectCase) string {
	line, body := c.line, c.body
	if line == "" {
		line = "POST {path} HTTP/1.1"
	}
	if body == "" {
		body = d.body(true, "hello")
	}
	line = strings.ReplaceAll(line, "{path}", d.path)
	head := strings.ReplaceAll(c.head, "LEN", fmt.Sprint(len(body)))
	return line + "\r\nHost: g\r\nAuthorization: Bearer " + testKey + "\r\n" + head + "\r\n" + body
}

// isRefused checks the envelope of a refusal on a route whose path was readable.
func (c framingCase) isRefused(t *testing.T, d dialectCase, a answer) {
	t.Helper()
	equal(t, "Connection", a.Close, true)
	if c.lost || c.line != "" && !strings.Contains(c.line, " {path}") {
		isErrorBody(t, dialects[1], a)
		return
	}
	isErrorBody(t, d, a)
}

// isErrorBody: an error in the dialect's envelope, with our id in the headers and in the body.
func isErrorBody(t testing.TB, d dialectCase, a answer) {
	t.Helper()
	id := a.Header.Get("X-Request-Id")
	equal(t, "request-id", a.Header.Get("Request-Id"), id)
	if len(id) != 26 {
		t.Errorf("x-request-id %q is no id of ours", id)
	}
	contains(t, "content type", a.Header.Get("Content-Type"), "application/json")
	var body struct {
		Type      string `json:"type"`
		RequestID string `json:"request_id"`
		Error     struct {
			Type      string `json:"type"`
			Message   string `json:"message"`
			RequestID string `json:"request_id"`
		} `json:"error"`
	}
	if err := json.Unmarshal(a.body, &body); err != nil {
		t.Fatalf("body %q: %v", a.body, err)
	}
	equal(t, "has a message", body.Error.Message != "", true)
	equal(t, "has a type", body.Error.Type != "", true)
	if d.name == "messages" {
		equal(t, "type", body.Type, "error")
		equal(t, "request_id", body.RequestID, id)
		return
	}
	equal(t, "error.request_id", body.Error.RequestID, id)
}

// isClosed: nothing more comes, and the connection ends.
func isClosed(t testing.TB, br *bufio.Reader) {
	t.Helper()
	rest, _ := io.ReadAll(br) // a reset is an end, too
	if len(rest) > 0 {
		t.Errorf("after the answer came %q", rest)
	}
}

// TestLFOnlyHead: a head that never ends by the rules runs into the read
// limit, or is refused; it is never served.
func TestLFOnlyHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{memory: true})
		c := r.dial()
		_ = must(io.WriteString(c, "POST /v1/messages HTTP/1.1\nHost: g\nContent-Length: 2\n\n{}"))
		br := bufio.NewReader(c)
		a := readFrom(t, br)
		if a.StatusCode != 400 && a.StatusCode != 408 {
			t.Errorf("status %d", a.StatusCode)
		}
		isErrorBody(t, dialects[1], a)
		isClosed(t, br)
		equal(t, "requests at the engine", len(r.engine.Requests()), 0)
	})
}

// TestSlowRequest: a head or a body that does not come in time is 408, and the
// exact instant is that of its limit.
func TestSlowRequest(t *testing.T) {
	for _, s := range []struct {
		name, sent string
		limit      time.Duration
		dialect    dialectCase
	}{
		{"head", "POST /v1/messages HTTP/1.1\r\nHost: g\r\n", headTimeout, dialects[1]},
		{"body", "POST /v1/messages HTTP/1.1\r\nHost: g\r\nX-Api-Key: " + testKey + "\r\nContent-Length: 100\r\n\r\n{", headTimeout, dialects[0]},
		{"large body", "POST /v1/messages HTTP/1.1\r\nHost: g\r\nX-Api-Key: " + testKey + "\r\nContent-Length: 5242880\r\n\r\n{", headTimeout + 20*time.Second, dialects[0]},
		{"chunked body", "POST /v1/responses HTTP/1.1\r\nHost: g\r\nX-Api-Key: " + testKey + "\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
			chunkedUpload, dialects[3]},
	} {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, setup{memory: true})
				began := time.Now()
				c := r.dial()
				_ = must(io.WriteString(c, s.sent))
				br := bufio.NewReader(c)
				a := readFrom(t, br)
				equal(t, "answered after", time.Since(began), s.limit)
				equal(t, "status", a.StatusCode, 408)
				isErrorBody(t, s.dialect, a)
				isClosed(t, br)
				equal(t, "requests at the engine", len(r.engine.Requests()), 0)
			})
		})
	}
}

// TestEarlyRefusalLeavesNoRequestInTheBody: a key that is refused before a
// body of 1 MB is read; the body's tail looks like a request.
func TestEarlyRefusalLeavesNoRequestInTheBody(t *testing.T) {
	for _, encoding := range []string{"length", "chunked"} {
		t.Run(encoding, func(t *testing.T) {
			r := newRig(t, setup{})
			c := r.dial()
			body := strings.Repeat("x", 1<<20) + smuggled
			framing := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
			if encoding == "chunked" {
				framing = fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
			}
			// A client that reads only when all is sent.
			if _, err := io.WriteString(c, "POST /v1/messages HTTP/1.1\r\nHost: g\r\nX-Api-Key: wrong\r\n"+framing); err != nil {
				t.Fatalf("the body was not taken: %v", err)
			}
			br := bufio.NewReader(c)
			a := readFrom(t, br)
			equal(t, "status", a.StatusCode, 401)
			isErrorBody(t, dialects[0], a)
			isClosed(t, br)
			equal(t, "requests at the engine", len(r.engine.Requests()), 0)
		})
	}
}

// TestManySmallHeaders: their number is not limited, their size is.
func TestManySmallHeaders(t *testing.T) {
	r := newRig(t, quickly(setup{}))
	a := r.post("/v1/messages", dialects[0].body(false, "hello"), strings.Repeat("X-A: b\r\n", 599)+"X-A: b")
	equal(t, "status", a.StatusCode, 200)
	equal(t, "outcome", r.record().Outcome, trace.OK)
}

// TestPipelinedRequestsAreServedInTurn: what follows a good request is the
// next one, also while the first is being answered.
func TestPipelinedRequestsAreServedInTurn(t *testing.T) {
	r := newRig(t, quickly(setup{}))
	c := r.dial()
	var all strings.Builder
	mark := func(i int) string { return fmt.Sprintf("MARK-%04x", i) }
	for i, d := range dialects {
		all.WriteString(request(d.path, d.body(true, mark(i))))
	}
	_ = must(io.WriteString(c, all.String()))
	br := bufio.NewReader(c)
	for i := range dialects {
		a := readFrom(t, br)
		equal(t, "status", a.StatusCode, 200)
		equal(t, "end of the body", a.err, nil)
		contains(t, "answer", string(a.body), mark(i))
		equal(t, "outcome", r.record().Outcome, trace.OK)
	}
	inSync(t, c, br)
}

// inSync: the connection is open and the next request on it is understood.
func inSync(t testing.TB, c net.Conn, br *bufio.Reader) {
	t.Helper()
	if _, err := io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: g\r\n\r\n"); err != nil {
		t.Fatalf("the connection is closed: %v", err)
	}
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatalf("the connection is closed: %v", err)
	}
	body, _ := io.ReadAll(resp.Body) // its length is checked by what it says
	equal(t, "answer to /livez", string(body), "ok\n")
}

// TestGetWithABody: no route that is read takes one.
func TestGetWithABody(t *testing.T) {
	r := newRig(t, setup{})
	for _, path := range []string{"/v1/models", "/livez", "/"} {
		for _, framing := range []string{fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(smuggled), smuggled), "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled} {
			c := r.dial()
			_ = must(io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: g\r\nX-Api-Key: "+testKey+"\r\n"+framing))
			br := bufio.NewReader(c)
			a := readFrom(t, br)
			equal(t, "status of "+path, a.StatusCode, 400)
			isErrorBody(t, dialects[1], a)
			isClosed(t, br)
		}
	}
	equal(t, "requests at the engine", len(r.engine.Requests()), 0)
}
