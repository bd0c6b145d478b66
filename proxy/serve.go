package proxy

import "github.com/valyala/fasthttp"

// Serve handles one request. It is the table of contents of this package: each
// step returns nil or why the request gets no answer, and after the last one
// the answer begins; relay gives it to the server, which calls its WriteTo on
// this same goroutine when Serve has returned.
func (g *Gateway) Serve(ctx *fasthttp.RequestCtx) {
	s := g.state.Load()
	door, f := g.door(s, &ctx.Request.Header)
	if door.route.dialect == nil {
		g.serveOther(ctx, s, door, f)
		return
	}
	x := g.open(ctx, s, door)
	if f == nil {
		f = x.enter()
	}
	if f == nil {
		f = x.read()
	}
	if f == nil {
		f = x.admit()
	}
	if f == nil {
		f = x.run() // until the answer begins: first content, a whole body, or the keep-alive instant
	}
	if f != nil {
		x.refuse(ctx, f)
		return
	}
	x.relay(ctx)
}
