package h1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// maxInterim bounds the 1xx answers before the real one.
const maxInterim = 100

// maxStrayEnds bounds the line ends before a status line: some servers send one
// behind the body of the answer before.
const maxStrayEnds = 4

type headState struct {
	seen    bool // a byte of an answer arrived
	noBody  bool // the request was a HEAD
	read    bool // the final head was parsed
	scanned int  // bytes of the inbox known not to end the head
	interim int
	stray   int
}

// ReadHead reads the head of the answer into h, skipping interim (1xx) ones. On
// a reused connection that ended without a byte of an answer it dials afresh,
// once, and sends the same bytes again.
func (c *Call) ReadHead(until time.Time, h *fasthttp.ResponseHeader) error {
	for c.fault == nil && !c.head.read {
		err := c.readHead(until, h)
		if err == nil || err == ErrPaused {
			return err
		}
		if c.stale(err) {
			c.redial()
			continue
		}
		return c.keep(c.headFailure(err))
	}
	return c.fault
}

func (c *Call) readHead(until time.Time, h *fasthttp.ResponseHeader) error {
	if c.link == nil {
		if err := c.awaitDial(until); err != nil {
			return err
		}
	}
	if c.Redialled {
		if err := c.send(until); err != nil {
			return err
		}
	}
	for {
		done, err := c.parseHead(h)
		if done || err != nil {
			return err
		}
		if !c.in.makeRoom() {
			return c.malformed("its head is larger than 64 KiB")
		}
		if err := c.receive(until); err != nil {
			return err
		}
	}
}

// stale: the server closed the idle connection while the request was on its
// way. Only then may it be sent again without asking anybody.
func (c *Call) stale(err error) bool {
	if !c.Reused || c.Redialled || c.head.seen || !c.out.began {
		return false
	}
	return isHangup(err) || c.out.failure != nil && isHangup(c.out.failure) && err != ErrAborted
}

func (c *Call) redial() {
	c.mu.Lock()
	c.link.kill()
	c.link = nil
	c.mu.Unlock()
	c.Reused, c.Redialled = false, true
	c.in.drop()
	c.head.scanned, c.head.stray = 0, 0
	c.out.rewind()
	c.startDial()
}

// headFailure names an error that ended the wait for a head.
func (c *Call) headFailure(err error) error {
	var named *Error
	if err == ErrAborted || errors.As(err, &named) {
		return err
	}
	const verb = "read the answer of upstream"
	if c.out.failure != nil && !c.head.seen {
		return c.failure(KindReset, "send the request to upstream", c.out.failure)
	}
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return c.failure(KindCut, verb, io.ErrUnexpectedEOF)
	}
	return c.failure(KindReset, verb, err)
}

func (c *Call) malformed(what string) error {
	return c.failure(KindProtocol, "read the answer of upstream", errors.New(what))
}

// parseHead consumes complete heads from the inbox; done after the final one.
func (c *Call) parseHead(h *fasthttp.ResponseHeader) (done bool, err error) {
	for {
		if err := c.skipStray(); err != nil {
			return false, err
		}
		if c.in.empty() {
			c.in.drop()
			return false, nil
		}
		c.head.seen = true
		raw := c.in.unread()
		if !looksLikeHTTP(raw) {
			return false, c.malformed("it does not begin with HTTP/1.1 or HTTP/1.0")
		}
		end := bytes.Index(raw[c.head.scanned:], []byte("\r\n\r\n"))
		if end < 0 {
			if bytes.Contains(raw[c.head.scanned:], []byte("\n\n")) {
				return false, c.malformed("its head's lines do not end in CRLF")
			}
			c.head.scanned = max(0, len(raw)-3)
			return false, nil
		}
		raw = raw[:c.head.scanned+end+4]
		c.head.scanned = 0
		n, err := parse(h, raw)
		if err != nil {
			return false, c.malformed(headProblem(err))
		}
		if n != len(raw) {
			return false, c.malformed("its head's lines do not end in CRLF")
		}
		c.in.lo += n
		if status := h.StatusCode(); status >= 200 {
			return true, c.acceptHead(h, raw)
		} else if status == 101 {
			return false, c.malformed("it switches protocols unasked")
		}
		if c.head.interim++; c.head.interim > maxInterim {
			return false, c.malformed(fmt.Sprintf("more than %d interim answers", maxInterim))
		}
	}
}

