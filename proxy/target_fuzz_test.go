package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"tracegate/configs"
)

// Whatever target and headers a client sends: what goes upstream is exactly one
// request, to a path below the deployment's own.

// sentPath is what may stand in an upstream's request line.
var sentPath = regexp.MustCompile(`^/base(/v1(/[A-Za-z0-9._~-]+)+|/tokenize|/detokenize|/classify|/pooling)(\?[!"$-~]*)?$`)

// upstreamsOf are deployments that are sent different heads.
var upstreamsOf = func() (all []*upstream) {
	for _, d := range []configs.Deployment{
		{Auth: authBearer, APIKey: upstreamKey},
		{Auth: authPassthrough, Profile: configs.Profile{Hosted: true}},
	} {
		all = append(all, &upstream{spec: &d, host: "up.test:8000", prefix: "/base", authLine: authLine(&d)})
	}
	return all
}()

func FuzzOneRequestIsSentOn(f *testing.F) {
	for _, target := range append(append([]string{"/v1/messages", "/tokenize?a=b", "/v1/audio/speech"}, badTargets...), unusualTargets...) {
		f.Add([]byte(target), []byte("X-A: b\r\n"))
	}
	for _, headers := range []string{
		"Connection: content-type, x-a\r\nX-A: b\r\n", "Cookie: a=b; c=d\r\nCookie: e\r\n", "Content-Type: text/json;\tq\r\n", "X-\x80: \xff\r\n",
		"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-T: a\r\n\r\n", "Content-Length: 2\r\n\r\n{}" + smuggled, "Host: x\r\nX-Request-Id: \t\r\n",
		"X A: b\r\n", "X-A : b\r\n", "X-A: b\r\n c\r\n", "X-A: b\nX-B: c\r\n", "Traceparent: 00\r\nContent-Length: 0\r\nContent-Length: 0\r\n", ": a\r\n", "Trailer: X-T\r\n",
	} {
		f.Add([]byte("/v1/messages"), []byte(headers))
		f.Add([]byte("/v1/rerank"), []byte(headers))
	}
	f.Fuzz(func(t *testing.T, target, headers []byte) {
		var ctx fasthttp.RequestCtx
		raw := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: g\r\n%s\r\n", target, headers)
		if ctx.Request.Read(bufio.NewReader(strings.NewReader(raw))) != nil {
			return
		}
		x := &exchange{ctx: &ctx, trace: continuedTrace(nil, false)}
		var refused *fault
		if x.route, _, refused = new(Gateway).where(&ctx.Request.Header); refused != nil || x.route.dialect == nil {
			return
		}
		x.at.id = "id-of-the-attempt"
		for _, up := range upstreamsOf {
			isOneRequest(t, x.appendRequestHead(nil, up, 2), up)
		}
	})
}

// isOneRequest reads a head as the strictest and as the laxest reader would.
func isOneRequest(t *testing.T, head []byte, up *upstream) {
	t.Helper()
	if end := bytes.Index(head, []byte("\r\n\r\n")); end != len(head)-4 {
		t.Fatalf("the head ends early: %q", head)
	}
	if n := bytes.Count(head, []byte("\r\n")); n != bytes.Count(head, []byte("\n")) || n != bytes.Count(head, []byte("\r")) {
		t.Fatalf("a line ends otherwise than in CRLF: %q", head)
	}
	br := bufio.NewReader(io.MultiReader(bytes.NewReader(head), strings.NewReader("{}")))
	req, err := http.ReadRequest(br)
	if err != nil {
		t.Fatalf("cannot be read: %v: %q", err, head)
	}
	body := must(io.ReadAll(req.Body))
	equal(t, "body", string(body), "{}")
	rest := must(io.ReadAll(br))
	equal(t, "left over", string(rest), "")
	equal(t, "method", req.Method, "POST")
	equal(t, "version", req.Proto, "HTTP/1.1")
	equal(t, "host", req.Host, up.host)
	equal(t, "encodings", len(req.TransferEncoding), 0)
	equal(t, "ids", strings.Join(req.Header.Values("X-Request-Id"), "|"), "id-of-the-attempt")
	equal(t, "traceparents", len(req.Header.Values("Traceparent")), 1)
	equal(t, "encodings that are accepted", strings.Join(req.Header.Values("Accept-Encoding"), "|"), "identity")
	equal(t, "content types", len(req.Header.Values("Content-Type")), 1)
	if up.authLine != "" {
		equal(t, "credential", strings.Join(req.Header.Values("Authorization"), "|"), "Bearer "+upstreamKey)
	}
	path, _, _ := strings.Cut(req.RequestURI, "?")
	if !sentPath.MatchString(req.RequestURI) || strings.Contains(path+"/", "/./") || strings.Contains(path+"/", "/../") {
		t.Fatalf("target upstream: %q", req.RequestURI)
	}
}
