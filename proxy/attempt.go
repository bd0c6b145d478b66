package proxy

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"tracegate/configs"
	"tracegate/fallback"
	"tracegate/proxy/h1"
	"tracegate/routing"
	"tracegate/sse"
	"tracegate/trace"
	"tracegate/wire"
)

// attempt is one try at one deployment. It is a part of its exchange and
// belongs to the same goroutine.
type attempt struct {
	up     *upstream
	permit routing.Permit
	call   *h1.Call
	step   step
	open   bool // begun and not yet ended
	began  time.Time
	first  time.Time // its first token; zero before, and of answers that do not stream

	request []byte // head of the request; nil once the response's head is here
	body    []byte // what is sent: the client's body, or the rewritten one
	edited  []byte // the rewritten body, from a pool

	id         string                   // our request id towards the upstream, of its own for every attempt: engines key their state by it
	rid        string                   // the engine's id of it, where the body sets that: never of the client's choosing, for aborting by it must hit no other
	head       *fasthttp.ResponseHeader // from a pool; nil until there is one, and after the answer began
	status     int
	upstreamID string // what the answer's head calls the request
	encoding   string // its Content-Encoding

	answer   answerKind
	seen     wire.Observation
	whole    []byte    // of an answer that is no event stream: what was read of it
	lastRead time.Time // of one that is passed on unread

	// of an event stream
	parser   sse.Parser
	piece    cutter    // which bytes may be sent on
	pending  []byte    // what may, while nothing has been sent
	events   int       // seen before the answer began
	until    time.Time // when the wait for more is to be broken off; zero = to be worked out
	terminal bool      // the dialect's last event has been seen
	bare     bool      // it reported an error where no client looks
	tokens   int       // content events
	stopped  bool      // the stream claims an end that its answer has not reached
}

// answerKind is how an upstream's answer is passed on.
type answerKind uint8

const (
	answerNone   answerKind = iota
	answerStream            // an event stream, looked at event by event
	answerWhole             // a body that was read to its end
	answerOpaque            // a body that is passed on unread: compressed, or too large to be looked at
)

// begin starts an attempt at a place that was taken: its request, its limits.
func (x *exchange) begin(m *routing.Model, choice routing.Choice, permit routing.Permit) {
	x.noteRoute(m, choice)
	d := choice.Deployment
	a, up := &x.at, x.snap.upstreams[d]
	a.releaseHead()
	*a = attempt{up: up, permit: permit, call: up.pool.NewCall(), open: true} // from here on endAttempt can end it
	x.attempts++
	x.way.plan.Attempt()
	x.way.failed = nil
	x.way.visited = append(x.way.visited, d)
	if m != x.capped {
		if note := x.capTokens(m); note.Setting != "" {
			x.timeline.Edit(func(r *trace.Record) { r.Notes = append(r.Notes, note) })
		}
	}
	a.id = x.timeline.ID() + "-a" + strconv.Itoa(x.attempts)
	a.rid = a.up.rid(x.route.dialect, x.ownID+"-a"+strconv.Itoa(x.attempts))
	x.timeline.BeginAttempt(d.Name())
	a.piece.hideUsage = x.streams() && x.head.LacksUsage() && a.up.spec.Profile.UsageByOption
	a.body = x.bodyFor(a.up)
	a.request = x.appendRequestHead(requestHeads.get(), a.up, len(a.body))

	now := time.Now()
	a.began = now
	x.deadlines.beginAttempt(now, x.limitsFor(a.up), d.Name(), x.streams(), x.head.EstimatedTokens)
	x.timeline.Mark(trace.Send)
	x.drainable.Store(false)
	x.call.Store(a.call)
	if r := x.aborted(); r != "" { // before the call was there to be seen
		x.cutCall(r)
	}
}

func (x *exchange) noteRoute(m *routing.Model, c routing.Choice) {
	x.timeline.Edit(func(r *trace.Record) {
		r.Route.Strategy = m.Strategy()
		r.Route.Considered = c.Considered
	})
}

// noDeployment: full is a matter of time, a dialect that nobody speaks is not.
func (x *exchange) noDeployment(c routing.Choice) *fault {
	for _, k := range c.Considered {
		if k.Excluded != routing.ExcludedDialect {
			return saturated(fmt.Sprintf("no deployment of model=%s has room (%s)", x.model.Name(), c.WhyNone()))
		}
	}
	return refusal(400, "", fmt.Sprintf("no deployment of model=%s takes %s requests (%s)", x.model.Name(), x.dialectName(), c.WhyNone()))
}

// limitsFor are the deployment's limits, lowered by the client's wish.
func (x *exchange) limitsFor(up *upstream) configs.Timeouts {
	return x.lowered(up.spec.Timeouts)
}

// lowered are limits under the client's own.
func (x *exchange) lowered(t configs.Timeouts) configs.Timeouts {
	if wished := x.deadlines.wished; wished > 0 {
		if t.Total == 0 || wished < t.Total {
			t.Total = wished
		}
		if t.FirstToken == 0 || wished < t.FirstToken {
			t.FirstToken, t.FirstTokenPer1kTokens = wished, 0
		}
	}
	return t
}

