package load

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// TestUnchangedRelay finds an upstream behind a relay exact, in all dialects and both loops.
func TestUnchangedRelay(t *testing.T) {
	u := listenUpstream(t)
	addr := relay(t, u.Addr())
	for _, dialect := range Dialects {
		for _, p := range []Plan{
			{Tokens: 12, Gap: time.Millisecond},
			{Tokens: 1, Gap: time.Millisecond},
			{Tokens: 500},
			{Tokens: 12, Prefill: time.Millisecond},
			{Tokens: 12, Whole: true},
			{Tokens: 12, Whole: true, Prefill: time.Millisecond, Body: 200_000},
			{Tokens: 12, Rate: 2000, Gap: time.Millisecond},
		} {
			p.Addr, p.Dialect, p.Conns, p.Requests, p.Window, p.Drain = addr, dialect, 6, 30, 5*time.Second, time.Second
			r := mustRun(t, p)
			tokens := int64(30 * p.Tokens)
			if p.Whole {
				tokens = 30
			}
			if r.Completed != 30 || r.Wrong() != 0 || r.WindowTokens != tokens || r.AddedTTFT.N != 30 || r.Total.N != 30 {
				t.Errorf("%+v: %+v", p, r)
			}
		}
	}
}

// relay passes bytes on both ways, unchanged.
func relay(t *testing.T, upstream string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", upstream)
			if err != nil {
				client.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{client, up}, {up, client}} {
				wg.Go(func() {
					io.Copy(pair[0], pair[1])
					client.Close()
					up.Close()
				})
			}
		}
	})
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	return ln.Addr().String()
}
