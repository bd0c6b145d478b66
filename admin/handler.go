// Package admin answers: what does the operator want to see and do?
//
// It owns the admin API: who may call it, and how the state that other
// packages keep is shown as JSON. Field names are public.
//
// The handler may be called from any goroutine.
//
// It never stands in the way of a request to a model, and never shows a
// secret, a prompt or an answer.
package admin

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tracegate/configs"
	"tracegate/fallback"
	"tracegate/limiter"
	"tracegate/routing"
	"tracegate/trace"
)

// Options are what the admin API shows and acts on. The functions return what
// is in force at the moment of the call.
type Options struct {
	Version  string
	Started  time.Time
	Listen   string // the configured address of the listener, host:port; without keys its host is a name to call it by
	Keys     []configs.AdminKey
	Book     *trace.Book
	Table    func() *routing.Table
	Tenants  func() *limiter.Tenants
	Config   func() *configs.Config
	Edges    *fallback.Edges
	Ready    func() bool
	Draining func() bool
	Gather   prometheus.Gatherer
}

type api struct {
	Options
	guard guard
	log   audit
}

// NewHandler makes the handler of the admin listener.
func NewHandler(o Options) http.Handler {
	a := &api{Options: o, guard: newGuard(o.Keys, o.Listen)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", alive)
	mux.HandleFunc("GET /readyz", a.readyz)

	read := func(pattern string, h http.HandlerFunc) { mux.Handle(pattern, a.guard.admit(roleViewer, h)) }
	act := func(pattern string, h http.HandlerFunc) { mux.Handle(pattern, a.guard.admit(roleOperator, h)) }
	read("GET /{$}", index)
	read("GET /api/v1/requests", a.listRequests)
	read("GET /api/v1/requests/{id}", a.getRequest)
	act("POST /api/v1/requests/{id}/abort", a.abortRequest)
	read("GET /api/v1/state", a.state)
	read("GET /api/v1/route", a.route)
	read("GET /api/v1/audit", a.showAudit)
	act("POST /api/v1/deployments/{name}/drain", a.steer("drain", func(d *routing.Deployment) { d.Live.Drain() }))
	act("POST /api/v1/deployments/{name}/enable", a.steer("enable", func(d *routing.Deployment) { d.Live.Enable() }))
	act("POST /api/v1/deployments/{name}/reset", a.steer("reset", func(d *routing.Deployment) { d.Live.Gate.Reset() }))
	act("PATCH /api/v1/deployments/{name}", a.patchDeployment)
	read("GET /metrics", promhttp.HandlerFor(o.Gather, promhttp.HandlerOpts{}).ServeHTTP)
	act("GET /debug/pprof/", pprof.Index) // profiles cost time and show what the process holds
	act("GET /debug/pprof/profile", pprof.Profile)
	act("GET /debug/pprof/symbol", pprof.Symbol)
	act("GET /debug/pprof/trace", pprof.Trace)
	read("GET /debug/pprof/cmdline", nothing) // the index links to it, but a command line holds secrets given by --set
	read("/", a.unknown(mux))
	return sameSite(mux)
}

// sameSite keeps pages of other sites, shown by an operator's browser, from
// acting here: without keys nothing else would stop them.
func sameSite(h http.Handler) http.Handler {
	p := http.NewCrossOriginProtection()
	p.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, "a page of another site may not act here")
	}))
	return p.Handler(h)
}

// unknown answers what no pattern takes: 405 where the path exists under
// another method, else 404, both as JSON.
func (a *api) unknown(mux *http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allow []string
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch} {
			other := &http.Request{Method: method, URL: r.URL, Host: r.Host}
			if _, pattern := mux.Handler(other); pattern != "/" && pattern != "" {
				allow = append(allow, method)
			}
		}
		if len(allow) == 0 {
			nothing(w, r)
			return
		}
		methods := strings.Join(allow, ", ")
		w.Header().Set("Allow", methods)
		refuse(w, http.StatusMethodNotAllowed, "this path takes "+methods+" only")
	}
}

func nothing(w http.ResponseWriter, r *http.Request) {
	refuse(w, http.StatusNotFound, "there is nothing at path="+r.URL.Path)
}

func alive(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }

func (a *api) readyz(w http.ResponseWriter, _ *http.Request) {
	if !a.Ready() {
		refuse(w, http.StatusServiceUnavailable, "the gateway is not ready")
		return
	}
	alive(w, nil)
}

const indexText = `Tracegate admin API

GET  /api/v1/state                 models, deployments, fallbacks, tenants
GET  /api/v1/route                 what would happen to a request now, and why (model, tenant, prompt_tokens, dialect)
GET  /api/v1/audit                 the newest actions of operators
POST /api/v1/deployments/{name}/drain     no new requests go there
POST /api/v1/deployments/{name}/enable    they do again
POST /api/v1/deployments/{name}/reset     its cooldown is forgotten
PATCH /api/v1/deployments/{name}   {"weight": n}, until the process ends
GET  /api/v1/requests              timelines, newest first (model, tenant, deployment, outcome, tag, session,
                                   since, until, min_ttft_ms, sort, cursor, limit, format=json|csv|jsonl;
                                   the next page's cursor is "next", for csv and jsonl the header x-next-cursor)
GET  /api/v1/requests/{id}         one timeline
POST /api/v1/requests/{id}/abort   ends a running request
GET  /metrics                      Prometheus
GET  /livez, /readyz               probes, no key
GET  /debug/pprof/                 profiles, for operators

enqueue      the last byte of the request was read
first token  the first event with generated content: text, reasoning, tool arguments, refusal, audio
last token   the last such event
finish       the dialect's terminal event, or the failure
TTFT         first token - enqueue
TBT          gap between content events
TPOT         (last token - first token) / (output tokens - 1)
`

func index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(indexText))
}

type errorBody struct {
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

func refuse(w http.ResponseWriter, status int, message string) {
	var b errorBody
	b.Error.Message = message
	reply(w, status, b)
}

// reply writes v as JSON. The status has been sent when the body fails: there
// is nobody left to tell.
func reply(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"message":"cannot write the answer"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
