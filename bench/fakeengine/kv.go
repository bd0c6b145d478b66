package fakeengine

import "hash/maphash"

// block is one page of the KV cache. A block with no reference lies in the free list; if it still has a
// hash it can be found again until it is evicted.
type block struct {
	hash       uint64
	hashed     bool
	refs       int
	prev, next *block
}

// blockPool is the paged KV cache with its prefix cache. Guarded by the scheduler's mutex.
type blockPool struct {
	total  int
	free   int
	head   block // ring of free blocks, next eviction first
	hashes map[uint64]*block
	cache  bool
}

func newBlockPool(total int, cache bool) *blockPool {
	p := &blockPool{total: total, hashes: make(map[uint64]*block), cache: cache}
	p.head.prev, p.head.next = &p.head, &p.head
	for range total {
		p.pushFree(&block{})
	}
	return p
}

func (p *blockPool) pushFree(b *block) {
	at := &p.head
	if !b.hashed { // blocks worth nothing are taken first
		at = p.head.next
	}
	b.prev, b.next = at.prev, at
	at.prev.next = b
	at.prev = b
	p.free++
}

func (p *blockPool) unlink(b *block) {
	b.prev.next, b.next.prev = b.next, b.prev
	b.prev, b.next = nil, nil
	p.free--
}

// used is the share of blocks that a running sequence holds.
func (p *blockPool) used() float64 { return float64(p.total-p.free) / float64(p.total) }

// lookup takes the longest cached run of blocks from the front of hashes.
func (p *blockPool) lookup(hashes []uint64) []*block {
	if !p.cache {
		return nil
	}
	var found []*block
	for _, h := range hashes {
		b := p.hashes[h]
		if b == nil {
			break
		}
		if b.refs == 0 {
			p.unlink(b)
		}
		b.refs++
		found = append(found, b)
	}
	return found
}

// take gives n empty blocks, or nil when the pool has fewer.
func (p *blockPool) take(n int) ([]*block, bool) {
	if n > p.free {
		return nil, false
	}
	taken := make([]*block, 0, n)
	for range n {
		b := p.head.next
		p.unlink(b)
		if b.hashed {
			delete(p.hashes, b.hash)
			b.hashed = false
		}
		b.refs = 1
		taken = append(taken, b)
	}
	return taken, true
}

// publish makes computed prompt blocks findable.
func (p *blockPool) publish(blocks []*block, hashes []uint64) {
	if !p.cache {
		return
	}
	for i, h := range hashes {
		if i >= len(blocks) {
			return
		}
		if b := blocks[i]; !b.hashed && p.hashes[h] == nil {
			b.hash, b.hashed = h, true
			p.hashes[h] = b
		}
	}
}

// release gives blocks back, the last one first, so that the tail of a prompt is evicted before its front.
func (p *blockPool) release(blocks []*block) {
	for i := len(blocks) - 1; i >= 0; i-- {
		b := blocks[i]
		if b.refs--; b.refs == 0 {
			p.pushFree(b)
		} else if b.refs < 0 {
			panic("BUG: KV block released twice")
		}
	}
}

// blockHashes returns the chained hashes of the full blocks of a prompt.
func blockHashes(seed maphash.Seed, prompt []byte) []uint64 {
	const blockBytes = blockTokens * tokenBytes
	out := make([]uint64, 0, len(prompt)/blockBytes)
	var h maphash.Hash
	h.SetSeed(seed)
	for len(prompt) >= blockBytes {
		_, _ = h.Write(prompt[:blockBytes]) // the state is not reset: each hash covers all bytes before it
		out = append(out, h.Sum64())
		prompt = prompt[blockBytes:]
	}
	return out
}
