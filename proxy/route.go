package proxy

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"

	"tracegate/wire"
)

// route is what a path asks for.
type route struct {
	kind     routeKind
	dialect  wire.Dialect
	upstream string // path at the upstream, after the deployment's base; "" where nothing is sent on
	root     bool   // upstream path stands at the engine's root on self-hosted engines, not under /v1
}

type routeKind uint8

const (
	routeUnknown routeKind = iota
	routeInference
	routeCountTokens
	routeModels // GET /v1/models and /v1/models/{id}
	routeAlive
	routeReady
	routeRoot // HEAD / and GET /
)

// generation are the paths with a dialect of their own.
var generation = map[string]route{
	"/messages":              {kind: routeInference, dialect: wire.Messages, upstream: "/v1/messages"},
	"/messages/count_tokens": {kind: routeCountTokens, dialect: wire.Messages, upstream: "/v1/messages/count_tokens"},
	"/chat/completions":      {kind: routeInference, dialect: wire.Chat, upstream: "/v1/chat/completions"},
	"/completions":           {kind: routeInference, dialect: wire.Completions, upstream: "/v1/completions"},
	"/responses":             {kind: routeInference, dialect: wire.Responses, upstream: "/v1/responses"},
	"/embeddings":            {kind: routeInference, dialect: wire.Embeddings, upstream: "/v1/embeddings"},
}

// bare are the paths without a dialect that are also known without /v1; other
// paths need it, so that a mistyped path is a 404 and not a request upstream.
var bare = map[string]bool{
	"/rerank": true, "/score": true, "/tokenize": true, "/detokenize": true, "/classify": true, "/pooling": true,
	"/moderations": true, "/audio/speech": true, "/images/generations": true,
}

// rooted are served by vLLM and SGLang at the root only.
var rooted = map[string]bool{"/tokenize": true, "/detokenize": true, "/classify": true, "/pooling": true}

var (
	versionPrefix = []byte("/v1")
	vendorPrefix  = [][]byte{[]byte("/anthropic"), []byte("/openai")}
	modelsPath    = []byte("/models")
)

// routeOf reads the raw target of a request. ok is false where the target is
// not a path (absolute form, authority form, asterisk), has bytes that no
// target may have, or would lead to a path upstream that is not plain.
func routeOf(target []byte) (r route, modelID []byte, ok bool) {
	if len(target) == 0 || target[0] != '/' || !isTarget(target) {
		return route{}, nil, false
	}
	path, _, _ := bytes.Cut(target, []byte("?"))
	if needsNormalising(path) {
		var u fasthttp.URI
		u.SetPathBytes(path)
		path = u.Path()
	}
	r, modelID = routeOfPath(path)
	if r.upstream != "" && !isPlain(r.upstream) {
		return route{}, nil, false
	}
	return r, modelID, true
}

// isTarget: visible ASCII without '#', RFC 9112 section 3.2. The query is sent
// on as it came, so nothing in it may end the request line or mean something
// else to the next reader.
func isTarget(target []byte) bool {
	for _, c := range target {
		if c <= ' ' || c >= 0x7f || c == '#' {
			return false
		}
	}
	return true
}

func needsNormalising(path []byte) bool {
	return bytes.IndexByte(path, '%') >= 0 || bytes.Contains(path, []byte("//")) || bytes.Contains(path, []byte("/."))
}

// isPlain says that a decoded path may stand in a request line as it is, and
// that a server which decodes or normalises it again comes to the same one.
func isPlain(path string) bool {
	for segment := range strings.SplitSeq(path[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
		for i := range len(segment) {
			if !plainByte[segment[i]] {
				return false
			}
		}
	}
	return true
}

var plainByte = func() (t [256]bool) {
	for c := '0'; c <= '9'; c++ {
		t[c] = true
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = true, true
	}
	for _, c := range "-._~" {
		t[c] = true
	}
	return t
}()

func routeOfPath(path []byte) (route, []byte) {
	switch string(path) {
	case "/":
		return route{kind: routeRoot}, nil
	case "/livez", "/health/liveliness":
		return route{kind: routeAlive}, nil
	case "/readyz", "/health/readiness":
		return route{kind: routeReady}, nil
	}
	for _, p := range vendorPrefix {
		if hasPathPrefix(path, p) {
			path = path[len(p):]
			break
		}
	}
	versioned := hasPathPrefix(path, versionPrefix)
	if versioned {
		path = path[len(versionPrefix):]
	}
	if len(path) > 1 && path[len(path)-1] == '/' {
		path = path[:len(path)-1]
	}
	if r, ok := generation[string(path)]; ok {
		return r, nil
	}
	if bytes.Equal(path, modelsPath) {
		return route{kind: routeModels}, nil
	}
	if hasPathPrefix(path, modelsPath) {
		return route{kind: routeModels}, path[len(modelsPath)+1:]
	}
	if len(path) > 1 && (versioned || bare[string(path)]) {
		return route{kind: routeInference, dialect: wire.Other, upstream: "/v1" + string(path), root: rooted[string(path)]}, nil
	}
	return route{}, nil
}

// hasPathPrefix: prefix, and then the end or a slash.
func hasPathPrefix(path, prefix []byte) bool {
	return bytes.HasPrefix(path, prefix) && (len(path) == len(prefix) || path[len(prefix)] == '/')
}

// sensitive query parameters may hold a key: they are never sent on.
var sensitive = map[string]bool{"key": true, "api_key": true, "access_token": true}

// queryWithoutKeys returns the query string (without '?') less the parameters
// that may hold a key; every other byte is kept.
func queryWithoutKeys(query []byte) []byte {
	if !mayHoldKey(query) {
		return query
	}
	kept := make([]byte, 0, len(query))
	for part := range bytes.SplitSeq(query, []byte("&")) {
		name := part
		if i := bytes.IndexByte(part, '='); i >= 0 {
			name = part[:i]
		}
		if sensitive[string(fasthttp.AppendUnquotedArg(nil, name))] {
			continue
		}
		if len(kept) > 0 {
			kept = append(kept, '&')
		}
		kept = append(kept, part...)
	}
	return kept
}

func mayHoldKey(query []byte) bool {
	return bytes.Contains(query, []byte("key")) || bytes.Contains(query, []byte("access_token")) || bytes.IndexByte(query, '%') >= 0
}
