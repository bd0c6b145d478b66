package proxy

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// narrow is one deployment with room for one request.
const narrow = `
  - name: public
    queue: {max_waiting: 2, max_wait: 30s}
    deployments: [{name: d1, base_url: "{e1}", model: served, max_inflight: 1}]
`

// occupied is a rig whose one place is taken by a stream that ends when the returned function is called.
func occupied(t *testing.T, s setup) (r *rig, free func()) {
	s.memory, s.models = true, narrow
	r = newRig(t, s)
	r.engine.Script(fakeengine.Fault{Kind: fakeengine.Hang, Times: 1})
	first := r.send("/v1/chat/completions", chatBody("the first"))
	synctest.Wait()
	equal(t, "running", r.engine.Running(), 1)
	return r, func() {
		_ = first.Close()
		r.record()
	}
}

func TestARequestWaitsForRoom(t *testing.T) {
	inBubbles(t, func(t *testing.T, d dialectCase, stream bool) {
		r, free := occupied(t, setup{config: "keepalive: 0"})
		c := r.send(d.path, d.body(stream, "FAKE-TOKENS-2"))
		<-time.After(5 * time.Second)
		equal(t, "waiting", r.gateway.Table().State()[0].Queue.Waiting, 1)
		equal(t, "phase", r.only().Phase, trace.PhaseQueue)
		free()
		equal(t, "status", read(t, c).StatusCode, 200)
		rec := r.record()
		queue, ok := rec.Queue()
		equal(t, "the wait is known", ok, true)
		equal(t, "waited", queue, 5*time.Second)
		equal(t, "attempts", len(rec.Attempts), 1)
		equal(t, "waiting", r.gateway.Table().State()[0].Queue.Waiting, 0)
	})
}

func TestAWaitHasItsLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		r, free := occupied(t, setup{config: "keepalive: 0"})
		began := time.Now()
		a := r.post(d.path, d.body(true, "hello"))
		rec := r.record()
		equal(t, "status", a.StatusCode, 503)
		equal(t, "waited", time.Since(began), 30*time.Second)
		equal(t, "retry-after", a.Header.Get("Retry-After"), "1")
		equal(t, "outcome", rec.Outcome, trace.QueueTimeout)
		contains(t, "message", string(a.body), "models.public.queue.max_wait=30s")
		equal(t, "limit", rec.Limit, "models.public.queue.max_wait=30s")
		equal(t, "attempts", len(rec.Attempts), 0)
		free()
	})
}

func TestAFullQueueRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, free := occupied(t, setup{config: "keepalive: 0"})
		for range 2 {
			c := r.send("/v1/chat/completions", chatBody("FAKE-TOKENS-1"))
			defer io.Copy(io.Discard, c)
		}
		synctest.Wait()
		began := time.Now()
		a := r.post("/v1/chat/completions", chatBody("one too many"))
		rec := r.record()
		equal(t, "status", a.StatusCode, 503)
		equal(t, "took", time.Since(began), 0)
		equal(t, "outcome", rec.Outcome, trace.Refused)
		contains(t, "message", string(a.body), "the queue of model=public is full")
		equal(t, "limit", rec.Limit, "models.public.queue.max_waiting=2")
		free()
		r.record()
		r.record()
	})
}

// TestAWaitingClientLeaves: it costs nothing afterwards, and the next one gets the place.
func TestAWaitingClientLeaves(t *testing.T) {
	inBubbles(t, func(t *testing.T, d dialectCase, stream bool) {
		r, free := occupied(t, setup{config: "keepalive: 0"})
		c := r.send(d.path, d.body(stream, "hello"))
		<-time.After(time.Second)
		left := time.Now()
		_ = c.Close()
		rec := r.record()
		equal(t, "outcome", rec.Outcome, trace.ClientAbort)
		equal(t, "phase", rec.Phase, trace.PhaseQueue)
		equal(t, "at once", rec.At(trace.Finish).Sub(left), 0)
		equal(t, "attempts", len(rec.Attempts), 0)
		equal(t, "waiting", r.gateway.Table().State()[0].Queue.Waiting, 0)
		free()
		equal(t, "status of the next", r.post(d.path, d.body(stream, "FAKE-TOKENS-1")).StatusCode, 200)
		r.record()
		equal(t, "requests at the engine", calls(r.engine), 2)
	})
}

// TestAWaitingStreamHearsKeepAlives, and its answer follows them.
func TestAWaitingStreamHearsKeepAlives(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		r, free := occupied(t, setup{config: "keepalive: 10s"})
		c := r.send(d.path, d.body(true, "FAKE-TOKENS-2"))
		<-time.After(25 * time.Second)
		free()
		a := read(t, c)
		rec := r.record()
		equal(t, "status", a.StatusCode, 200)
		equal(t, "end", a.err, nil)
		equal(t, "outcome", rec.Outcome, trace.OK)
		contains(t, "a sign of life", string(a.body), keepaliveOf(d.name))
		queue, _ := rec.Queue()
		equal(t, "waited", queue, 25*time.Second)
	})
}

// TestTotalEndsAWait.
func TestTotalEndsAWait(t *testing.T) {
	inBubble(t, func(t *testing.T, d dialectCase) {
		r, free := occupied(t, setup{config: "keepalive: 0\ntimeouts: {total: 10m}"})
		began := time.Now()
		a := r.post(d.path, d.body(true, "hello"), "x-gateway-timeout-ms: 4000")
		rec := r.record()
		equal(t, "status", a.StatusCode, 504)
		equal(t, "outcome", rec.Outcome, trace.TimeoutTotal)
		equal(t, "took", time.Since(began), 4*time.Second)
		free()
	})
}

// keepaliveOf is the beginning of what keeps a silent stream of a dialect alive.
func keepaliveOf(dialect string) string {
	switch dialect {
	case "messages":
		return "event: ping"
	case "responses":
		return "event: keepalive"
	default:
		return ":"
	}
}
