package proxy

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

const quickRules = "cooldown: {allowed_fails: 3, window: 60s, time: 5s, max_time: 60s, when_all_cooling: %s}\nretry: {max_attempts: 1}\nkeepalive: 0\n"

// opened is a rig whose one deployment has failed until its gate opened.
func opened(t *testing.T, policy string) *rig {
	r := newRig(t, setup{memory: true, models: alone, config: fmt.Sprintf(quickRules, policy)})
	r.engine.Script(fakeengine.Fault{Kind: fakeengine.Status, Status: 500, Times: 3})
	for range 3 {
		equal(t, "status", r.post("/v1/chat/completions", chatBody("hello")).StatusCode, 500)
		r.record()
	}
	state := r.gateway.Table().State()[0].Deployments[0]
	equal(t, "state", state.State, "open")
	if state.Until == nil || state.Reason == nil || time.Until(*state.Until) != 5*time.Second {
		t.Errorf("until %v, reason %v", state.Until, state.Reason)
	}
	return r
}

func TestAllCoolingFails(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		r := opened(t, "fail")
		<-time.After(1500 * time.Millisecond)
		a := r.post(d.path, d.body(true, "hello"))
		rec := r.record()
		equal(t, "status", a.StatusCode, 503)
		equal(t, "retry-after, rounded up", a.Header.Get("Retry-After"), "4")
		equal(t, "x-should-retry", a.Header.Get("X-Should-Retry"), "true")
		contains(t, "each deployment's reason", string(a.body), "d1: open")
		equal(t, "outcome", rec.Outcome, trace.Refused)
		equal(t, "calls", calls(r.engine), 3)
		<-time.After(3500 * time.Millisecond)
		equal(t, "status when its time is over", r.post(d.path, d.body(true, "FAKE-TOKENS-1")).StatusCode, 200)
		r.record()
		equal(t, "state", r.gateway.Table().State()[0].Deployments[0].State, "ready")
	})
}

func TestAllCoolingProbesTheSoonest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := opened(t, "probe_soonest")
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.Hang, After: 1, Times: 1})
		long := r.send("/v1/chat/completions", chatBody("the probe"))
		<-time.After(time.Second)
		// It has begun to answer: that closed the gate, and its stream pins nobody.
		equal(t, "state", r.gateway.Table().State()[0].Deployments[0].State, "ready")
		equal(t, "status", r.post("/v1/chat/completions", chatBody("FAKE-TOKENS-1")).StatusCode, 200)
		r.record()
		_ = long.Close()
		r.record()
	})
}

func TestAProbeThatIsTakenIsSaidSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := opened(t, "probe_soonest")
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.Hang, Times: 1})
		probe := r.send("/v1/chat/completions", chatBody("the probe"))
		<-time.After(time.Second)
		a := r.post("/v1/chat/completions", chatBody("another"))
		equal(t, "status", a.StatusCode, 503)
		equal(t, "has retry-after", a.Header.Get("Retry-After") != "", true)
		r.record()
		_ = probe.Close() // says nothing about the deployment
		equal(t, "outcome", r.record().Outcome, trace.ClientAbort)
		equal(t, "the next one is the probe", r.post("/v1/chat/completions", chatBody("FAKE-TOKENS-1")).StatusCode, 200)
		r.record()
	})
}

func TestAllCoolingWaits(t *testing.T) {
	inBubbles(t, func(t *testing.T, d dialectCase, stream bool) {
		r := opened(t, "wait")
		began := time.Now()
		a := r.post(d.path, d.body(stream, "FAKE-TOKENS-1"))
		rec := r.record()
		equal(t, "status", a.StatusCode, 200)
		queue, _ := rec.Queue()
		equal(t, "waited", queue.Round(time.Millisecond), 5*time.Second)
		if time.Since(began) < 5*time.Second {
			t.Error("it did not wait")
		}
	})
}

// TestAskedPatienceIsObeyed: nobody calls an engine before the time that it named.
func TestAskedPatienceIsObeyed(t *testing.T) {
	for _, policy := range []string{"fail", "probe_soonest"} {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, setup{memory: true, models: alone, config: fmt.Sprintf(quickRules, policy)})
				r.engine.Script(fakeengine.Fault{Kind: fakeengine.Status, Status: 429, Header: map[string]string{"Retry-After": "2"}, Times: 1})
				equal(t, "status", r.post("/v1/chat/completions", chatBody("hello")).StatusCode, 429)
				r.record()
				<-time.After(1999 * time.Millisecond)
				a := r.post("/v1/chat/completions", chatBody("too early"))
				equal(t, "status", a.StatusCode, 503)
				equal(t, "retry-after", a.Header.Get("Retry-After"), "1")
				r.record()
				equal(t, "calls", calls(r.engine), 1)
				<-time.After(time.Millisecond)
				equal(t, "status", r.post("/v1/chat/completions", chatBody("FAKE-TOKENS-1")).StatusCode, 200)
				r.record()
				equal(t, "faults", r.gateway.Table().State()[0].Deployments[0].Counts.Fault, 0)
			})
		})
	}
}

// TestAClientLeavesABackoff: no attempt is made for who is not there.
func TestAClientLeavesABackoff(t *testing.T) {
	inBubbles(t, func(t *testing.T, d dialectCase, stream bool) {
		r := newRig(t, setup{memory: true, models: alone, config: "keepalive: 0\n"})
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.Status, Status: 429, Header: map[string]string{"Retry-After": "30"}})
		c := r.send(d.path, d.body(stream, "hello"))
		<-time.After(10 * time.Second)
		left := time.Now()
		_ = c.Close()
		rec := r.record()
		equal(t, "outcome", rec.Outcome, trace.ClientAbort)
		equal(t, "at once", rec.At(trace.Finish).Sub(left), 0)
		equal(t, "attempts", len(rec.Attempts), 1)
		equal(t, "the first one's result", rec.Attempts[0].Result, trace.ResultBackpressure)
		equal(t, "calls", calls(r.engine), 1)
	})
}

// TestAKeepAliveDoesNotEndTheJourney: after it a fallback is still possible.
func TestAKeepAliveDoesNotEndTheJourney(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		r := newRig(t, setup{memory: true, engines: 2, models: pair, config: "keepalive: 5s\ntimeouts: {first_token: 12s}"})
		r.engine.Script(fakeengine.Fault{Kind: fakeengine.Hang})
		a := r.post(d.path, d.body(true, "FAKE-TOKENS-3"))
		rec := r.record()
		equal(t, "status", a.StatusCode, 200)
		equal(t, "end", a.err, nil)
		equal(t, "outcome", rec.Outcome, trace.OK)
		equal(t, "attempts", len(rec.Attempts), 2)
		equal(t, "first fault", rec.Attempts[0].Fault, "timeout_first_token")
		contains(t, "a sign of life", string(a.body), keepaliveOf(d.name))
		isAtRest(t, r)
	})
}

// TestRetriesHaveABudget: when everything fails, most requests make one attempt.
func TestRetriesHaveABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{memory: true, engines: 2, models: pair, config: "cooldown: {allowed_fails: 1000000}\nkeepalive: 0\n"})
		for _, e := range r.engines {
			e.Script(fakeengine.Fault{Kind: fakeengine.FIN, Before: true})
		}
		const requests = 100
		for range requests {
			r.post("/v1/chat/completions", chatBody("hello"))
			r.record()
		}
		attempts := calls(r.engines[0]) + calls(r.engines[1])
		if extra := attempts - requests; extra < 10 || extra > requests/5 {
			t.Errorf("%d attempts after the first of %d requests, want 10 to %d", extra, requests, requests/5)
		}
	})
}
