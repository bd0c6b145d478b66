//go:build !race

package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"

	"tracegate/sse"
	"tracegate/trace"
	"tracegate/wire"
)

// A relayed token allocates nothing: not in the cutter and the dialect, and not
// on its way through the whole gateway.

func TestCuttingDoesNotAllocate(t *testing.T) {
	for _, d := range dialects {
		whole := streamOf(t, d.name)
		prefix, token := splitAtToken(t, d.name, whole)
		for _, c := range []struct {
			name   string
			pieces [][]byte
		}{
			{"one event a read", [][]byte{token}},
			{"many events a read", [][]byte{bytes.Repeat(token, 20)}},
			{"an event in two reads", [][]byte{token[:len(token)/2], token[len(token)/2:]}},
			{"an event and a half a read", [][]byte{append(bytes.Clone(token), token[:9]...), append(bytes.Clone(token[9:]), token[:30]...), token[30:]}},
			{"an event byte by byte", split(token, 1)},
			{"an event with CRLF", [][]byte{withLineEnds(token, "\r\n")}},
		} {
			for _, hide := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/hide=%t", d.name, c.name, hide), func(t *testing.T) {
					var p sse.Parser
					var seen wire.Observation
					piece := cutter{hideUsage: hide}
					dialect := wire.ByName(d.name)
					sent := 0
					feed := func(b []byte) {
						out, _, _ := piece.cut(b, &p, dialect, &seen)
						sent += len(out)
					}
					run := func() {
						for _, b := range c.pieces {
							feed(b)
						}
					}
					feed(prefix)
					for range 100 { // shapes are learnt, buffers have grown
						run()
					}
					if n := testing.AllocsPerRun(500, run); n != 0 {
						t.Errorf("%v allocations per event", n)
					}
					if sent == 0 || !seen.HasContent {
						t.Error("no content was relayed")
					}
				})
			}
		}
	}
}

// splitAtToken returns a stream up to its last content event, and that event.
func splitAtToken(t testing.TB, dialect string, stream []byte) (prefix, token []byte) {
	t.Helper()
	var seen wire.Observation
	var p sse.Parser
	for at := 0; at < len(stream); {
		ev, n, ok := p.Next(stream[at:])
		if !ok {
			break
		}
		if k := wire.ByName(dialect).Observe(&seen, ev); k&wire.Content != 0 && k&wire.Finish == 0 {
			prefix, token = stream[:at], stream[at:at+n]
		}
		at += n
	}
	if token == nil {
		t.Fatal("the recorded stream has no content")
	}
	return prefix, token
}

func split(b []byte, n int) (pieces [][]byte) {
	for ; len(b) > n; b = b[n:] {
		pieces = append(pieces, b[:n])
	}
	return append(pieces, b)
}

const (
	warmTokens     = 200
	measuredTokens = 20_000
)

// TestRelayedTokenDoesNotAllocate counts every allocation of the process while
// one stream runs, each token read and written by itself.
func TestRelayedTokenDoesNotAllocate(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			prefix, token := splitAtToken(t, d.name, streamOf(t, d.name))
			taken, rest := make(chan struct{}), streamOf(t, d.name)[len(prefix)+len(token):]
			chunk := fmt.Appendf(nil, "%x\r\n%s\r\n", len(token), token)
			up := newScripted(t, func(c net.Conn, _ *http.Request, _ []byte) {
				_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\n%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", eventStream, len(prefix), prefix)
				for range taken { // one token for each that the client has
					if err == nil {
						_, err = c.Write(chunk)
					}
				}
				_, _ = fmt.Fprintf(c, "%x\r\n%s\r\n0\r\n\r\n", len(rest), rest)
			})
			r := newRig(t, setup{upstream: up.url})
			c := r.send(d.path, d.body(true, "hello"))
			br := bufio.NewReaderSize(c, 64<<10)
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, len(token))
			take := func(n int) {
				for range n {
					taken <- struct{}{}
					if _, err := io.ReadFull(resp.Body, buf); err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, err := io.CopyN(io.Discard, resp.Body, int64(len(prefix))); err != nil {
				t.Fatal(err)
			}
			take(warmTokens)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			take(measuredTokens)
			runtime.ReadMemStats(&after)
			close(taken)
			if end := must(io.ReadAll(resp.Body)); !bytes.Equal(buf, token) || len(end) == 0 {
				t.Error("the stream was not relayed")
			}
			rec := r.record()
			equal(t, "outcome", rec.Outcome, trace.OK)
			per := float64(after.Mallocs-before.Mallocs) / measuredTokens
			t.Logf("%.4f allocations per token", per)
			if per >= 0.05 {
				t.Errorf("%.3f allocations per token, want less than 0.05", per)
			}
		})
	}
}
