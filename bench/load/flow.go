package load

import (
	"net"
	"sync/atomic"
	"syscall"
)

// flow is one answer that the upstream is writing.
type flow struct {
	conn     *upstreamConn
	script   *script
	order    order
	received int64
	due      int64        // when the next write is to happen
	sent     atomic.Int64 // tokens written
	state    atomic.Int32
}

const (
	flowing = iota
	flowEnded
	flowAborted
)

// next renders what is to be written next. The last write also settles the flow: from then on its client may send another request,
// and a closing connection is no abort. ok is false when the client has left.
func (f *flow) next(dst []byte) (b []byte, last, ok bool) {
	k := f.sent.Load()
	s := slots{received: f.received, id: f.order.id, index: k}
	last = f.order.whole || int(k) == f.order.tokens-1
	if last && !f.state.CompareAndSwap(flowing, flowEnded) || !last && f.state.Load() != flowing {
		return dst, last, false
	}
	f.sent.Add(1)
	s.stamp = Now()
	switch {
	case f.order.whole:
		return f.script.wholeWire.appendTo(dst, s), true, true
	case k == 0:
		dst = f.script.firstWire.appendTo(dst, s)
	default:
		dst = f.script.tokenWire.appendTo(dst, s)
	}
	if last {
		s.index = int64(f.order.tokens)
		dst = f.script.lastWire.appendTo(dst, s)
	}
	return dst, last, true
}

// pour writes the rest of the answer with one write a token, as fast as the connection takes it.
func (f *flow) pour() {
	var buf []byte
	for {
		b, last, ok := f.next(buf[:0])
		if !ok {
			return
		}
		if _, err := f.conn.nc.Write(b); err != nil || last {
			return
		}
		buf = b
	}
}

// tryWrite writes what the connection takes at once and returns the rest.
func tryWrite(nc *net.TCPConn, b []byte) (rest []byte) {
	raw, err := nc.SyscallConn()
	if err != nil {
		return nil // closed: the reader of the connection settles the flow
	}
	rest = b
	raw.Write(func(fd uintptr) bool {
		n, err := writeOnce(int(fd), b)
		switch {
		case n > 0:
			rest = b[n:]
		case err != syscall.EAGAIN && err != syscall.EINTR:
			rest = nil
		}
		return true
	})
	return rest
}
