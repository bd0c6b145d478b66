package fakeengine

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// eventKind is what the log has to know of an event.
type eventKind int

const (
	evPlain eventKind = iota
	evContent
	evTerminal
)

// output writes the events of one answer and bends them as the script says.
type output struct {
	over      bool // nothing more is to be written
	struck    bool // by an ending fault
	kill      bool // the connection is cut when the handler returns
	reset     bool // with RST
	headed    bool
	bigSent   bool
	frozen    bool
	events    int
	contents  int
	unstamped marks
	held      []byte
	heldN     int
	gz        *gzip.Writer
}

// head writes the head of a stream.
func (o *output) head(x *exchange) {
	if o.headed {
		return
	}
	o.headed = true
	x.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	x.decorate()
	now := time.Now()
	x.update(func(l *RequestLog) { l.Headers, l.Status = now, 200 })
	x.w.WriteHeader(200)
	x.flush()
	if x.fault(GZip) != nil {
		o.gz = gzip.NewWriter(x.w)
	}
	if x.fault(BOM) != nil {
		o.write(x, []byte("\xef\xbb\xbf"))
	}
	if f := x.fault(Comment); f != nil {
		for range max(f.N, 1) {
			o.write(x, []byte(": "+f.Text+"\n\n"))
		}
	}
}

// decorate sets the headers that every answer of the server has, and those of the script.
func (x *exchange) decorate() {
	h := x.w.Header()
	h.Set("Server", "uvicorn")
	h.Set("Vary", "Origin")
	if f := x.fault(BigHeaders); f != nil {
		for i := 0; i*1000 < f.N; i++ {
			h.Set("X-Fake-"+strconv.Itoa(i), strings.Repeat("h", min(1000, f.N-i*1000)))
		}
	}
	if x.fault(CloseAfter) != nil {
		h.Set("Connection", "close")
	}
	if x.e.o.EchoRequestID && h.Get("X-Request-Id") == "" {
		h.Set("X-Request-Id", x.requestID())
	}
	if f := x.fault(ContentType); f != nil {
		h.Set("Content-Type", f.Text)
	}
	if x.fault(GZip) != nil {
		h.Set("Content-Encoding", "gzip")
	}
}

// emit writes one event, unless a fault strikes first.
func (o *output) emit(x *exchange, ev []byte, k eventKind) {
	if o.over {
		return
	}
	if !o.headed {
		o.head(x)
	}
	if f := x.strikes(ev); f != nil {
		x.strike(f, ev)
		return
	}
	if f := x.fault(Slow); f != nil && k == evContent && o.contents > 0 && !x.sleep(f.Delay) {
		return
	}
	if x.fault(NoNames) != nil && bytes.HasPrefix(ev, []byte("event: ")) {
		ev = ev[bytes.IndexByte(ev, '\n')+1:]
	}
	o.events++
	switch k {
	case evContent:
		o.contents++
		o.unstamped.contents++
	case evTerminal:
		o.unstamped.terminal = true
	}
	o.put(x, ev)
}

// marks are events that have been made but not written.
type marks struct {
	contents int
	terminal bool
}

// stamp notes the instant of a write for the events in it.
func (o *output) stamp(x *exchange) {
	m := o.unstamped
	if m == (marks{}) {
		return
	}
	o.unstamped = marks{}
	now := time.Now()
	x.update(func(l *RequestLog) {
		if m.terminal {
			l.Terminal = now
		}
		if m.contents == 0 {
			return
		}
		l.Events += m.contents
		l.LastToken = now
		if l.FirstToken.IsZero() {
			l.FirstToken = now
		}
		if x.e.o.KeepTokenStamps {
			for range m.contents {
				l.TokenStamps = append(l.TokenStamps, now)
			}
		}
	})
}

// put frames an event and holds it or writes it.
func (o *output) put(x *exchange, ev []byte) {
	if f := x.fault(Framing); f != nil {
		end := []byte("\r\n")
		if f.Text == "cr" {
			end = end[:1]
		}
		ev = bytes.ReplaceAll(ev, []byte("\n"), end)
	}
	if x.fault(Burst) != nil {
		o.held = append(o.held, ev...)
		return
	}
	if f := x.fault(Merge); f != nil {
		o.held = append(o.held, ev...)
		if o.heldN++; o.heldN < f.N {
			return
		}
		o.release(x)
		return
	}
	o.write(x, ev)
}

// release writes what is held.
func (o *output) release(x *exchange) {
	if len(o.held) > 0 {
		o.write(x, o.held)
		o.held, o.heldN = o.held[:0], 0
	}
}

// finish ends a body that was not cut: what is held goes out, a compressed stream gets its end.
func (o *output) finish(x *exchange) {
	o.release(x)
	if o.gz != nil && !o.kill {
		_ = o.gz.Close() // a client that is gone is noticed by the request's context
		x.flush()
	}
}

// write sends bytes as one chunk; the stamps are taken right before. A failed write means that the client has
// gone; the request's context says so too.
func (o *output) write(x *exchange, b []byte) {
	o.stamp(x)
	if o.gz != nil {
		_, _ = o.gz.Write(b)
		_ = o.gz.Flush()
	} else {
		_, _ = x.w.Write(b)
	}
	x.flush()
}

func (x *exchange) flush() { x.w.(http.Flusher).Flush() }
