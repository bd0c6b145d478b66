package proxy

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// pair is one model with two deployments; the first is always tried first.
const pair = `
  - name: public
    routing: {strategy: lowest_cost}
    deployments:
      - {name: d1, base_url: "{e1}", model: served, price: {input: 1, output: 1}}
      - {name: d2, base_url: "{e2}", model: served, price: {input: 2, output: 2}}
`

// calls are how many requests an engine has had.
func calls(e *fakeengine.Engine) int { return len(e.Requests()) }

// beforeContent are the failures after which a request goes elsewhere unseen.
var beforeContent = []struct {
	name  string
	fault fakeengine.Fault
	only  string // dialects; "" = all
	kind  string
}{
	{"closed before the answer", fakeengine.Fault{Kind: fakeengine.FIN, Before: true}, "", "cut"},
	{"reset before the answer", fakeengine.Fault{Kind: fakeengine.RST, Before: true}, "", "cut"},
	{"closed before content", fakeengine.Fault{Kind: fakeengine.FIN}, "", "cut"},
	{"an error event before content", fakeengine.Fault{Kind: fakeengine.ErrorEvent}, "", "status_5xx error_event cut"},
	{"an empty 200", fakeengine.Fault{Kind: fakeengine.EarlyEnd}, "", "empty"},
	{"status 500", fakeengine.Fault{Kind: fakeengine.Status, Status: 500}, "", "status_5xx"},
	{"status 429", fakeengine.Fault{Kind: fakeengine.Status, Status: 429}, "", "backpressure"},
	{"status 529", fakeengine.Fault{Kind: fakeengine.Status, Status: 529}, "", "backpressure"},
	{"a full engine", fakeengine.Fault{Kind: fakeengine.Admission}, "", "backpressure"},
	{"an engine that shuts down", fakeengine.Fault{Kind: fakeengine.Draining}, "", "draining"},
	{"status 401", fakeengine.Fault{Kind: fakeengine.Status, Status: 401}, "", "credential"},
	{"status 404", fakeengine.Fault{Kind: fakeengine.Status, Status: 404}, "", "not_found"},
	{"not HTTP", fakeengine.Fault{Kind: fakeengine.Raw, Text: "SSH-2.0-OpenSSH_9.2\r\n"}, "", "protocol"},
}

func TestAFailureBeforeContentGoesElsewhereUnseen(t *testing.T) {
	for _, c := range beforeContent {
		for _, d := range dialects {
			for _, stream := range []bool{true, false} {
				if c.fault.Kind == fakeengine.ErrorEvent && !stream {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/stream=%t", c.name, d.name, stream), func(t *testing.T) {
					r := newRig(t, quickly(setup{engines: 2, models: pair}))
					r.engines[0].Script(c.fault)
					body := d.body(stream, "FAKE-TOKENS-5 hello")
					a := r.post(d.path, body)
					rec := r.record()
					equal(t, "status", a.StatusCode, 200)
					equal(t, "end of the body", a.err, nil)
					equal(t, "deployment", a.Header.Get("X-Gateway-Deployment"), "d2")
					equal(t, "attempts", a.Header.Get("X-Gateway-Attempts"), "2")
					equal(t, "outcome", rec.Outcome, trace.OK)
					equal(t, "attempts", len(rec.Attempts), 2)
					contains(t, "first fault", c.kind, rec.Attempts[0].Fault)
					equal(t, "second result", rec.Attempts[1].Result, trace.ResultOK)
					equal(t, "calls of the first", calls(r.engines[0]), 1)
					equal(t, "calls of the second", calls(r.engines[1]), 1)
					ctx, cancel := context.WithTimeout(context.Background(), patience)
					defer cancel()
					second, err := r.engines[1].WaitFor(ctx, func(l fakeengine.RequestLog) bool { return l.Outcome == fakeengine.OutcomeFinished })
					equal(t, "its answer is whole", err, nil)
					equal(t, "its request id", second.RequestID, rec.ID+"-a2")
					if stream && strings.Contains(string(a.body), "error") {
						t.Errorf("the first failure is in the answer: %q", a.body)
					}
				})
			}
		}
	}
}

