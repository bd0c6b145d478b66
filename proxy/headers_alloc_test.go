//go:build !race

package proxy

import (
	"bufio"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// TestRequestHeadDoesNotAllocate: neither for what is sent on nor for what is not.
func TestRequestHeadDoesNotAllocate(t *testing.T) {
	var ctx fasthttp.RequestCtx
	raw := "POST /v1/messages?beta=true HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\nX-Api-Key: k\r\nConnection: keep-alive\r\n" +
		strings.Join(whoAsks, ": 203.0.113.7\r\n") + ": x\r\n" + strings.Repeat("X-Stainless-Something-Long-And-Kept: value\r\n", 20) + "Content-Length: 0\r\n\r\n"
	if err := ctx.Request.Read(bufio.NewReaderSize(strings.NewReader(raw), 16<<10)); err != nil {
		t.Fatal(err)
	}
	x := &exchange{ctx: &ctx, trace: continuedTrace(nil, false)}
	x.route, _, _ = routeOf(ctx.Request.Header.RequestURI())
	head := make([]byte, 0, 16<<10)
	for _, up := range upstreamsOf {
		once := func() { head = x.appendRequestHead(head[:0], up, 2) }
		once()
		if n := testing.AllocsPerRun(100, once); n > 2 { // the path, where the base URL has one
			t.Errorf("%v allocations for a head with auth %s", n, up.spec.Auth)
		}
		contains(t, "head", string(head), "X-Stainless-Something-Long-And-Kept: value\r\n")
	}
}
