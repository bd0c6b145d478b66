package proxy

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// checkFraming refuses heads that two HTTP parsers may read differently.
// fasthttp refuses most of them itself; these are the ones that it accepts.
// They protect whoever stands before us. What stands behind us gets a request
// that is written anew, of a target that routeOf has checked and of fields whose
// names are checked here and whose values fasthttp has.
func checkFraming(h *fasthttp.RequestHeader) string {
	raw := h.RawHeaders()
	hasLength, hasEncoding := false, false
	for len(raw) > 0 {
		end := bytes.IndexByte(raw, '\n')
		if end < 0 {
			end = len(raw)
		} else if end == 0 || raw[end-1] != '\r' {
			return "a header line ends with a bare LF"
		}
		line := bytes.TrimSuffix(raw[:end], []byte("\r"))
		raw = raw[min(end+1, len(raw)):]
		if len(line) == 0 {
			continue
		}
		if line[0] == ' ' || line[0] == '\t' {
			return "a header is folded over several lines"
		}
		colon := bytes.IndexByte(line, ':')
		if colon <= 0 || !isToken(line[:colon]) {
			return "a header has a name that is not a token"
		}
		switch name := line[:colon]; {
		case len(name) == len("content-length") && bytes.EqualFold(name, []byte("content-length")):
			hasLength = true
		case len(name) == len("transfer-encoding") && bytes.EqualFold(name, []byte("transfer-encoding")):
			hasEncoding = true
			if !bytes.EqualFold(bytes.TrimSpace(line[colon+1:]), []byte("chunked")) {
				return "Transfer-Encoding is not chunked"
			}
		}
	}
	if hasLength && hasEncoding {
		return "Content-Length and Transfer-Encoding are both present"
	}
	return ""
}

// isToken: RFC 9110 section 5.6.2.
func isToken(name []byte) bool {
	for _, c := range name {
		if !tokenByte[c] {
			return false
		}
	}
	return true
}

var tokenByte = func() (t [256]bool) {
	for c := '0'; c <= '9'; c++ {
		t[c] = true
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = true, true
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] = true
	}
	return t
}()
