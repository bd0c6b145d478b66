package proxy

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"tracegate/configs"
)

// Names are compared in the canonical form that fasthttp gives them.

// never are request headers that stay on this side: they belong to the
// connection, are set anew, or carry a credential of the client (the
// caller's key must not travel upstream, https://github.com/BerriAI/litellm/issues/32202).
var never = map[string]bool{
	// of the connection
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true, "Expect": true, "Http2-Settings": true,
	// set anew
	"Host": true, "Content-Length": true, "Accept-Encoding": true, "X-Request-Id": true, "Traceparent": true,
	// who asks, as proxies before us tell it
	"Forwarded": true, "X-Real-Ip": true, "Via": true, "True-Client-Ip": true, "X-Client-Ip": true, "X-Cluster-Client-Ip": true,
	"Fastly-Client-Ip": true, "X-Envoy-External-Address": true, "X-Amzn-Trace-Id": true,
	// the gateway's own
	"X-Gateway-Key": true, "X-Gateway-Tags": true, "X-Gateway-Timeout-Ms": true,
	"Proxy-Authorization": true, "Proxy-Authenticate": true,
}

// neverPrefix begins names of more headers that tell a vendor who asks.
// X-Amzn-Bedrock- does not: it is for the upstream.
var neverPrefix = [][]byte{
	[]byte("X-Forwarded-"), []byte("X-Original-"), []byte("Cf-"), []byte("X-Amz-"), []byte("X-Amzn-Oidc-"),
}

