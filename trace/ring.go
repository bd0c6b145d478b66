package trace

// ring keeps the newest finished records in fixed slots. Its keeper locks.
//
// It has no index: every request would pay for one that only a look-up by an
// operator uses, and looking at 20,000 records takes well under a millisecond.
type ring struct {
	slots []*Record
	n     uint64 // records ever put: the newest has number n
}

func newRing(size int) ring { return ring{slots: make([]*Record, size)} }

// put adds a record in place of the oldest.
func (g *ring) put(r *Record) {
	g.slots[g.n%uint64(len(g.slots))] = r
	g.n++
}

// newest returns all records, newest first, and the number of the first.
func (g *ring) newest() (rs []*Record, number uint64) {
	count := min(g.n, uint64(len(g.slots)))
	rs = make([]*Record, 0, count)
	for i := range count {
		rs = append(rs, g.slots[(g.n-1-i)%uint64(len(g.slots))])
	}
	return rs, g.n
}
