package fakeengine

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// generating and other POST routes that are logged, by path.
var postAPIs = map[string]string{
	"/v1/chat/completions": "chat", "/v1/completions": "completions", "/v1/messages": "messages",
	"/v1/responses": "responses", "/v1/messages/count_tokens": "count_tokens", "/v1/embeddings": "embeddings",
	"/tokenize": "tokenize", "/v1/tokenize": "tokenize", "/v1/rerank": "rerank", "/v1/score": "score",
}

// serve is the handler of the server.
func (e *Engine) serve(w http.ResponseWriter, r *http.Request) {
	if !e.enter() {
		panic(http.ErrAbortHandler)
	}
	defer e.handlers.Done()
	x := &exchange{e: e, w: w, r: r, conn: connOf(r.Context()), api: postAPIs[r.URL.Path]}
	x.conn.requests++
	x.conn.pieces.Store(0)
	x.conn.active.Store(true)
	defer x.conn.active.Store(false)
	if strings.HasPrefix(r.URL.Path, "/_fake/") {
		x.control()
		return
	}
	e.began(r.URL.Path)
	defer e.ended()
	x.run()
	if x.out.reset {
		x.conn.reset()
	}
	if x.out.kill {
		panic(http.ErrAbortHandler) // net/http closes without the last chunk
	}
}

func (e *Engine) began(path string) {
	e.mu.Lock()
	e.hits[path]++
	e.answering++
	e.mu.Unlock()
	e.journal.poke()
}

func (e *Engine) ended() {
	e.mu.Lock()
	e.answering--
	e.mu.Unlock()
	e.journal.poke()
}

func (x *exchange) run() {
	body, err := io.ReadAll(x.r.Body)
	arrived := time.Now()
	if err != nil {
		return // the client left while it sent
	}
	x.raw = body
	if x.r.Method != http.MethodPost {
		x.api = ""
	}
	model := ""
	if x.api != "" && x.e.hasScript() { // else parse reads it
		model = modelOf(body)
	}
	x.faults = x.e.pick(x.api, model, x.r.URL.Path, body)
	if f := x.fault(SlowStart); f != nil {
		x.e.core.slow(Slowness{For: f.Delay, Factor: float64(f.N)})
	}
	if x.api != "" {
		x.openLog(arrived, model)
		defer x.finishLog()
	}
	if x.replace() {
		return
	}
	if !x.authorized() {
		x.json(401, []byte(`{"error":"Unauthorized"}`))
		return
	}
	x.route()
}

// authorized checks the key as vLLM does: Bearer only, and only on the API's paths.
func (x *exchange) authorized() bool {
	p := x.r.URL.Path
	if x.e.o.APIKey == "" || !strings.HasPrefix(p, "/v1") && !strings.HasPrefix(p, "/inference") {
		return true
	}
	scheme, key, _ := strings.Cut(x.r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "bearer") && key == x.e.o.APIKey
}

// route answers by path.
func (x *exchange) route() {
	if x.api != "" && !jsonType(x.r.Header.Get("Content-Type")) {
		x.refuse(&apiError{400, "Bad Request", "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed", ""})
		return
	}
	if x.api != "" && !utf8.Valid(x.raw) {
		x.json(400, []byte(`{"detail":"There was an error parsing the body"}`))
		return
	}
	if x.generates() {
		x.generate()
		return
	}
	path, method := x.r.URL.Path, x.r.Method
	want, known := plainRoutes[path]
	switch {
	case len(path) > 1 && strings.HasSuffix(path, "/"):
		x.w.Header().Set("Location", "http://"+x.r.Host+strings.TrimSuffix(path, "/"))
		x.respond(307, nil)
	case known && slices.Contains(strings.Fields(want.methods), method):
		want.handle(x)
	case known || postAPIs[path] != "":
		allow := "POST"
		if known {
			allow = strings.ReplaceAll(want.methods, " ", ", ")
		}
		x.w.Header().Set("Allow", allow)
		x.json(405, []byte(`{"detail":"Method Not Allowed"}`))
	default:
		x.notFound()
	}
}

func jsonType(t string) bool {
	return t == "" || strings.HasPrefix(strings.TrimSpace(strings.ToLower(t)), "application/json")
}

// json writes a plain JSON answer.
func (x *exchange) json(status int, body []byte) {
	x.w.Header().Set("Content-Type", "application/json")
	x.respond(status, body)
}

func (x *exchange) notFound() { x.json(404, []byte(`{"detail":"Not Found"}`)) }

func (x *exchange) refuse(a *apiError) {
	x.json(a.status, a.body(x.api, x.e.o.Flavor))
}
