package proxy

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"tracegate/limiter"
	"tracegate/proxy/h1"
	"tracegate/proxy/hangup"
	"tracegate/routing"
	"tracegate/trace"
	"tracegate/wire"
)

// exchange is one client request and everything that is done for it. It
// belongs to the goroutine that serves the connection; abort alone may be
// called from elsewhere (abort.go), through state and call.
type exchange struct {
	gw   *Gateway
	snap *snapshot
	ctx  *fasthttp.RequestCtx // valid until the answer has been written
	conn *hangup.Conn         // nil only where the listener is not ours

	route    route
	key      *limiter.Key
	head     wire.Head
	model    *routing.Model
	timeline *trace.Timeline

	body      []byte         // as the client sent it; nil once no attempt can need it
	bodyBytes int64          // taken from the budget
	maxTokens int64          // the model's, or a cap, that has to be written into the body; 0 = none
	capped    *routing.Model // whose max_tokens that is

	deadlines deadlines
	trace     traceContext
	ownID     string // ours, also where the client chose another one

	attempts int
	at       attempt // the latest one; zero before the first
	way      journey
	begun    bool // bytes of an answer have been sent
	sent     int  // the status that the answer began with; 0 = it did not begin
	over     bool // finish has run

	state     atomic.Int32                  // active, ended, aborting
	call      atomic.Pointer[h1.Call]       // of the attempt under way, for abort
	wake      atomic.Pointer[chan struct{}] // what ends a wait between attempts, for abort
	drainable atomic.Bool                   // that attempt may be read on after the client left
}

// open begins the exchange: from here on it has an id and a timeline, owns the
// size bytes of body that are counted, and is aborted by a client that leaves.
func (g *Gateway) open(ctx *fasthttp.RequestCtx, e entry, size int64) *exchange {
	x := &exchange{
		gw: g, snap: e.snap, ctx: ctx, conn: hangup.Of(ctx.Conn()),
		route: e.door.route, key: e.door.key, bodyBytes: size,
		timeline: g.book.Open(time.Now()),
	}
	x.ownID = x.timeline.ID()
	g.streams.Add(1)
	if x.key != nil {
		x.key.Tenant.Begin()
	}
	x.identify()
	x.timeline.OnAbort(x.abort)
	if x.conn != nil {
		x.conn.ResetBlocked()
		if x.conn.Watch(x.clientLeft) {
			x.clientLeft()
		}
	}
	return x
}

// enter takes the request in, if there is room for it.
func (x *exchange) enter() *fault {
	switch {
	case x.gw.mode.Load() == refusing:
		f := saturated("the gateway is shutting down")
		f.hangUp = true
		return f
	case x.gw.streams.Load() > int64(x.snap.cfg.Limits.MaxStreams):
		return saturated(fmt.Sprintf("too many requests at once: limits.max_streams=%d", x.snap.cfg.Limits.MaxStreams))
	}
	return nil
}

// identify notes who asks, also of a request that is going to be refused. The
// client's own request id becomes ours where its tenant may choose ids.
func (x *exchange) identify() {
	h := &x.ctx.Request.Header
	clientID := string(h.Peek("X-Request-Id"))
	trusted := x.key != nil && x.key.Tenant.TrustRequestID
	if trusted && isRequestID(clientID) {
		x.timeline.SetID(clientID)
	}
	x.trace = continuedTrace(h.Peek("Traceparent"), trusted)
	x.timeline.Edit(func(r *trace.Record) {
		r.ClientID = bounded(clientID)
		if x.key != nil {
			r.Tenant, r.KeyID = x.key.Tenant.Name, x.key.ID
		}
		r.Dialect = x.dialectName()
		r.Client = clientOf(h)
		r.Tags = tagsOf(h.Peek("X-Gateway-Tags"))
	})
}

// dialectName is the dialect that the request is counted under: counting
// tokens is no conversation.
func (x *exchange) dialectName() string {
	if x.route.kind == routeCountTokens {
		return wire.Other.Name()
	}
	return x.route.dialect.Name()
}

// read takes the body and what its head says. The last byte of the request is
// here: this is the enqueue instant.
func (x *exchange) read() *fault {
	x.timeline.Mark(trace.Enqueue)
	x.body = x.ctx.Request.Body()
	if err := wire.ReadHead(x.route.dialect, x.body, &x.head); err != nil {
		return refusal(400, "", err.Error())
	}
	if !x.head.HasModel {
		return refusal(400, "", "the body names no model")
	}
	x.timeline.Edit(func(r *trace.Record) {
		r.AskedModel = bounded(x.head.Model)
		r.Stream = x.streams()
		if r.Client.Session == "" {
			r.Client.Session = bounded(x.head.Session)
		}
	})
	return x.readTimeout()
}

// streams says whether the client asked for an event stream.
func (x *exchange) streams() bool { return x.head.Stream && x.route.kind == routeInference }

// readTimeout takes the client's own limit and starts the clock.
func (x *exchange) readTimeout() *fault {
	if v := x.ctx.Request.Header.Peek(wishHeader); len(v) > 0 {
		ms, err := strconv.ParseInt(string(v), 10, 32)
		if err != nil || ms <= 0 {
			return refusal(400, "", fmt.Sprintf("the header %s=%s must be a whole number of milliseconds above 0", wishHeader, quote(v)))
		}
		x.deadlines.wished = time.Duration(ms) * time.Millisecond
	}
	x.deadlines.global = x.snap.cfg.Timeouts
	x.deadlines.begin(time.Now())
	x.deadlines.waitFor(x.lowered(x.snap.cfg.Timeouts))
	if x.streams() {
		x.deadlines.keepalive = x.snap.cfg.Keepalive
	}
	return nil
}

