package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
)

const maxHead = 64 << 10

// answerReader reads HTTP/1.1 answers from one connection and passes the decoded body on in pieces as they arrive.
type answerReader struct {
	nc    net.Conn
	buf   []byte
	r, w  int
	now   int64             // when the newest bytes had been read
	pause func() (most int) // before each read; limits it. nil: never
}

// answerHead is what the reader needs of a head.
type answerHead struct {
	status  int
	length  int64 // -1: unknown
	chunked bool
	close   bool
}

var errEarlyEnd = errors.New("the connection ended in the middle of an answer")

// fill reads more bytes. io.EOF only when the connection has ended.
func (a *answerReader) fill() error {
	if a.r == a.w {
		a.r, a.w = 0, 0
	}
	if a.w == len(a.buf) {
		if a.r == 0 {
			if len(a.buf) >= maxHead {
				return fmt.Errorf("a line or head is longer than %d bytes", maxHead)
			}
			a.buf = append(a.buf, make([]byte, len(a.buf))...)
		}
		a.w = copy(a.buf, a.buf[a.r:a.w])
		a.r = 0
	}
	dst := a.buf[a.w:]
	if a.pause != nil {
		dst = dst[:min(len(dst), a.pause())]
	}
	n, err := a.nc.Read(dst)
	a.now = Now()
	a.w += n
	if n > 0 {
		return nil
	}
	return err
}

// head reads a head; answers 1xx are passed over. fresh: no byte of an answer came before the error.
func (a *answerReader) head() (h answerHead, fresh bool, err error) {
	for {
		i := bytes.Index(a.buf[a.r:a.w], []byte("\r\n\r\n"))
		if i < 0 {
			if err := a.fill(); err != nil {
				if a.r == a.w {
					return h, true, err
				}
				return h, false, errEarlyEnd
			}
			continue
		}
		h, err = parseHead(a.buf[a.r : a.r+i])
		a.r += i + 4
		if err != nil || h.status >= 200 {
			return h, false, err
		}
	}
}

func parseHead(b []byte) (h answerHead, err error) {
	line, b, _ := bytes.Cut(b, []byte("\r\n"))
	version, rest, _ := bytes.Cut(line, []byte(" "))
	if h.status, err = strconv.Atoi(string(rest[:min(3, len(rest))])); err != nil || !bytes.HasPrefix(version, []byte("HTTP/1.")) {
		return h, fmt.Errorf("not a status line: %.60q", line)
	}
	h.length = -1
	h.close = string(version) == "HTTP/1.0"
	for len(b) > 0 {
		line, b, _ = bytes.Cut(b, []byte("\r\n"))
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("content-length")):
			if h.length, err = strconv.ParseInt(string(value), 10, 64); err != nil || h.length < 0 {
				return h, fmt.Errorf("not a length: %.60q", line)
			}
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			h.chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("connection")):
			h.close = h.close || bytes.EqualFold(value, []byte("close"))
		}
	}
	return h, nil
}

// body passes the body to sink until its framing ends. errEarlyEnd: it was cut.
func (a *answerReader) body(h answerHead, sink func([]byte)) error {
	switch {
	case h.chunked:
		return a.chunks(sink)
	case h.length >= 0:
		return a.exactly(h.length, sink)
	}
	for { // until the connection ends
		sink(a.buf[a.r:a.w])
		a.r = a.w
		if err := a.fill(); err == io.EOF {
			return nil
		} else if err != nil {
			return early(err)
		}
	}
}

func (a *answerReader) chunks(sink func([]byte)) error {
	for {
		line, err := a.line()
		if err != nil {
			return err
		}
		digits, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseInt(string(bytes.TrimSpace(digits)), 16, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("not a chunk size: %.60q", line)
		}
		if n == 0 {
			break
		}
		if err := a.exactly(n, sink); err != nil {
			return err
		}
		if line, err = a.line(); err != nil || len(line) > 0 {
			return errors.Join(err, fmt.Errorf("a chunk does not end where its size says: %.60q", line))
		}
	}
	for { // trailers
		if line, err := a.line(); err != nil || len(line) == 0 {
			return err
		}
	}
}

func (a *answerReader) line() ([]byte, error) {
	for {
		if i := bytes.IndexByte(a.buf[a.r:a.w], '\n'); i >= 0 {
			line := a.buf[a.r : a.r+i]
			a.r += i + 1
			return bytes.TrimSuffix(line, []byte("\r")), nil
		}
		if err := a.fill(); err != nil {
			return nil, early(err)
		}
	}
}

func (a *answerReader) exactly(n int64, sink func([]byte)) error {
	for {
		take := int(min(n, int64(a.w-a.r)))
		if take > 0 {
			sink(a.buf[a.r : a.r+take])
			a.r += take
			n -= int64(take)
		}
		if n == 0 {
			return nil
		}
		if err := a.fill(); err != nil {
			return early(err)
		}
	}
}

func early(err error) error {
	if err == io.EOF {
		return errEarlyEnd
	}
	return err
}
