package h1

import "sync"

// blockSize is how much one read takes. 16 KiB holds one TLS record and about
// 80 events of 200 bytes; see BenchmarkNext for other sizes.
const blockSize = 16 << 10

// maxHead bounds an answer's head, and the one buffer that is larger than a block.
const maxHead = 64 << 10

type block [blockSize]byte

var blocks = sync.Pool{New: func() any { return new(block) }}

// inbox holds bytes that were read from a connection and not yet consumed:
// buf[lo:hi]. buf is nil while a call waits with nothing buffered.
type inbox struct {
	buf    []byte
	lo, hi int
}

func (in *inbox) unread() []byte { return in.buf[in.lo:in.hi] }

func (in *inbox) empty() bool { return in.lo == in.hi }

func (in *inbox) take() {
	in.buf = blocks.Get().(*block)[:]
	in.lo, in.hi = 0, 0
}

// drop gives the buffer back. A buffer that grew for a large head is left to
// the garbage collector.
func (in *inbox) drop() {
	if len(in.buf) == blockSize {
		blocks.Put((*block)(in.buf))
	}
	in.buf, in.lo, in.hi = nil, 0, 0
}

// makeRoom lets buf[hi:] take more of a head: it moves what is unread to the
// front, then grows. False: a head of maxHead bytes is in it already.
func (in *inbox) makeRoom() bool {
	if in.buf == nil || in.hi < len(in.buf) {
		return true
	}
	if in.lo > 0 {
		in.hi = copy(in.buf, in.unread())
		in.lo = 0
		return true
	}
	if len(in.buf) >= maxHead {
		return false
	}
	large := make([]byte, maxHead)
	n := copy(large, in.unread())
	in.drop()
	in.buf, in.hi = large, n
	return true
}