func staysHere(name []byte) bool {
	if never[string(name)] {
		return true
	}
	for _, p := range neverPrefix {
		if bytes.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// credentials are dropped too unless the deployment passes the client's own.
var credentials = map[string]bool{
	"Authorization": true, "X-Api-Key": true, "Api-Key": true, "Cookie": true, "X-Goog-Api-Key": true,
}

// upstreamOnly are response headers that stay on the upstream's side.
var upstreamOnly = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true, "Proxy-Authenticate": true,
	"Content-Length": true, "Content-Type": true, "Date": true, "Server": true,
	"X-Request-Id": true, "Request-Id": true,
	// they would hold for our host name
	"Alt-Svc": true, "Strict-Transport-Security": true,
}

// ourPrefix begins the names of our own response headers; those of a gateway
// behind this one would contradict them.
var ourPrefix = []byte("X-Gateway-")

// accountHeader: it tells of the upstream's account, whose limits, names and
// sessions are not those of a client behind a shared key.
func accountHeader(name []byte) bool {
	switch string(name) {
	case "Anthropic-Organization-Id", "Openai-Organization", "Openai-Project", "Set-Cookie":
		return true
	}
	return bytes.HasPrefix(name, []byte("Anthropic-Ratelimit-")) || bytes.HasPrefix(name, []byte("X-Ratelimit-")) ||
		bytes.HasPrefix(name, []byte("X-Amz-"))
}

// appendRequestHead writes the head of the upstream request: what the client
// sent, less what must not travel, with the deployment's host, credential and
// the attempt's own request id.
func (x *exchange) appendRequestHead(dst []byte, up *upstream, bodyLength int) []byte {
	h := &x.ctx.Request.Header
	dst = append(dst, "POST "...)
	dst = append(dst, up.path(x.route)...)
	if q := queryWithoutKeys(queryOf(h.RequestURI())); len(q) > 0 {
		dst = append(append(dst, '?'), q...)
	}
	dst = append(dst, " HTTP/1.1\r\nHost: "...)
	dst = append(dst, up.host...)
	dst = append(dst, "\r\n"...)
	named := namedBy(h.PeekAll("Connection"))
	pass, typed := up.passes(), false
	var key []byte // the tenant's: what is passed is the client's account at the upstream, never the one here
	if pass {
		key = credential(h)
	}
	for name, value := range h.All() {
		if staysHere(name) || named[string(name)] || (credentials[string(name)] && (!pass || isKey(value, key))) {
			continue
		}
		if string(name) == "Content-Type" {
			if !bytes.Contains(value, []byte("json")) {
				continue // the body is JSON, as we know: curl and others say something else
			}
			typed = true
		}
		dst = appendHeader(dst, name, value)
	}
	if !typed {
		dst = append(dst, "Content-Type: application/json\r\n"...)
	}
	dst = append(dst, up.authLine...)
	dst = append(dst, "Accept-Encoding: identity\r\nX-Request-Id: "...)
	dst = append(dst, x.at.id...)
	dst = append(dst, "\r\nTraceparent: "...)
	dst = x.appendTraceparent(dst)
	dst = append(dst, "\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(bodyLength), 10)
	return append(dst, "\r\n\r\n"...)
}

func isKey(value, key []byte) bool {
	return len(key) > 0 && bytes.HasSuffix(bytes.TrimSpace(value), key)
}

func appendHeader(dst, name, value []byte) []byte {
	dst = append(append(dst, name...), ": "...)
	return append(append(dst, value...), "\r\n"...)
}

func queryOf(target []byte) []byte {
	if i := bytes.IndexByte(target, '?'); i >= 0 {
		return target[i+1:]
	}
	return nil
}

// namedBy are the headers that the lines of a Connection field name as
// belonging to one hop; nil in the ordinary case.
func namedBy(lines [][]byte) map[string]bool {
	if len(lines) == 0 || len(lines) == 1 && (bytes.EqualFold(lines[0], []byte("keep-alive")) || bytes.EqualFold(lines[0], []byte("close"))) {
		return nil
	}
	named := map[string]bool{}
	for _, line := range lines {
		for part := range strings.SplitSeq(string(line), ",") {
			name := []byte(strings.TrimSpace(part))
			named[string(fasthttp.AppendNormalizedHeaderKeyBytes(nil, name))] = true
		}
	}
	return named
}

// authLine is the deployment's credential as a header line, "" where none is sent.
func authLine(d *configs.Deployment) string {
	key := d.APIKey.Reveal()
	if key == "" {
		return ""
	}
	switch d.Auth {
	case authBearer:
		return "Authorization: Bearer " + key + "\r\n"
	case authXAPIKey:
		return "X-Api-Key: " + key + "\r\n"
	default:
		return ""
	}
}

// copyHead begins the client's answer as the upstream began its own: the status
// and the headers, less those of its connection.
func (x *exchange) copyHead(r *fasthttp.Response) {
	dst, src, passes := &r.Header, x.at.head, x.at.up.passes()
	r.SetStatusCode(x.at.status)
	if ct := src.ContentType(); len(ct) > 0 {
		dst.SetContentTypeBytes(ct)
	}
	named := namedBy(src.PeekAll("Connection"))
	for name, value := range src.All() {
		if upstreamOnly[string(name)] || bytes.HasPrefix(name, ourPrefix) || named[string(name)] || (!passes && accountHeader(name)) {
			continue
		}
		dst.AddBytesKV(name, value)
	}
}

// ownHeaders are on every answer, errors too.
func (x *exchange) ownHeaders(h *fasthttp.ResponseHeader) {
	setOwn(h, x.timeline.ID(), x.attempts)
	if x.at.up != nil {
		h.SetCanonical(nameModel, []byte(x.at.up.deployment.Model))
	} else if x.model != nil {
		h.SetCanonical(nameModel, []byte(x.model.Name()))
	}
	if name := x.at.name(); name != "" {
		h.SetCanonical(nameDeployment, []byte(name))
	}
}

// setOwn sets what every answer has.
func setOwn(h *fasthttp.ResponseHeader, id string, attempts int) {
	h.SetCanonical(nameAttempts, strconv.AppendInt(nil, int64(attempts), 10))
	h.SetCanonical(nameXRequestID, []byte(id))
	h.SetCanonical(nameRequestID, []byte(id))
}

// Names in the canonical form, which saves the server from making it.
var (
	nameXRequestID = []byte("X-Request-Id")
	nameRequestID  = []byte("Request-Id")
	nameAttempts   = []byte("X-Gateway-Attempts")
	nameModel      = []byte("X-Gateway-Model")
	nameDeployment = []byte("X-Gateway-Deployment")
)