// TestAFailureAfterContentIsNeverSpliced: what has been sent cannot be taken back.
func TestAFailureAfterContentIsNeverSpliced(t *testing.T) {
	for _, kind := range []fakeengine.FaultKind{fakeengine.FIN, fakeengine.RST, fakeengine.ErrorEvent, fakeengine.EarlyEnd} {
		for _, d := range dialects {
			t.Run(string(kind)+"/"+d.name, func(t *testing.T) {
				r := newRig(t, quickly(setup{engines: 2, models: pair}))
				r.engine.Script(fakeengine.Fault{Kind: kind, After: 3})
				a := r.post(d.path, d.body(true, "FAKE-TOKENS-9"))
				rec := r.record()
				equal(t, "status", a.StatusCode, 200)
				equal(t, "outcome", rec.Outcome, trace.StreamInterrupted)
				equal(t, "attempts", len(rec.Attempts), 1)
				equal(t, "calls of the second", calls(r.engines[1]), 0)
				contains(t, "an error event", string(a.body), `"error"`)
			})
		}
	}
}

// TestTheClientsMistakeIsNotRepeated: a 4xx of its own making goes back as it came.
func TestTheClientsMistakeIsNotRepeated(t *testing.T) {
	for _, status := range []int{400, 413, 422} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			r := newRig(t, quickly(setup{engines: 2, models: pair}))
			r.engine.Script(fakeengine.Fault{Kind: fakeengine.Status, Status: status, Body: `{"error":{"message":"no"}}`})
			a := r.post("/v1/chat/completions", chatBody("hello"))
			equal(t, "status", a.StatusCode, status)
			equal(t, "body", string(a.body), `{"error":{"message":"no"}}`)
			equal(t, "attempts", len(r.record().Attempts), 1)
			equal(t, "calls of the second", calls(r.engines[1]), 0)
		})
	}
}

const (
	alone    = "\n  - name: public\n    deployments: [{name: d1, base_url: \"{e1}\", model: served}]\n"
	patient  = "retry: {backoff: 100ms}\nkeepalive: 0\n"
	tolerant = "cooldown: {allowed_fails: 100}\n"
)

// TestAloneA500IsTriedAgainAfterABackoff, as often as max_attempts says.
func TestAloneA500IsTriedAgainAfterABackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{memory: true, models: alone, config: patient + tolerant})
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.Status, Status: 500, Body: `{"error":{"message":"broken"}}`})
		a := r.post("/v1/chat/completions", chatBody("hello"))
		rec := r.record()
		equal(t, "status", a.StatusCode, 500)
		equal(t, "body", string(a.body), `{"error":{"message":"broken"}}`)
		equal(t, "x-should-retry", a.Header.Get("X-Should-Retry"), "false")
		equal(t, "outcome", rec.Outcome, trace.UpstreamError)
		equal(t, "attempts", len(rec.Attempts), 3)
		for i, least := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond} {
			wait := rec.Attempts[i+1].Start - rec.Attempts[i].End
			if wait < least || wait > 2*least {
				t.Errorf("backoff %d took %v, want %v to %v", i+1, wait, least, 2*least)
			}
		}
	})
}

// TestAloneA429WaitsAsLongAsItAsked, to the second, and is no fault.
func TestAloneA429WaitsAsLongAsItAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{memory: true, models: alone, config: patient})
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.Status, Status: 429, Header: map[string]string{"Retry-After": "7"}, Times: 1})
		a := r.post("/v1/chat/completions", chatBody("hello"))
		rec := r.record()
		equal(t, "status", a.StatusCode, 200)
		equal(t, "attempts", len(rec.Attempts), 2)
		equal(t, "waited", (rec.Attempts[1].Start - rec.Attempts[0].End).Round(time.Millisecond), 7*time.Second)
		state := r.gateway.Table().State()[0].Deployments[0]
		equal(t, "faults", state.Counts.Fault, 0)
		equal(t, "backpressure", state.Counts.Backpressure, 1)
	})
}

