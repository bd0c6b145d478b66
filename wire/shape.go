package wire

import (
	"bytes"

	"tracegate/sse"
)

// Most events of a stream differ from the one before only in the generated text. A shape is such an event with holes
// in place of its variable parts. An event that fits a shape is content without being scanned: what is in the holes is
// one whole string or one row of digits, all else is equal byte by byte, so the event means the same as the one the
// shape was taken from.

type hole uint8

const (
	textHole   hole = iota // the generated text, not empty
	padHole                // a string of no meaning (OpenAI's obfuscation)
	numberHole             // a sequence number
)

const (
	maxHoles = 3
	maxShape = 2 << 10 // bytes of the fixed parts; a larger event is scanned each time
)

// mark is a hole found while an event is scanned: data[from:to] is the inside of a string, or digits.
type mark struct {
	from, to int
	hole     hole
}

// marks collects the holes of one event.
type marks struct {
	at  [maxHoles]mark
	n   int
	bad bool // more of them than a shape has room for, or two texts
}

func (m *marks) add(from, to int, h hole) {
	if m.n == maxHoles {
		m.bad = true
		return
	}
	i := m.n
	for ; i > 0 && m.at[i-1].from > from; i-- {
		m.at[i] = m.at[i-1]
	}
	m.at[i] = mark{from, to, h}
	m.n++
}

// text notes a string that the cursor has just read as generated text and returns whether it is any.
func (m *marks) text(c *cursor, raw []byte, ok bool) Kind {
	if !ok || len(raw) == 0 {
		return 0
	}
	for i := range m.n {
		m.bad = m.bad || m.at[i].hole == textHole
	}
	m.add(c.i-1-len(raw), c.i-1, textHole)
	return Content
}

// pad reads a string of no meaning.
func (m *marks) pad(c *cursor) {
	if raw, ok := c.str(); ok {
		m.add(c.i-1-len(raw), c.i-1, padHole)
	}
}

// shape is one learned event.
type shape struct {
	fixed []byte            // the parts between the holes, one after the other
	ends  [maxHoles + 1]int // where each part ends in fixed
	holes [maxHoles]hole
	n     int // number of holes; 0 = nothing learned
}

// learn makes s the shape of data.
func (s *shape) learn(data []byte, m *marks) {
	s.n = 0
	if m.bad || m.n == 0 || len(data) > maxShape {
		return
	}
	s.fixed = s.fixed[:0]
	from := 0
	for i := range m.n {
		s.fixed = append(s.fixed, data[from:m.at[i].from]...)
		s.ends[i] = len(s.fixed)
		s.holes[i] = m.at[i].hole
		from = m.at[i].to
	}
	s.fixed = append(s.fixed, data[from:]...)
	s.ends[m.n] = len(s.fixed)
	s.n = m.n
}

// fits reports whether data has the shape; sequence is the number in its number hole, -1 if it has none.
func (s *shape) fits(data []byte) (sequence int64, ok bool) {
	sequence = -1
	if s.n == 0 || len(data) <= len(s.fixed) {
		return 0, false
	}
	at := s.ends[0]
	if !bytes.Equal(data[:at], s.fixed[:at]) {
		return 0, false
	}
	for i := 0; i < s.n; i++ {
		if s.holes[i] == numberHole {
			begin := at
			for sequence = 0; at < len(data) && data[at]-'0' < 10; at++ {
				sequence = sequence*10 + int64(data[at]-'0')
			}
			if at == begin || at-begin > 18 {
				return 0, false
			}
		} else {
			end := stringEnd(data, at-1) - 1 // the fixed part before it ends with the opening quote
			if end < at || end == at && s.holes[i] == textHole {
				return 0, false
			}
			at = end
		}
		part := s.fixed[s.ends[i]:s.ends[i+1]]
		rest := data[at:]
		if len(rest) < len(part) || !bytes.Equal(rest[:len(part)], part) {
			return 0, false
		}
		at += len(part)
	}
	return sequence, at == len(data)
}

// shapeSet is the two shapes learned last: two choices, or text and reasoning, often take turns.
type shapeSet struct {
	of   [2]shape
	last uint8 // the one that fitted last
}

// match returns Content if the event fits a learned shape, else 0.
func (o *Observation) match(ev *sse.Event) Kind {
	if len(ev.Name) == len("error") || ev.Stray != nil {
		return 0
	}
	set := &o.shapes
	sequence, ok := set.of[set.last].fits(ev.Data)
	if !ok {
		if sequence, ok = set.of[1-set.last].fits(ev.Data); !ok {
			return 0
		}
		set.last = 1 - set.last
	}
	if sequence >= 0 {
		o.Sequence = sequence
	}
	return Content
}

// learn keeps the shape of an event that was content and nothing else.
func (o *Observation) learn(k Kind, data []byte, m *marks) {
	if k != Content || m.bad {
		return
	}
	set := &o.shapes
	set.last = 1 - set.last
	set.of[set.last].learn(data, m)
}

func (set *shapeSet) emptied() shapeSet {
	var e shapeSet
	for i := range e.of {
		e.of[i].fixed = set.of[i].fixed[:0]
	}
	return e
}
