package proxy

import (
	"strings"
	"sync/atomic"
	"testing"

	"tracegate/sse"
	"tracegate/trace"
	"tracegate/wire"
)

// A bug in one exchange is answered like every failure, costs its connection and
// nothing else: the rig checks that all it held was given back.

// broken is a dialect that panics: with an event, with a whole answer, or when its
// name is asked for once too often.
type broken struct {
	wire.Dialect
	events, bodies bool
	names          atomic.Int64
	mended         atomic.Bool
}

func (b *broken) Name() string {
	if b.names.Add(-1) == 0 {
		panic("a name too many")
	}
	return b.Dialect.Name()
}

func (b *broken) Observe(o *wire.Observation, ev sse.Event) wire.Kind {
	if b.events && !b.mended.Load() {
		panic("an event")
	}
	return b.Dialect.Observe(o, ev)
}

func (b *broken) ObserveBody(o *wire.Observation, body []byte) {
	if b.bodies && !b.mended.Load() {
		panic("a body")
	}
	b.Dialect.ObserveBody(o, body)
}

func TestBugInAnExchange(t *testing.T) {
	for _, c := range []struct {
		name           string
		stream         bool
		events, bodies bool
		names          int64
		attempts       string
	}{
		{"before a deployment is chosen", true, false, false, 2, "0"},
		{"while the request is made", true, false, false, 3, "1"},
		{"at an event", true, true, false, 0, "1"},
		{"at a whole answer", false, false, true, 0, "1"},
	} {
		for _, d := range dialects {
			t.Run(c.name+"/"+d.name, func(t *testing.T) {
				b := &broken{Dialect: wire.ByName(d.name), events: c.events, bodies: c.bodies}
				path := strings.TrimPrefix(d.path, "/v1")
				whole := generation[path]
				generation[path] = route{kind: whole.kind, dialect: b, upstream: whole.upstream}
				t.Cleanup(func() { generation[path] = whole }) // after the rig's end
				r := newRig(t, quickly(setup{panics: true}))
				b.names.Store(c.names)
				a := r.post(d.path, d.body(c.stream, "hello"))
				b.mended.Store(true)
				rec := r.record()
				isBugAnswer(t, d, a, c.attempts)
				equal(t, "id", a.Header.Get("X-Request-Id"), rec.ID)
				equal(t, "outcome", rec.Outcome, trace.UpstreamError)
				equal(t, "status in the timeline", rec.Status, 500)
				isAtRest(t, r)
				equal(t, "status of the next", r.post(d.path, d.body(c.stream, "hello")).StatusCode, 200)
				r.record()
			})
		}
	}
}

func isBugAnswer(t *testing.T, d dialectCase, a answer, attempts string) {
	t.Helper()
	equal(t, "status", a.StatusCode, 500)
	equal(t, "content type", a.Header.Get("Content-Type"), "application/json")
	equal(t, "in its dialect", strings.HasPrefix(string(a.body), errorBodies[d.name]), true)
	contains(t, "body", string(a.body), "the gateway failed")
	equal(t, "Connection: close", a.Close, true)
	equal(t, "attempts", a.Header.Get("X-Gateway-Attempts"), attempts)
	if id := a.Header.Get("X-Request-Id"); id == "" || a.Header.Get("Request-Id") != id {
		t.Errorf("ids %q and %q", id, a.Header.Get("Request-Id"))
	}
}

// TestBugOutsideOfAnExchange: in what decides about a head, and in what is no request to a model.
func TestBugOutsideOfAnExchange(t *testing.T) {
	for _, c := range []struct {
		name  string
		state *snapshot // what is missing in it makes the panic
	}{
		{"arriving", &snapshot{}},
		{"the list of models", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, quickly(setup{panics: true}))
			whole, key := r.gateway.state.Load(), "Authorization: Bearer "+testKey
			if c.state == nil {
				c.state = &snapshot{cfg: whole.cfg, tenants: whole.tenants}
			}
			r.gateway.state.Store(c.state)
			a := r.ask("GET", "/v1/models", key)
			r.gateway.state.Store(whole)
			isBugAnswer(t, dialects[1], a, "0")
			equal(t, "status of the next", r.ask("GET", "/v1/models", key).StatusCode, 200)
		})
	}
}