// TestA429BeyondTheLimitIsRelayedAtOnce: nobody waits for what cannot help.
func TestA429BeyondTheLimitIsRelayedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{memory: true, models: alone, config: patient + "timeouts: {total: 60s}\n"})
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.Status, Status: 429, Header: map[string]string{"Retry-After": "61"}})
		began := time.Now()
		a := r.post("/v1/chat/completions", chatBody("hello"))
		equal(t, "status", a.StatusCode, 429)
		equal(t, "retry-after", a.Header.Get("Retry-After"), "61")
		equal(t, "attempts", len(r.record().Attempts), 1)
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// TestAPromptThatIsTooLongGoesToTheLongerModel.
func TestAPromptThatIsTooLongGoesToTheLongerModel(t *testing.T) {
	models := `
  - name: public
    fallbacks: [other]
    context_fallbacks: [long]
    deployments: [{name: d1, base_url: "{e1}", model: served}]
  - {name: other, deployments: [{name: d2, base_url: "{e2}", model: served}]}
  - {name: long, deployments: [{name: d3, base_url: "{e3}", model: served}]}
`
	r := newRig(t, quickly(setup{engines: 3, models: models}))
	r.engine.Script(fakeengine.Fault{Kind: fakeengine.Status, Status: 400, Body: `{"error":{"message":"This model's maximum context length is 10 tokens"}}`})
	for range 50 {
		a := r.post("/v1/chat/completions", chatBody("FAKE-TOKENS-2"))
		equal(t, "status", a.StatusCode, 200)
		equal(t, "deployment", a.Header.Get("X-Gateway-Deployment"), "d3")
		equal(t, "model", a.Header.Get("X-Gateway-Model"), "long")
		equal(t, "attempts", len(r.record().Attempts), 2)
	}
	equal(t, "state", r.gateway.Table().State()[0].Deployments[0].State, "ready")
	equal(t, "calls of the other model", calls(r.engines[1]), 0)
	edges := r.gateway.Edges().All()
	equal(t, "edges", len(edges), 1)
	equal(t, "edge", fmt.Sprint(edges[0].From, " ", edges[0].To, " ", edges[0].Reason, " ", edges[0].Count), "public long context_length 50")
}

// TestModelsFallBackInOrder, in a graph with a cycle, within one budget of attempts.
func TestModelsFallBackInOrder(t *testing.T) {
	models := `
  - {name: public, fallbacks: [b, c], deployments: [{name: d1, base_url: "{e1}", model: served}]}
  - {name: b, fallbacks: [public, c], deployments: [{name: d2, base_url: "{e2}", model: served}]}
  - {name: c, fallbacks: [public], deployments: [{name: d3, base_url: "{e3}", model: served}]}
`
	for _, c := range []struct {
		most int
		want string
	}{{1, "d1"}, {2, "d1 d2"}, {3, "d1 d2 d3"}, {9, "d1 d2 d3"}} {
		t.Run(fmt.Sprint(c.most), func(t *testing.T) {
			r := newRig(t, quickly(setup{engines: 3, models: models, config: fmt.Sprintf("retry: {max_attempts: %d}", c.most)}))
			for _, e := range r.engines {
				e.Script(fakeengine.Fault{Kind: fakeengine.FIN, Before: true})
			}
			a := r.post("/v1/chat/completions", chatBody("hello"))
			rec := r.record()
			var tried []string
			for _, at := range rec.Attempts {
				tried = append(tried, at.Deployment)
			}
			equal(t, "tried", strings.Join(tried, " "), c.want)
			equal(t, "status", a.StatusCode, 502)
			equal(t, "model", rec.Model, "public")
		})
	}
}

// TestAFallbackStaysWithinTheKeysModels.
func TestAFallbackStaysWithinTheKeysModels(t *testing.T) {
	models := `
  - {name: public, fallbacks: [secret, open], deployments: [{name: d1, base_url: "{e1}", model: served}]}
  - {name: secret, deployments: [{name: d2, base_url: "{e2}", model: served}]}
  - {name: open, deployments: [{name: d3, base_url: "{e3}", model: served}]}
`
	r := newRig(t, quickly(setup{engines: 3, models: models, tenant: "    models: [public, open]"}))
	r.engine.Script(fakeengine.Fault{Kind: fakeengine.FIN, Before: true})
	a := r.post("/v1/chat/completions", chatBody("FAKE-TOKENS-2"))
	equal(t, "status", a.StatusCode, 200)
	equal(t, "deployment", a.Header.Get("X-Gateway-Deployment"), "d3")
	equal(t, "calls of the model that it may not use", calls(r.engines[1]), 0)
	r.record()
}
