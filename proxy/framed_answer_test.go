package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"tracegate/trace"
)

// framed is an answer as an upstream may put it on the wire.
type framed struct {
	head    string // header lines beside the framing, each with its CRLF
	body    []byte
	framing string // chunked, length, close
	seed    uint64 // of the sizes of chunks and writes
	least   int    // size that writes and chunks have at least; 0 = 1
	atOnce  bool   // in one chunk and one write
}

var framings = []string{"chunked", "length", "close"}

// send writes the answer in random pieces of 1 byte to 64 KiB. Each seed has a
// largest size of its own, so that some answers come in small pieces alone.
func (f framed) send(c net.Conn) {
	random := rand.New(rand.NewPCG(f.seed, 7))
	b := append(make([]byte, 0, 4<<10+len(f.body)*3/2), "HTTP/1.1 200 OK\r\n"+f.head...)
	switch f.framing {
	case "length":
		b = fmt.Appendf(b, "Content-Length: %d\r\n\r\n", len(f.body))
		b = append(b, f.body...)
	case "close":
		b = append(append(b, "Connection: close\r\n\r\n"...), f.body...)
	default:
		b = append(b, "Transfer-Encoding: chunked\r\n\r\n"...)
		for rest := f.body; len(rest) > 0; {
			n := f.piece(random, len(rest))
			b = fmt.Appendf(b, "%x\r\n%s\r\n", n, rest[:n])
			rest = rest[n:]
		}
		b = append(b, "0\r\n\r\n"...)
	}
	for len(b) > 0 {
		n := f.piece(random, len(b))
		if _, err := c.Write(b[:n]); err != nil {
			return // the gateway has what it wanted
		}
		b = b[n:]
	}
	if f.framing == "close" {
		_ = c.Close()
	}
}

func (f framed) piece(random *rand.Rand, left int) int {
	if f.atOnce {
		return left
	}
	largest := 1 << random.IntN(2+int(f.seed%16))
	return min(max(1+random.IntN(largest), f.least), left)
}

// framer is an upstream whose next answer a test sets.
type framer struct {
	*scripted
	next atomic.Pointer[framed]
}

func newFramer(t testing.TB) *framer {
	f := &framer{}
	f.scripted = newScripted(t, func(c net.Conn, _ *http.Request, _ []byte) { f.next.Load().send(c) })
	return f
}

// exchange gives the answer to one request of dialect d and returns what the
// client got of it.
func (f *framer) exchange(r *rig, d dialectCase, stream bool, a framed) answer {
	f.next.Store(&a)
	body := d.body(stream, "hello")
	if stream && (d.name == "chat" || d.name == "completions") {
		body = body[:len(body)-1] + `,"stream_options":{"include_usage":true}}`
	}
	return r.post(d.path, body)
}

// passes gives the answer to one request: the client gets all of its body, and
// nothing else.
func (f *framer) passes(t *testing.T, r *rig, d dialectCase, stream bool, a framed) answer {
	t.Helper()
	got := f.exchange(r, d, stream, a)
	equal(t, "status", got.StatusCode, 200)
	equal(t, "end of the body", got.err, nil)
	sameBytes(t, got.body, a.body)
	equal(t, "outcome", r.record().Outcome, trace.OK)
	return got
}

// recorded is one recorded answer of a real server, without its framing.
type recorded struct {
	name    string
	dialect dialectCase
	body    []byte
}

// recordings reads wire's captures of a kind, streams or bodies, that have an
// end. The dialect is the part of the file's name before the first '_'.
func recordings(t testing.TB, kind string) []recorded {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "wire", "testdata", kind, "*.http"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded %s: %v", kind, err)
	}
	var all []recorded
	for _, file := range files {
		c := recorded{name: strings.TrimSuffix(filepath.Base(file), ".http")}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(must(os.ReadFile(file)))), nil)
		if err == nil {
			c.body, err = io.ReadAll(resp.Body)
		}
		if err == io.ErrUnexpectedEOF {
			continue // the server died inside it: what a client gets then is no copy
		}
		if err != nil {
			t.Fatalf("cannot read %s: %v", file, err)
		}
		name, _, _ := strings.Cut(c.name, "_")
		for _, d := range dialects {
			if d.name == name {
				c.dialect = d
				all = append(all, c)
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("no recorded %s of a dialect", kind)
	}
	return all
}

// withLineEnds writes the line ends of an event stream anew.
func withLineEnds(b []byte, end string) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte(end)) }

// isSame: the client got the upstream's body. The LF of the pair that ends a
// terminal event may still be on its way when the answer is over.
func isSame(got, want []byte) bool {
	return bytes.Equal(got, want) || bytes.HasSuffix(got, []byte("\r")) && bytes.Equal(want, append(got[:len(got):len(got)], '\n'))
}

func sameBytes(t testing.TB, got, want []byte) {
	t.Helper()
	if isSame(got, want) {
		return
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	t.Errorf("%d bytes, want %d; the first difference is at %d:\n got %q\nwant %q", len(got), len(want), at, around(got, at), around(want, at))
}

func around(b []byte, at int) []byte { return b[max(at-40, 0):min(at+80, len(b))] }
