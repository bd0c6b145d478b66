package load

import (
	"bytes"

	"tracegate/sse"
)

// check compares the decoded body of one answer with its script while it arrives. As long as the bytes are exactly those that the
// upstream wrote, every token is seen at once; from the first difference on the rest is kept, and judged when the answer has ended.
type check struct {
	script *script
	id     int64
	whole  bool
	done   int    // tokens seen
	ended  bool   // the last piece was seen
	carry  []byte // the beginning of a piece whose rest has not arrived; after a difference: everything
	differ bool
	seen   func(index int64, s slots) // a token in its place
}

// verdict is what is wrong with an answer; the zero value is an exact one.
type verdict struct {
	changed   bool // a byte differs from what the upstream wrote
	tokens    bool // a token is missing, repeated or out of order
	crossTalk bool // a token of another request
	noEnd     bool // the terminal event is missing
}

const maxKept = 8 << 20

func (c *check) start(s *script, id int64, whole bool) {
	*c = check{script: s, id: id, whole: whole, carry: c.carry[:0], seen: c.seen}
}

// expect is the next piece and its index; nil after the end.
func (c *check) expect() (p *piece, index int64) {
	s := c.script
	switch {
	case c.ended:
		return nil, 0
	case c.whole:
		return &s.whole, 0
	case c.done == 0:
		return &s.first, 0
	case c.done < s.n:
		return &s.token, int64(c.done)
	}
	return &s.last, int64(s.n)
}

func (c *check) feed(b []byte) {
	for len(b) > 0 && !c.differ {
		p, index := c.expect()
		if p == nil {
			c.differ = true
			break
		}
		unit := b
		if need := len(p.text) - len(c.carry); len(c.carry) > 0 || len(b) < need {
			take := min(need, len(b))
			c.carry = append(c.carry, b[:take]...)
			b = b[take:]
			if take < need {
				return
			}
			unit = c.carry
		}
		s, ok := p.match(unit[:len(p.text)], c.id, index)
		if !ok {
			c.differ = true
			break
		}
		if len(c.carry) > 0 {
			c.carry = c.carry[:0]
		} else {
			b = b[len(p.text):]
		}
		c.accept(p, index, s)
	}
	if c.differ && len(c.carry) < maxKept {
		c.carry = append(c.carry, b...)
	}
}

func (c *check) accept(p *piece, index int64, s slots) {
	if p == &c.script.last {
		c.ended = true
		return
	}
	c.done++
	c.ended = c.whole
	if c.seen != nil {
		c.seen(index, s)
	}
}

// finish judges an answer whose transfer ended. cut: before its framing said so.
func (c *check) finish(cut bool) (v verdict) {
	if !c.differ {
		v.noEnd = !c.ended
		v.tokens = c.done != c.script.n && !c.whole
		return v
	}
	v.changed = true
	next, want := int64(c.done), int64(c.script.n)
	count := func(text []byte) {
		for id, index, rest, found := nextMark(text); found; id, index, rest, found = nextMark(rest) {
			v.crossTalk = v.crossTalk || id != c.id
			v.tokens = v.tokens || index != next
			next++
		}
	}
	if c.whole {
		want = 1
		count(c.carry)
	} else {
		c.ended = c.events(count) || c.ended
	}
	v.tokens = v.tokens || next != want
	v.noEnd = cut || !c.ended && !c.whole
	return v
}

// events reads what was kept as a client would, and reports whether the terminal event was dispatched.
func (c *check) events(each func(data []byte)) (terminal bool) {
	var p sse.Parser
	last := []byte(terminalMark(c.script.dialect))
	for b := c.carry; len(b) > 0; {
		ev, n, ok := p.Next(b)
		if ok {
			each(ev.Data)
			terminal = terminal || bytes.Contains(ev.Data, last)
		}
		b = b[n:]
	}
	return terminal
}

var mark = newPiece(tokenMark)

// nextMark finds the next tokenMark in b.
func nextMark(b []byte) (id, index int64, rest []byte, found bool) {
	for {
		i := bytes.Index(b, []byte("~T"))
		if i < 0 || len(b)-i < len(mark.text) {
			return 0, 0, nil, false
		}
		m := b[i : i+len(mark.text)]
		b = b[i+2:]
		_, stamp := getDigits(m[mark.holes[0].at:][:mark.holes[0].width])
		id, idOK := getDigits(m[mark.holes[1].at:][:mark.holes[1].width])
		index, indexOK := getDigits(m[mark.holes[2].at:][:mark.holes[2].width])
		if stamp && idOK && indexOK && m[len(m)-1] == '~' {
			return id, index, b, true
		}
	}
}
