package h1

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// recorded is a connection whose other end has said everything already.
type recorded struct {
	net.Conn
	answer bytes.Reader
	step   int // most bytes of one read
}

func (r *recorded) Read(b []byte) (int, error)       { return r.answer.Read(b[:min(len(b), r.step)]) }
func (r *recorded) Write(b []byte) (int, error)      { return len(b), nil }
func (r *recorded) Close() error                     { return nil }
func (r *recorded) SetDeadline(time.Time) error      { return nil }
func (r *recorded) SetReadDeadline(time.Time) error  { return nil }
func (r *recorded) SetWriteDeadline(time.Time) error { return nil }

type outcome struct {
	status int
	body   string
	kind   string
	reuse  bool
}

// hear reads an answer that comes in pieces of step bytes.
func hear(t *testing.T, answer []byte, step int) (o outcome) {
	conn := &recorded{step: step}
	conn.answer.Reset(answer)
	p, err := NewPool(Target{Addr: "a:1", ProxyURL: "off", Dial: func(context.Context, string) (net.Conn, error) { return conn, nil }})
	must(t, err)
	defer p.Close()
	c := p.NewCall()
	must(t, c.Connect(time.Time{}))
	must(t, c.Write(time.Time{}, []byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"), nil))
	h := new(fasthttp.ResponseHeader)
	if err = c.ReadHead(time.Time{}, h); err == nil {
		o.status = h.StatusCode()
		o.body, err = rest(c)
	}
	var e *Error
	if errors.As(err, &e) {
		o.kind = e.Kind
	} else if err != nil {
		t.Fatalf("error without a kind: %v", err)
	}
	c.Finish()
	o.reuse = p.Idle() == 1
	return o
}

// FuzzAnswer: how an answer is cut into reads changes nothing, and a
// connection is reused after exactly the answer, not a byte less or more.
func FuzzAnswer(f *testing.F) {
	for _, a := range answers {
		if len(a.answer) < 1000 {
			f.Add([]byte(a.answer), 3)
		}
	}
	f.Fuzz(func(t *testing.T, answer []byte, step int) {
		whole := hear(t, answer, maxHead)
		if cut := hear(t, answer, max(1, step)); cut.status != whole.status || cut.body != whole.body || cut.kind != whole.kind {
			t.Fatalf("in steps of %d: %+v, at once: %+v", step, cut, whole)
		}
		if !whole.reuse || len(answer) > blockSize/2 {
			return
		}
		if short := hear(t, answer[:len(answer)-1], maxHead); short.reuse || short.kind == "" {
			t.Fatalf("reused after %+v, but without its last byte it is %+v", whole, short)
		}
		if long := hear(t, append(bytes.Clone(answer), 'x'), maxHead); long.reuse {
			t.Fatalf("reused with a byte behind the answer: %+v", long)
		}
	})
}

// counted counts how often a read deadline is set.
type counted struct {
	net.Conn
	sets int
}

func (c *counted) SetReadDeadline(at time.Time) error {
	c.sets++
	return c.Conn.SetReadDeadline(at)
}

// A deadline costs more than a token: it is set when it changes.
func TestDeadlineIsSetOncePerInstant(t *testing.T) {
	up := serve(t, echo)
	var conn *counted
	p := newPool(t, Target{Addr: up.addr, Dial: func(_ context.Context, addr string) (net.Conn, error) {
		c, err := net.Dial("tcp", addr)
		conn = &counted{Conn: c}
		return conn, err
	}})
	c := p.NewCall()
	defer c.Finish()
	_, err := post(c, string(make([]byte, 1<<20)))
	must(t, err)
	before, until, reads := conn.sets, soon(), 0
	for ; err != io.EOF; reads++ {
		if _, err = c.Next(until); err != nil && err != io.EOF {
			t.Fatal(err)
		}
	}
	equal(t, "deadlines", conn.sets-before, 1)
	if reads < 32 {
		t.Errorf("only %d reads", reads)
	}
}
