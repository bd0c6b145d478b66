package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/valyala/fasthttp"

	"tracegate/fallback"
	"tracegate/limiter"
	"tracegate/proxy/hangup"
	"tracegate/trace"
	"tracegate/wire"
)

// door is what the head of a request decides before a byte of its body is
// read: where it goes and who sends it.
type door struct {
	route   route
	modelID []byte // of GET /v1/models/{id}
	key     *limiter.Key
}

// entry is what was decided about a head, and the configuration that decided
// it. It waits with the body's reservation from headReceived to the handler.
type entry struct {
	snap  *snapshot
	door  door
	fault *fault // why the body may not come in; nil = it may
}

// arrive is what the handler begins with: what was decided when the head came
// in, or now for a request without a body. size bytes of body are counted until
// they are released.
func (g *Gateway) arrive(ctx *fasthttp.RequestCtx) (e entry, size int64, f *fault) {
	h := &ctx.Request.Header
	size = int64(len(ctx.Request.Body()))
	e, ok := g.budget.claim(h, size)
	if !ok {
		e = g.decide(h)
	}
	return e, size, e.fault
}

func (g *Gateway) decide(h *fasthttp.RequestHeader) entry {
	e := entry{snap: g.state.Load()}
	e.door, e.fault = g.door(e.snap, h)
	return e
}

// door checks a head. The key comes before everything that could tell a
// stranger about the gateway, and before the body is read.
func (g *Gateway) door(s *snapshot, h *fasthttp.RequestHeader) (d door, f *fault) {
	d.route, d.modelID, f = g.where(h)
	if f != nil {
		return d, f
	}
	switch d.route.kind {
	case routeAlive, routeReady, routeRoot:
		return d, nil
	case routeModels:
		if h.IsHead() {
			return d, nil // a reachability check of a client, which needs no key
		}
	}
	key, err := s.tenants.Lookup(credential(h), time.Now())
	if err != nil {
		f := refusal(401, "invalid_api_key", err.Error())
		f.noRetry = true
		return d, f
	}
	d.key = key
	if n := h.ContentLength(); int64(n) > s.cfg.Limits.MaxBody {
		return d, tooLarge(s, n)
	}
	return d, nil
}

func tooLarge(s *snapshot, n int) *fault {
	size := fmt.Sprintf("%d bytes, more", n)
	if n < 0 {
		size = "more bytes"
	}
	return lastRefusal(413, "request_too_large", fmt.Sprintf("the body has %s than limits.max_body=%d", size, s.cfg.Limits.MaxBody))
}

// where finds the route and refuses what no route takes.
func (g *Gateway) where(h *fasthttp.RequestHeader) (route, []byte, *fault) {
	r, modelID, ok := routeOf(h.RequestURI())
	switch wrong := checkFraming(h); {
	case wrong != "":
		return r, nil, lastRefusal(400, "", wrong)
	case !ok:
		return r, nil, lastRefusal(400, "", "the request target must be a plain path in visible ASCII")
	case !h.IsHTTP11():
		return r, nil, lastRefusal(505, "", "only HTTP/1.1 is spoken here")
	case isUpgrade(h):
		return r, nil, refusal(426, "", "WebSocket is not spoken here: send a POST")
	case unknownExpectation(h):
		return r, nil, lastRefusal(417, "", "the only expectation that is met is 100-continue")
	}
	return r, modelID, checkMethod(r, h)
}

func isUpgrade(h *fasthttp.RequestHeader) bool {
	return bytes.EqualFold(h.Peek("Upgrade"), []byte("websocket"))
}

func unknownExpectation(h *fasthttp.RequestHeader) bool {
	v := h.Peek("Expect")
	return len(v) > 0 && !bytes.EqualFold(v, []byte("100-continue"))
}

func checkMethod(r route, h *fasthttp.RequestHeader) *fault {
	readable := h.IsGet() || h.IsHead()
	hasBody := h.ContentLength() > 0 || len(h.Peek("Transfer-Encoding")) > 0
	var f *fault
	switch r.kind {
	case routeUnknown:
		f = refusal(404, "", "there is nothing at this path")
	case routeInference, routeCountTokens:
		if h.IsPost() {
			return nil
		}
		f = refusal(405, "", "this path takes POST only")
		f.allow = "POST"
	default:
		if readable && !hasBody {
			return nil
		}
		if readable {
			f = refusal(400, "", "a GET request has no body")
			break
		}
		f = refusal(405, "", "this path takes GET and HEAD only")
		f.allow = "GET, HEAD"
	}
	f.hangUp = hasBody
	return f
}

// credential is the tenant's key in the order of the contract: the first header
// that is present wins.
func credential(h *fasthttp.RequestHeader) []byte {
	if v := h.Peek("X-Gateway-Key"); len(v) > 0 {
		return v
	}
	if v := h.Peek("Authorization"); len(v) > len(bearer) && bytes.EqualFold(v[:len(bearer)], bearer) {
		return bytes.TrimSpace(v[len(bearer):])
	}
	if v := h.Peek("X-Api-Key"); len(v) > 0 {
		return v
	}
	return h.Peek("Api-Key")
}

var bearer = []byte("Bearer ")

const (
	slowestUpload = 256 << 10       // bytes per second that a body must keep up with
	chunkedUpload = 2 * time.Minute // all that a body without a length has: it holds limits.max_body of the budget
	smallestRead  = 1               // a body limit that lets no body in: the server answers through refuseUnread
)

