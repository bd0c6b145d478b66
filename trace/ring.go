package trace

// ring keeps the newest finished records in fixed slots, and finds them by each of their names. Its keeper locks.
type ring struct {
	slots []*Record
	n     uint64           // records ever put: the newest has number n
	names map[string]*link // the newest record of each name; its next is the oldest
}

// link is one record under one name. The links of a name form a circle in the order of arrival, so that the record
// to be evicted, the oldest of all, is found in one step however often a client reuses its id.
type link struct {
	rec  *Record
	next *link
}

func newRing(size int) ring {
	return ring{slots: make([]*Record, size), names: make(map[string]*link)}
}

// put adds a record in place of the oldest. The record's names must not change from now on.
func (g *ring) put(r *Record) {
	slot := g.n % uint64(len(g.slots))
	if old := g.slots[slot]; old != nil {
		old.eachName(func(name string) { g.unlink(name, old) })
	}
	g.slots[slot] = r
	g.n++
	r.eachName(func(name string) { g.link(name, r) })
}

func (g *ring) link(name string, r *Record) {
	l := &link{rec: r}
	if newest := g.names[name]; newest == nil {
		l.next = l
	} else {
		l.next = newest.next
		newest.next = l
	}
	g.names[name] = l
}

func (g *ring) unlink(name string, r *Record) {
	newest := g.names[name]
	if newest == nil || newest.next.rec != r {
		panic("BUG: ring: record is not the oldest of name=" + name)
	}
	if newest.next == newest {
		delete(g.names, name)
		return
	}
	newest.next = newest.next.next
}

// get returns the records of a name, newest first.
func (g *ring) get(name string) []*Record {
	out := g.collect(name, nil, func(*Record) bool { return true })
	if ours, ok := attemptOf(name); ok {
		out = g.collect(ours, out, func(r *Record) bool { return r.ID == ours && r.goesBy(name) })
	}
	return out
}

func (g *ring) collect(name string, out []*Record, keep func(*Record) bool) []*Record {
	newest := g.names[name]
	if newest == nil {
		return out
	}
	var rs []*Record
	for l := newest.next; ; l = l.next {
		if keep(l.rec) && !contains(out, l.rec) {
			rs = append(rs, l.rec)
		}
		if l == newest {
			break
		}
	}
	for i := len(rs) - 1; i >= 0; i-- {
		out = append(out, rs[i])
	}
	return out
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

// eachName calls f once for every name that leads to the record. What we sent upstream, "<id>-a1", is found through
// our id and needs no name.
func (r *Record) eachName(f func(string)) {
	f(r.ID)
	if r.ClientID != "" && r.ClientID != r.ID {
		f(r.ClientID)
	}
	for i, u := range r.UpstreamIDs {
		if u == "" || u == r.ID || u == r.ClientID || r.ownAttempt(u) || seenBefore(r.UpstreamIDs[:i], u) {
			continue
		}
		f(u)
	}
}

func (r *Record) ownAttempt(id string) bool {
	return len(id) > len(r.ID)+2 && id[:len(r.ID)] == r.ID && id[len(r.ID):len(r.ID)+2] == "-a"
}

func seenBefore(ids []string, id string) bool {
	for _, x := range ids {
		if x == id {
			return true
		}
	}
	return false
}
