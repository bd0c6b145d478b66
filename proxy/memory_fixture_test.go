package proxy

import (
	"context"
	"fmt"
	"net"

	"github.com/valyala/fasthttp/fasthttputil"
)

// listenInMemory gives the engines and the gateway listeners that need no socket, for virtual time.
func (r *rig) listenInMemory() (dialer, net.Listener, []string) {
	client := fasthttputil.NewInmemoryListener()
	r.dialer = client.Dial
	var urls []string
	listeners := map[string]*fasthttputil.InmemoryListener{}
	for i, e := range r.engines {
		addr := fmt.Sprintf("engine%d.test:80", i+1)
		ln := fasthttputil.NewInmemoryListener()
		go func() { _ = e.Serve(socketTimeouts{ln}) }() // until the engine is closed
		listeners[addr] = ln
		urls = append(urls, "http://"+addr)
	}
	dial := func(_ context.Context, addr string) (net.Conn, error) { return listeners[addr].Dial() }
	return dial, client, urls
}