// headReceived runs between a head and its body. It lets the body in only if
// the head is acceptable and the bytes fit into limits.body_budget.
func (g *Gateway) headReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	g.budget.forget(h) // left by a connection that died unnoticed: it must not be taken for this one's
	n := int64(h.ContentLength())
	if n == 0 || n == lengthIdentity {
		return fasthttp.RequestConfig{}
	}
	e := g.decide(h)
	if most := e.snap.cfg.Limits.BodyBudget; e.fault == nil && n > most { // it would never fit
		e.fault = lastRefusal(413, "request_too_large", fmt.Sprintf("the body has %d bytes, more than limits.body_budget=%d", n, most))
	}
	limit := headTimeout + time.Duration(n/slowestUpload)*time.Second
	if n < 0 {
		n = e.snap.cfg.Limits.MaxBody // chunked: the size is known when it has been read
		limit = chunkedUpload
	}
	if e.fault == nil {
		if g.budget.reserve(h, e, n, limit+headTimeout) {
			return fasthttp.RequestConfig{MaxRequestBodySize: int(e.snap.cfg.Limits.MaxBody), ReadTimeout: limit}
		}
		e.fault = bodyBudgetSpent(e.snap)
	}
	g.budget.reserve(h, e, 0, 2*headTimeout) // the server empties the head when it does not like the body
	return fasthttp.RequestConfig{MaxRequestBodySize: smallestRead}
}

// lengthIdentity is fasthttp's content length of a request with neither
// Content-Length nor Transfer-Encoding.
const lengthIdentity = -2

// expect decides about Expect: 100-continue, before the body is asked for.
func (g *Gateway) expect(ctx *fasthttp.RequestCtx) int {
	h := &ctx.Request.Header
	e, held := g.budget.held(h)
	if !held { // it announces no body
		e = g.decide(h)
	}
	if e.fault == nil {
		return fasthttp.StatusContinue
	}
	e.fault.hangUp = true
	g.budget.forget(h)
	g.turnAway(ctx, e)
	return e.fault.status
}

// refuseUnread answers where the server could not read a request: a broken or
// oversized head, a body that may not come in, or one that comes too slowly.
func (g *Gateway) refuseUnread(ctx *fasthttp.RequestCtx, err error) {
	h := &ctx.Request.Header
	f := unreadable(err)
	e, held := g.budget.held(h)
	switch {
	case !held && f == nil: // the reservation has expired
		if e = g.decide(h); e.fault == nil {
			e.fault = bodyBudgetSpent(e.snap)
		}
	case !held:
		e = entry{snap: g.state.Load(), fault: f}
		e.door.route, _, _ = routeOf(targetOf(ctx))
	case e.fault != nil: // the body was not let in, whatever else is wrong with it
	case f == nil:
		e.fault = tooLarge(e.snap, -1)
	default:
		e.fault = f
	}
	e.fault.hangUp = true
	g.budget.forget(h)
	if c := hangup.Of(ctx.Conn()); c != nil {
		c.LingerOnClose(e.snap.cfg.Limits.MaxBody, lingerTime)
	}
	g.turnAway(ctx, e)
}

// targetOf is the target of a request whose head may have been too broken for
// the server, which forgets it then; its first bytes tell for whose dialect the
// refusal is.
func targetOf(ctx *fasthttp.RequestCtx) []byte {
	target := ctx.Request.Header.RequestURI()
	c := hangup.Of(ctx.Conn())
	if c == nil || len(target) > 1 {
		return target
	}
	_, rest, ok := bytes.Cut(c.Opening(), []byte(" "))
	if end := bytes.IndexAny(rest, " ?\r\n"); ok && end > 0 {
		return rest[:end]
	}
	return target
}

// turnAway answers a request that never became an exchange. One that asked for
// a model gets a timeline all the same, so that its id can be looked up.
func (g *Gateway) turnAway(ctx *fasthttp.RequestCtx, e entry) {
	f := e.fault
	if e.door.route.dialect != nil {
		x := g.open(ctx, e, 0)
		if f.kind == fallback.ClientGone {
			x.clientLeft()
		}
		x.refuse(ctx, f)
		return
	}
	id := trace.NewID()
	f.write(&ctx.Response, wire.Chat, id)
	setOwn(&ctx.Response.Header, id, 0)
}

// lingerTime is how long a refused body may go on coming, so that its sender
// reads the answer and not a reset.
const lingerTime = 2 * time.Second

func bodyBudgetSpent(s *snapshot) *fault {
	f := saturated(fmt.Sprintf("too many request bodies are in memory: limits.body_budget=%d", s.cfg.Limits.BodyBudget))
	f.hangUp = true
	return f
}

// unreadable says what was wrong with the bytes of a request; nil when nothing
// was and the body was just not let in.
func unreadable(err error) *fault {
	var small *fasthttp.ErrSmallBuffer
	var netError interface{ Timeout() bool } // not net.Error: TLS and in-memory connections have errors of their own
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return nil
	case errors.As(err, &small):
		return refusal(431, "", "the headers are larger than limits.max_header")
	case errors.As(err, &netError) && netError.Timeout():
		return refusal(408, "", "the request did not come in time")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &netError):
		return clientGone()
	default:
		return &fault{status: 400, message: "the request is not well-formed HTTP/1.1", outcome: trace.Refused}
	}
}