// admit decides whether the tenant may have this, and caps what it asked for.
func (x *exchange) admit() *fault {
	m, ok := x.snap.table.Model(x.head.Model)
	if !ok {
		return refusal(404, "model_not_found", "there is no model model="+quote([]byte(x.head.Model)))
	}
	x.model = m
	if !x.key.Tenant.MayUse(m.Name()) {
		f := refusal(403, "model_not_allowed", "this key may not use model="+quote([]byte(x.head.Model)))
		f.noRetry = true
		return f
	}
	if f := x.promptTooLong(); f != nil {
		return f
	}
	split := x.splitByLength()
	note := x.capTokens(x.model)
	x.timeline.Edit(func(r *trace.Record) {
		r.Model = x.model.Name()
		r.Limiter.Decision = "allow"
		for _, n := range [...]trace.Note{split, note} {
			if n.Setting != "" {
				r.Notes = append(r.Notes, n)
			}
		}
	})
	x.timeline.Mark(trace.Admit)
	x.planAttempts()
	return nil
}

// splitByLength sends a long prompt to the model that is there for them.
func (x *exchange) splitByLength() (note trace.Note) {
	asked := x.model
	x.model = x.snap.table.Split(asked, x.head.EstimatedTokens, x.key.Tenant.MayUse)
	if x.model != asked {
		note = trace.Note{Setting: "long_context", Action: trace.NoteChanged,
			Reason: fmt.Sprintf("the prompt is over models.%s.long_context.over_tokens=%d: sent to model=%s",
				asked.Name(), asked.Spec.LongContext.OverTokens, x.model.Name())}
	}
	return note
}

// promptTooLong refuses what is estimated over the tenant's cap, in the words
// by which the dialect's clients know it.
func (x *exchange) promptTooLong() *fault {
	most, n := x.key.Tenant.MaxPromptTokens, x.head.EstimatedTokens
	if most == 0 || n <= most {
		return nil
	}
	return promptTooLong(n, most, fmt.Sprintf("tenants.%s.max_prompt_tokens", x.key.Tenant.Name))
}

func promptTooLong(n, most int, setting string) *fault {
	f := refusal(400, "context_length_exceeded", fmt.Sprintf("prompt is too long: %d tokens > %d maximum", n, most))
	f.limit = fmt.Sprintf("%s=%d", setting, most)
	return f
}

// defaultMaxTokens is set for Messages, whose upstreams need a value.
const defaultMaxTokens = 8192

// capTokens applies the model's and the tenant's max_tokens: a cap on what was
// asked for, and the value where nothing was.
func (x *exchange) capTokens(m *routing.Model) trace.Note {
	x.capped, x.maxTokens = m, 0
	if x.route.kind != routeInference || !x.head.TakesMaxTokens() {
		return trace.Note{}
	}
	limit := m.Spec.MaxTokens
	name := "models." + m.Name() + ".max_tokens"
	if t := x.key.Tenant; t.MaxTokens > 0 && (limit == 0 || t.MaxTokens < limit) {
		limit, name = t.MaxTokens, "tenants."+t.Name+".max_tokens"
	}
	asked := x.head.MaxTokens
	switch {
	case asked < 0 && limit == 0 && x.route.dialect == wire.Messages:
		limit, name = defaultMaxTokens, "the default"
	case limit == 0, asked >= 0 && !x.head.OverLimit(limit):
		return trace.Note{}
	}
	x.maxTokens = limit
	reason := fmt.Sprintf("none was sent: set to %s=%d", name, limit)
	if asked >= 0 {
		reason = fmt.Sprintf("what was asked for is over %s=%d", name, limit)
	}
	return trace.Note{Setting: "max_tokens", Action: trace.NoteChanged, Reason: reason}
}

// releaseBody gives the request's bytes back once no attempt can need them: a
// long prompt must not stay in memory while its answer streams.
func (x *exchange) releaseBody() {
	if x.bodyBytes > 0 {
		x.gw.budget.release(x.bodyBytes)
		x.bodyBytes = 0
	}
	x.at.releaseRequest()
	if x.body != nil {
		x.body = nil
		x.ctx.Request.ResetBody()
	}
}

// finish ends the exchange, exactly once, whatever the exit: the connection's
// watch, the body, the deployment's place and the timeline.
func (x *exchange) finish(outcome trace.Outcome, f *fault) {
	if x.over {
		panic("BUG: an exchange was finished twice")
	}
	x.over = true
	x.state.Store(ended)
	if x.conn != nil {
		x.conn.Unwatch()
	}
	x.endWait()
	x.endAttempt(f)
	x.countFallback(false)
	x.releaseBody()
	x.at.releaseHead()
	x.record(f)
	var info *trace.ErrorInfo
	if f != nil {
		info = &trace.ErrorInfo{Kind: f.errorKind(), Message: x.told(f)}
	}
	x.timeline.Finish(outcome, info)
	if x.key != nil {
		x.key.Tenant.End()
	}
	x.gw.streams.Add(-1)
}
