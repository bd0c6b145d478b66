package proxy

import "github.com/valyala/fasthttp"

// Serve handles one request. It is the table of contents of this package: each
// step returns nil or why the request gets no answer, and after the last one
// the answer begins; relay gives it to the server, which calls its WriteTo on
// this same goroutine when Serve has returned.
func (g *Gateway) Serve(ctx *fasthttp.RequestCtx) {
	defer g.mendOther(ctx)
	e, size, f := g.arrive(ctx)
	if e.door.route.dialect == nil {
		g.budget.release(size)
		g.serveOther(ctx, e)
		return
	}
	x := g.open(ctx, e, size)
	defer x.mend(ctx)
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
