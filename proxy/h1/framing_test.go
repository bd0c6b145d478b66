package h1

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// once answers one request with answer and closes.
func once(answer string) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		if _, err := request(r); err == nil {
			_, _ = io.WriteString(c, answer)
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, r) // until the client leaves: no reset
		}
	}
}

const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

var answers = []struct {
	name, answer string
	status       int
	body         string
	kind         string // of the error that ends the call
	pooled       bool
}{
	{name: "length", answer: ok, status: 200, body: "ok", pooled: true},
	{name: "length zero", answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", status: 200, pooled: true},
	{name: "length, more behind it", answer: ok + "x", status: 200, body: "ok"},
	{name: "length, cut", answer: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", status: 200, body: "ok", kind: KindCut},
	{name: "chunks", answer: chunked + "2\r\nok\r\n3\r\n ok\r\n0\r\n\r\n", status: 200, body: "ok ok", pooled: true},
	{name: "chunks and a trailer", answer: chunked + "2\r\nok\r\n0\r\nX-T: 1\r\n\r\n", status: 200, body: "ok", pooled: true},
	{name: "chunks, more behind them", answer: chunked + "2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n", status: 200, body: "ok"},
	{name: "chunks, cut between two", answer: chunked + "2\r\nok\r\n", status: 200, body: "ok", kind: KindCut},
	{name: "chunks, cut inside one", answer: chunked + "9\r\nok", status: 200, body: "ok", kind: KindCut},
	{name: "chunks, cut before the last line end", answer: chunked + "2\r\nok\r\n0\r\n", status: 200, body: "ok", kind: KindCut},
	{name: "chunks, broken", answer: chunked + "2\r\nok\r\nnonsense\r\n", status: 200, body: "ok", kind: KindProtocol},
	{name: "until close", answer: "HTTP/1.1 200 OK\r\n\r\nall of it", status: 200, body: "all of it"},
	{name: "until close, empty", answer: "HTTP/1.1 200 OK\r\n\r\n", status: 200},
	{name: "length beside chunks", answer: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", status: 200, body: "ok"},
	{name: "connection close", answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok"},
	{name: "HTTP/1.0", answer: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok"},
	{name: "HTTP/1.0 kept alive", answer: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok", pooled: true},
	{name: "HTTP/1.0 with chunks", answer: "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", kind: KindProtocol},
	{name: "204", answer: "HTTP/1.1 204 No Content\r\n\r\n", status: 204, pooled: true},
	{name: "304 with a length", answer: "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", status: 304, pooled: true},
	{name: "interim answers", answer: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok, status: 200, body: "ok", pooled: true},
	{name: "interim answers without end", answer: strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 101), kind: KindProtocol},
	{name: "switching protocols", answer: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", kind: KindProtocol},
	{name: "line end in front", answer: "\r\n" + ok, status: 200, body: "ok", pooled: true},
	{name: "line ends without end", answer: strings.Repeat("\r\n", 50), kind: KindProtocol},
	{name: "another protocol", answer: "SSH-2.0-OpenSSH_9.2\r\n", kind: KindProtocol},
	{name: "TLS where HTTP was asked", answer: "\x15\x03\x01\x00\x02\x02\x46", kind: KindProtocol},
	{name: "HTTP/2", answer: "HTTP/2 200\r\n\r\n", kind: KindProtocol},
	{name: "bare line feeds", answer: "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", kind: KindProtocol},
	{name: "empty line in front of a bare line feed", answer: "HTTP/1.1 200 OK\r\n\nA: b\r\n\r\n", kind: KindProtocol},
	{name: "two lengths", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", kind: KindProtocol},
	{name: "length with a sign", answer: "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", kind: KindProtocol},
	{name: "unknown encoding", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", kind: KindProtocol},
	{name: "head of 60 KiB", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: " + strings.Repeat("x", 60<<10) + "\r\n\r\nok", status: 200, body: "ok", pooled: true},
	{name: "head over 64 KiB", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\nok", kind: KindProtocol},
	{name: "cut in the head", answer: "HTTP/1.1 200 OK\r\nContent-", kind: KindCut},
	{name: "closed without an answer", answer: "", kind: KindCut},
}

func TestAnswerFramings(t *testing.T) {
	for _, c := range answers {
		t.Run(c.name, func(t *testing.T) {
			up := serve(t, once(c.answer))
			p := newPool(t, Target{Addr: up.addr})
			call := p.NewCall()
			h, err := post(call, "{}")
			var body string
			if err == nil {
				equal(t, "status", h.StatusCode(), c.status)
				body, err = rest(call)
			}
			equal(t, "body", body, c.body)
			if c.kind == "" {
				must(t, err)
			} else {
				wantKind(t, err, c.kind)
				equal(t, "unexpected EOF", errors.Is(err, io.ErrUnexpectedEOF), c.kind == KindCut)
				_, again := call.Next(soon())
				equal(t, "the error again", again, err)
			}
			call.Finish()
			equal(t, "pooled", p.Idle() == 1, c.pooled)
			equal(t, "connections", up.conns.Load(), 1)
		})
	}
}

func TestHeadRequestHasNoBody(t *testing.T) {
	up := serve(t, each("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"))
	p := newPool(t, Target{Addr: up.addr})
	call := p.NewCall()
	must(t, call.Connect(soon()))
	must(t, call.Write(soon(), headOf("HEAD", ""), nil))
	must(t, call.ReadHead(soon(), new(fasthttp.ResponseHeader)))
	_, err := call.Next(soon())
	equal(t, "body", err, io.EOF)
	call.Finish()
	equal(t, "idle", p.Idle(), 1)
}

// The answer may be cut into packets anywhere.
func TestAnswerByteByByte(t *testing.T) {
	const answer = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n4\r\nabcd\r\n2\r\nef\r\n0\r\nT: v\r\n\r\n"
	up := serve(t, func(c net.Conn, r *bufio.Reader) {
		for {
			if _, err := request(r); err != nil {
				return
			}
			for i := range len(answer) {
				_, _ = c.Write([]byte{answer[i]})
			}
		}
	})
	p := newPool(t, Target{Addr: up.addr})
	for range 20 {
		body, _, err := exchange(p, "{}")
		must(t, err)
		equal(t, "body", body, "abcdef")
	}
	equal(t, "connections", up.conns.Load(), 1)
}

// All chunks that one read brings come as one slice.
func TestOneReadIsOneSlice(t *testing.T) {
	up := serve(t, each(chunked+strings.Repeat(chunk("data: x\n\n"), 100)+"0\r\n\r\n"))
	p := newPool(t, Target{Addr: up.addr})
	call := p.NewCall()
	defer call.Finish()
	_, err := post(call, "{}")
	must(t, err)
	b, err := call.Next(soon())
	must(t, err)
	equal(t, "first slice", string(b), strings.Repeat("data: x\n\n", 100))
}

// What goes out is the head and the body, unchanged.
func TestRequestBytes(t *testing.T) {
	for _, body := range []string{"", `{"a":1}`, strings.Repeat("x", 300_000)} {
		head := fmt.Sprintf("POST /p?q=1 HTTP/1.1\r\nHost: up.example\r\nX-Two: a\r\nX-Two: b\r\nContent-Length: %d\r\n\r\n", len(body))
		got := make(chan string, 1)
		up := serve(t, func(conn net.Conn, r *bufio.Reader) {
			b := make([]byte, len(head)+len(body))
			n, _ := io.ReadFull(r, b)
			got <- string(b[:n])
			_, _ = io.WriteString(conn, ok)
		})
		call := newPool(t, Target{Addr: up.addr}).NewCall()
		must(t, call.Connect(soon()))
		must(t, call.Write(soon(), []byte(head), []byte(body)))
		equal(t, "bytes", <-got == head+body, true)
		call.Discard()
	}
}

// The caller's head is copied, and it is the copy that is sent again.
func TestRenderedHead(t *testing.T) {
	up := serve(t, lateCloser(false, func(string) {}))
	p := newPool(t, Target{Addr: up.addr})
	for i := range 3 {
		c := p.NewCall()
		must(t, c.Connect(soon()))
		head := []byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n")
		must(t, c.Write(soon(), head, []byte("{}")))
		clear(head) // it was copied
		must(t, c.ReadHead(soon(), new(fasthttp.ResponseHeader)))
		body, err := rest(c)
		must(t, err)
		equal(t, "body", body, "ok")
		equal(t, "redialled", c.Redialled, i > 0)
		c.Finish()
	}
}
