package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// naive is the baseline: the reverse proxy that one writes first with fasthttp. The answer's body is streamed, nothing is parsed,
// nothing is counted, and a client that leaves is noticed at the next write to it.
func naive(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return usageError("want: bench naive LISTEN UPSTREAM")
	}
	ln, err := net.Listen("tcp", args[0])
	if err != nil {
		return fmt.Errorf("cannot listen addr=%s: %w", args[0], err)
	}
	client := &fasthttp.HostClient{
		Addr: args[1], StreamResponseBody: true, MaxConns: 100_000,
		MaxIdleConnDuration: time.Hour, NoDefaultUserAgentHeader: true,
	}
	server := &fasthttp.Server{
		MaxRequestBodySize: 64 << 20, NoDefaultServerHeader: true, Concurrency: 100_000,
		Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.Request.SetHost(args[1])
			if err := client.Do(&ctx.Request, &ctx.Response); err != nil {
				ctx.Error(err.Error(), fasthttp.StatusBadGateway)
			}
		},
	}
	fmt.Println("ready data=" + ln.Addr().String())
	go func() {
		<-ctx.Done()
		ln.Close()
	}()
	if err := server.Serve(ln); err != nil && ctx.Err() == nil {
		return fmt.Errorf("cannot serve addr=%s: %w", args[0], err)
	}
	return nil
}