// bodyFor is the client's body with the spans edited that this upstream needs
// different; the same bytes where it needs none.
func (x *exchange) bodyFor(up *upstream) []byte {
	r := wire.Rewrite{IncludeUsage: x.at.piece.hideUsage, MaxTokens: x.maxTokens}
	if up.spec.Model != x.head.Model {
		r.Model = up.spec.Model
	}
	if field := up.spec.Profile.RequestIDField(x.dialectName()); field != "" && x.route.kind == routeInference {
		r.RIDField, r.RID = field, x.at.rid
	}
	if !x.head.NeedsRewrite(r) {
		return x.body
	}
	x.at.edited = x.head.AppendRewritten(editedBodies.get(), x.body, r)
	return x.at.edited
}

// name is the deployment's, "" before the first attempt.
func (a *attempt) name() string {
	if a.up == nil {
		return ""
	}
	return a.up.spec.Name
}

// releaseRequest gives the request's own buffers back.
func (a *attempt) releaseRequest() {
	if a.request != nil {
		requestHeads.put(a.request)
		a.request = nil
	}
	if a.edited != nil {
		editedBodies.put(a.edited)
		a.edited = nil
	}
	a.body = nil
}

// headOf takes a response head from the pool.
func headOf() *fasthttp.ResponseHeader {
	h := responseHeads.Get().(*fasthttp.ResponseHeader)
	h.SetNoDefaultContentType(true) // what the upstream does not say is not said for it
	return h
}

var responseHeads = sync.Pool{New: func() any { return new(fasthttp.ResponseHeader) }}

// releaseHead gives the head back once everything in it has been copied.
func (a *attempt) releaseHead() {
	if a.head != nil {
		a.head.Reset()
		responseHeads.Put(a.head)
		a.head = nil
	}
}

// encoded: the body is compressed although identity was asked for.
func (a *attempt) encoded() bool {
	return a.encoding != "" && a.encoding != "identity"
}

// endAttempt returns the deployment's place and the connection, exactly once
// for each begin.
func (x *exchange) endAttempt(f *fault) {
	a := &x.at
	if !a.open {
		return
	}
	a.open = false
	x.call.Store(nil)
	if f == nil {
		a.call.Finish()
	} else {
		x.discard(a, f)
	}
	end := x.endOf(f)
	a.permit.End(end)
	x.noteAttempt(a)
	a.releaseRequest()
	x.timeline.EndAttempt(end.Result, string(end.Outcome.Kind), a.status)
}

// endOf is what the deployment is told of the attempt.
func (x *exchange) endOf(f *fault) routing.End {
	a := &x.at
	e := routing.End{Result: trace.ResultOK, Prompt: promptTokens(a.seen.Usage), Guess: x.head.EstimatedTokens,
		Output: outputTokens(a.seen.Usage)}
	if !a.first.IsZero() {
		e.Decode = x.timeline.LastToken().Sub(a.first)
	}
	if f != nil {
		_, verdict := fallback.Classify(fallback.Failure{Kind: f.kind})
		e.Result = routing.ResultOf(f.kind, verdict)
		e.Outcome = fallback.Outcome{Kind: f.kind, Verdict: verdict, Status: a.status, Message: x.told(f), RetryAfter: f.asked}
	}
	return e
}

// discard closes a connection whose answer is not wanted or not whole. One
// that has answered in full, if only with a refusal, is used again.
func (x *exchange) discard(a *attempt, f *fault) {
	if f.relay || a.answer == answerWhole || (a.terminal && a.seen.Complete()) {
		a.call.Finish()
		return
	}
	r, ours := abortReasons[f.kind]
	if ours {
		x.timeline.AbortSent(r)
	}
	a.call.Discard()
	if ours && a.step > stepConnect && !a.seen.Terminated() {
		x.tellEngine(a.up, a.rid)
	}
}

func (x *exchange) noteAttempt(a *attempt) {
	x.timeline.EditAttempt(func(t *trace.Attempt) {
		if a.step > stepConnect {
			t.Connect = a.call.ConnectTime
		}
		t.UpstreamID = a.upstreamID
	})
}

// whatBroke says to a client what it may know of a connection's failure; the
// timeline has the address and the cause.
var whatBroke = map[string]string{
	h1.KindConnect:        "it cannot be reached",
	h1.KindDNS:            "its name cannot be resolved",
	h1.KindTLS:            "the TLS handshake with it failed",
	h1.KindTimeoutConnect: "it did not accept a connection in time",
	h1.KindProxy:          "the proxy before it cannot be passed",
	h1.KindReset:          "it reset the connection",
	h1.KindCut:            "it closed the connection inside its answer",
	h1.KindProtocol:       "its answer is not HTTP/1.1",
}

// failure turns what went wrong on the connection into a fault.
func (x *exchange) failure(err error) *fault {
	if x.aborted() != "" {
		return x.abortFault()
	}
	var e *h1.Error
	if !errors.As(err, &e) {
		f := x.ofUpstream(fallback.Protocol, trace.UpstreamError, "the exchange with it failed")
		f.detail = err.Error()
		return f
	}
	f := x.ofUpstream(fallback.Kind(e.Kind), trace.UpstreamError, whatBroke[e.Kind])
	f.detail = x.named(e.Error())
	switch e.Kind {
	case h1.KindTimeoutConnect:
		f.status, f.outcome = 504, trace.TimeoutConnect
	case h1.KindProxy, h1.KindReset:
		f.kind = fallback.Connect
		if x.at.step >= stepHead {
			f.kind = fallback.Cut
		}
	}
	return f
}