// skipStray drops line ends in front of a head.
func (c *Call) skipStray() error {
	for !c.in.empty() && (c.in.buf[c.in.lo] == '\r' || c.in.buf[c.in.lo] == '\n') {
		c.in.lo++
		if c.head.stray++; c.head.stray > maxStrayEnds {
			return c.malformed("it begins with empty lines")
		}
	}
	return nil
}

// looksLikeHTTP judges as much as is there, so that a peer that speaks
// something else is found at once and not by a timeout.
func looksLikeHTTP(b []byte) bool {
	const want = "HTTP/1."
	n := min(len(b), len(want))
	return string(b[:n]) == want[:n] && (len(b) <= len(want) || b[len(want)] == '0' || b[len(want)] == '1')
}

// headParser feeds fasthttp's parser, which wants a bufio.Reader as large as
// the head. It is held while parsing only.
type headParser struct {
	src bytes.Reader
	buf *bufio.Reader
}

var headParsers = sync.Pool{New: func() any {
	p := new(headParser)
	p.buf = bufio.NewReaderSize(&p.src, maxHead)
	return p
}}

func parse(h *fasthttp.ResponseHeader, raw []byte) (n int, err error) {
	p := headParsers.Get().(*headParser)
	p.src.Reset(raw)
	p.buf.Reset(&p.src)
	err = h.Read(p.buf)
	n = len(raw) - p.buf.Buffered() - p.src.Len()
	p.src.Reset(nil)
	headParsers.Put(p)
	return n, err
}

// headProblem words a parser's error without its text, which quotes the head.
func headProblem(err error) string {
	switch {
	case errors.Is(err, fasthttp.ErrDuplicateContentLength):
		return "it has more than one Content-Length"
	case errors.Is(err, fasthttp.ErrUnsupportedTransferEncoding):
		return "its Transfer-Encoding is not chunked"
	}
	return "its status line or a header field is malformed"
}

// acceptHead decides the framing of the body and whether the connection may
// serve again.
func (c *Call) acceptHead(h *fasthttp.ResponseHeader, raw []byte) error {
	length := h.ContentLength()
	fields := framingFields(raw)
	http10 := raw[len("HTTP/1.")] == '0'
	if http10 && fields.encoding {
		return c.malformed("it has a Transfer-Encoding in HTTP/1.0")
	}
	b := &c.body
	b.reusable = !h.ConnectionClose() && !(fields.encoding && fields.length)
	switch status := h.StatusCode(); {
	case c.head.noBody || status == 204 || status == 304:
		b.framing, b.left = byLength, 0
	case length >= 0:
		b.framing, b.left = byLength, int64(length)
	case length == -1:
		b.framing = byChunks
	default:
		b.framing, b.reusable = byClose, false
	}
	if v := h.Peek("Keep-Alive"); len(v) > 0 {
		c.link.keepFor = keepAliveTimeout(v)
	}
	c.head.read = true
	c.out.drop()
	if c.in.empty() {
		c.in.drop()
	}
	return nil
}

type framing struct{ length, encoding bool }

// framingFields looks which framing fields a head has: fasthttp lets
// Transfer-Encoding win without a word about a Content-Length beside it.
func framingFields(raw []byte) (f framing) {
	for len(raw) > 0 {
		var line []byte
		line, raw, _ = bytes.Cut(raw, []byte("\n"))
		key, _, found := bytes.Cut(line, []byte(":"))
		if !found {
			continue
		}
		key = bytes.TrimRight(key, " \t")
		switch {
		case len(key) == len("content-length") && bytes.EqualFold(key, []byte("content-length")):
			f.length = true
		case len(key) == len("transfer-encoding") && bytes.EqualFold(key, []byte("transfer-encoding")):
			f.encoding = true
		}
	}
	return f
}

// keepAliveTimeout reads `timeout=N` of a Keep-Alive field; 0 if there is none.
func keepAliveTimeout(v []byte) time.Duration {
	for part := range bytes.SplitSeq(v, []byte(",")) {
		key, value, _ := bytes.Cut(bytes.TrimSpace(part), []byte("="))
		if !bytes.EqualFold(bytes.TrimSpace(key), []byte("timeout")) {
			continue
		}
		n, err := strconv.Atoi(string(bytes.TrimSpace(value)))
		if err == nil && n >= 0 && n < 1<<20 {
			return max(time.Duration(n)*time.Second, 1)
		}
	}
	return 0
}
