package proxy

import "sync"

// byteBuffers reuses byte slices up to a size, so that one huge request does
// not stay in memory for good.
type byteBuffers struct {
	pool sync.Pool
	most int
}

var (
	requestHeads = byteBuffers{most: 64 << 10}
	editedBodies = byteBuffers{most: 1 << 20}
)

// get returns an empty slice. Its owner gives it back by put, once.
func (p *byteBuffers) get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, 2<<10)
}

func (p *byteBuffers) put(b []byte) {
	if cap(b) <= p.most {
		p.pool.Put(&b)
	}
}
