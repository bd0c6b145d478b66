package fakeengine

import (
	"fmt"
	"time"
)

// plainRoute is a path that generates nothing.
type plainRoute struct {
	methods string // blank-separated
	handle  func(*exchange)
}

var plainRoutes map[string]plainRoute

func init() { // a literal would refer to itself through the handlers
	plainRoutes = map[string]plainRoute{
		"/v1/models": {"GET", (*exchange).serveModels},
		"/health":    {"GET", (*exchange).serveHealth},
		"/ping":      {"GET POST", (*exchange).serveHealth},
		"/version":   {"GET", func(x *exchange) { x.json(200, fmt.Appendf(nil, `{"version":%s}`, quote(x.e.o.Version))) }},
	}
}

func (x *exchange) serveHealth() {
	x.e.mu.Lock()
	dead := x.e.mode == modeDead
	x.e.mu.Unlock()
	if dead {
		x.respond(503, nil)
		return
	}
	x.respond(200, nil)
}

func (x *exchange) serveModels() {
	now := time.Now().Unix()
	b := []byte(`{"object":"list","data":[`)
	for i, m := range x.e.models() {
		parent := "null"
		if i > 0 {
			b = append(b, ',')
			parent = quote(x.e.o.Model)
		}
		b = fmt.Appendf(b, `{"id":%s,"object":"model","created":%d,"owned_by":"vllm","root":%s,"parent":%s,"max_model_len":%d,"permission":[{"id":%s,"object":"model_permission","created":%d,"allow_create_engine":false,"allow_sampling":true,"allow_logprobs":true,"allow_search_indices":false,"allow_view":true,"allow_fine_tuning":false,"organization":"*","group":null,"is_blocking":false}]}`,
			quote(m), now, quote(m), parent, x.e.o.MaxModelLen, quote(x.e.newID("modelperm-")), now)
	}
	x.json(200, append(b, ']', '}'))
}
