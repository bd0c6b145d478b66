// Package sse answers: where does one event end and the next begin?
//
// It owns the incremental reading of a text/event-stream body after the WHATWG standard: the three line ends, mixed and
// split anywhere, the byte order mark, fields, comments, and the knowledge of where between two events bytes may be cut
// or inserted.
//
// A Parser belongs to one stream and is used by one goroutine at a time; it may be reused after Reset.
//
// It never changes, delays or refuses a byte: it reads a copy of what others forward, and an event that is too large to
// be held in memory is skipped for inspection only. It knows nothing of JSON or of any API dialect.
package sse

import "bytes"

// MaxInspect bounds the memory of one event, in bytes of its lines without line ends and comments. A larger event is
// still found and reported, with Oversize set and without its data.
const MaxInspect = 16 << 20

// keepBuffer is the largest buffer that survives Reset.
const keepBuffer = 64 << 10

const byteOrderMark = "\xef\xbb\xbf"

// Event is one event block of the stream. The slices point into the bytes given to Next or into the Parser; they are
// valid until the next call of Next, End or Reset.
type Event struct {
	// Name is the value of the last event: field, nil when there was none or when it was empty.
	Name []byte
	// Data holds the values of the data: fields joined by LF, nil when there was no data: field.
	Data []byte
	// ID is the value of the block's id: field, nil when there was none.
	ID []byte
	// Stray holds lines that are no field of the standard, from the first one that begins with '{' on. Some gateways
	// write a bare JSON error body into an event stream; the standard would drop it silently.
	Stray []byte
	// Oversize says that the block was larger than MaxInspect. Name and ID are those that came before the limit.
	Oversize bool
}

// Parser finds events in the pieces of a stream. The zero value is ready for a new stream.
type Parser struct {
	line     []byte // an open line's bytes from earlier calls; empty for comments and oversize events
	data     field
	name     field
	id       field
	stray    field
	size     int  // bytes of the open block's finished lines
	safe     int  // see Safe
	skipped  int  // see Skipped
	mark     int  // bytes of the byte order mark matched so far; 3 = its place is behind us
	lineOpen bool // at least one byte of a line was read, but not its end
	comment  bool // that line is a comment
	block    bool // a line that is no comment was begun since the last blank line
	over     bool // the open block is larger than MaxInspect
	cr       bool // the last byte was a CR that ended a line: a LF that follows belongs to it
	crs      bool // the last line ended with CR: look for it first
	reported bool // the fields belong to the event that the last call returned
}

// Next reads b up to and including the end of one event block. n is the number of bytes read; n == len(b) when ok is
// false. ok is true when the byte before n completed a block with data, a name, a stray line or too many bytes. Blocks
// of comments, ids or retry hints alone, and blank lines, are read without being reported.
//
// Call it again with b[n:] until b is used up; an event inside b with one data line is not copied.
func (p *Parser) Next(b []byte) (ev Event, n int, ok bool) {
	p.safe = 0
	if p.reported {
		p.clear()
	}
	if p.cr || p.mark < len(byteOrderMark) {
		n = p.lead(b)
	}
	for n < len(b) {
		end := p.endOfLine(b[n:])
		if end < 0 {
			p.hold(b[n:])
			n = len(b)
			break
		}
		line := b[n : n+end]
		n += end + 1
		if p.crs {
			n += p.pairLF(b, n)
		}
		if len(line) > 0 || p.lineOpen {
			p.endLine(line)
			if !p.block {
				p.safe = n // a comment line outside of an event block
			}
			continue
		}
		p.safe = n
		p.block = false
		if p.data.has || p.name.has || p.stray.has || p.over {
			p.reported = true
			return p.event(), n, true
		}
		p.clear()
	}
	if p.block {
		p.park()
	}
	return Event{}, n, false
}

// Safe returns the offset in the last b given to Next up to which everything is complete: events, blank lines, and
// comment lines outside of an event block. 0 means that nothing was completed inside this b. A caller that writes
// only up to Safe and holds the rest back never sends a part of an event. A CR at the end of b counts as complete; if
// the LF of the pair comes in the next b, it is safe at once.
//
// Safe follows the bytes read, whatever the caller did with them: a caller that gave up holding an oversize event back
// and forwarded its bytes may go on using Safe for the next one.
func (p *Parser) Safe() int { return p.safe }

// AtBoundary reports whether bytes may be inserted after those read so far: no event, comment or byte order mark is
// half read, and the last byte is not a CR which a LF may follow.
func (p *Parser) AtBoundary() bool {
	return !p.block && !p.lineOpen && !p.cr && (p.mark == 0 || p.mark == len(byteOrderMark))
}

// Skipped returns how many events of this stream were larger than MaxInspect.
func (p *Parser) Skipped() int { return p.skipped }

// End ends the stream. An unfinished event is dropped, as the standard says, but stray lines (see Event.Stray) are
// reported even when nothing ends them, because the writer of a bare error body closes the connection after it. The
// Parser is then ready for a new stream, as after Reset.
func (p *Parser) End() (ev Event, ok bool) {
	if p.reported {
		p.clear()
	}
	if p.lineOpen && !p.comment && !p.over && (p.stray.has || p.line[0] == '{') {
		p.endLine(nil)
		p.park()
	}
	if p.stray.has && !p.over {
		ev, ok = Event{Stray: p.stray.val}, true
	}
	p.Reset()
	return ev, ok
}

// Reset makes the Parser ready for a new stream and gives large buffers back.
func (p *Parser) Reset() {
	*p = Parser{
		line: reusable(p.line),
		data: field{buf: reusable(p.data.buf)}, name: field{buf: reusable(p.name.buf)},
		id: field{buf: reusable(p.id.buf)}, stray: field{buf: reusable(p.stray.buf)},
	}
}

func reusable(buf []byte) []byte {
	if cap(buf) > keepBuffer {
		return nil
	}
	return buf[:0]
}

// lead reads what only the beginning of b can hold: the LF of a CRLF whose CR ended the last b, or a part of the byte
// order mark. It returns the number of bytes read.
func (p *Parser) lead(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	if p.cr {
		p.cr = false
		if b[0] != '\n' {
			return 0
		}
		if !p.block && !p.lineOpen {
			p.safe = 1
		}
		return 1
	}
	for n := 0; n < len(b); n++ {
		if b[n] != byteOrderMark[p.mark] {
			part := byteOrderMark[:p.mark]
			p.mark = len(byteOrderMark)
			p.hold([]byte(part)) // it was no mark but the beginning of a line
			return n
		}
		if p.mark++; p.mark == len(byteOrderMark) {
			p.safe = n + 1
			return n + 1
		}
	}
	return len(b)
}

// endOfLine returns the index of the first CR or LF of b, or -1. It searches for the kind seen last first, and for the
// other one only before it, so that a read full of short lines is not searched to its end for each of them.
func (p *Parser) endOfLine(b []byte) int {
	first, second := byte('\n'), byte('\r')
	if p.crs {
		first, second = second, first
	}
	i := bytes.IndexByte(b, first)
	if i < 0 {
		i = len(b)
	}
	if j := bytes.IndexByte(b[:i], second); j >= 0 {
		p.crs = !p.crs
		return j
	}
	if i == len(b) {
		return -1
	}
	return i
}

// pairLF is called after a line end by CR at b[n-1]. It returns 1 if a LF of the pair follows, and notes a CR at the
// end of b.
func (p *Parser) pairLF(b []byte, n int) int {
	if n == len(b) {
		p.cr = true
		return 0
	}
	if b[n] == '\n' {
		return 1
	}
	return 0
}

// hold keeps the beginning of a line whose end is not in b.
func (p *Parser) hold(part []byte) {
	if len(part) == 0 {
		return
	}
	if !p.lineOpen {
		p.lineOpen = true
		p.comment = part[0] == ':'
		p.block = p.block || !p.comment
	}
	if p.comment || p.over || p.overflows(len(p.line)+len(part)) {
		return
	}
	p.line = append(p.line, part...)
}

// endLine takes in a line of which rest is the part found in b.
func (p *Parser) endLine(rest []byte) {
	if !p.lineOpen {
		if rest[0] == ':' {
			return
		}
		p.block = true
		if !p.over && !p.overflows(len(rest)) {
			p.size += len(rest)
			p.take(rest, false)
		}
		return
	}
	p.lineOpen = false
	if p.comment || p.over || p.overflows(len(p.line)+len(rest)) {
		p.comment = false
		return
	}
	p.line = append(p.line, rest...)
	p.size += len(p.line)
	p.take(p.line, true)
	p.line = p.line[:0]
}

// overflows reports whether a line of n bytes makes the open block larger than MaxInspect, and if so drops what was
// collected of it.
func (p *Parser) overflows(n int) bool {
	if p.size+n <= MaxInspect {
		return false
	}
	p.over = true
	p.skipped++
	p.line = nil
	p.data = field{}
	p.stray = field{}
	return true
}

// take reads one complete line that is not empty and no comment. held says that it lies in p.line.
func (p *Parser) take(line []byte, held bool) {
	switch line[0] {
	case 'd':
		if v, ok := value(line, "data"); ok {
			if held && !p.data.has { // a large line is not copied twice
				p.data, p.line = field{val: v, buf: p.line, has: true, kept: true}, p.data.buf
				return
			}
			p.data.add(v, held)
			return
		}
	case 'e':
		if v, ok := value(line, "event"); ok {
			p.name.has = false // the last one counts
			if len(v) > 0 {
				p.name.add(v, held)
			}
			return
		}
	case 'i':
		if v, ok := value(line, "id"); ok {
			if bytes.IndexByte(v, 0) < 0 {
				p.id.has = false
				p.id.add(v, held)
			}
			return
		}
	case '{':
		p.stray.add(line, held)
		return
	}
	if p.stray.has {
		p.stray.add(line, held)
	}
}

// value returns the value of the line if its field is called name.
func value(line []byte, name string) ([]byte, bool) {
	if len(line) < len(name) || string(line[:len(name)]) != name {
		return nil, false
	}
	v := line[len(name):]
	if len(v) == 0 {
		return v, true
	}
	if v[0] != ':' {
		return nil, false
	}
	if v = v[1:]; len(v) > 0 && v[0] == ' ' {
		v = v[1:]
	}
	return v, true
}

func (p *Parser) event() Event {
	ev := Event{Oversize: p.over}
	if p.data.has {
		ev.Data = p.data.val
	}
	if p.name.has {
		ev.Name = p.name.val
	}
	if p.id.has {
		ev.ID = p.id.val
	}
	if p.stray.has {
		ev.Stray = p.stray.val
	}
	return ev
}

// clear forgets the block that has ended.
func (p *Parser) clear() {
	p.data.has, p.name.has, p.id.has, p.stray.has = false, false, false, false
	p.size, p.over, p.reported = 0, false, false
}

// park copies what points into b, because b is the caller's again after the call.
func (p *Parser) park() {
	p.data.keep()
	p.name.keep()
	p.id.keep()
	p.stray.keep()
}

// field is one value being collected. It points into the caller's bytes as long as it can.
type field struct {
	val  []byte
	buf  []byte
	has  bool
	kept bool // val is the tail of buf
}

// add sets the value, or joins v to it by LF. foreign says that v will be overwritten soon.
func (f *field) add(v []byte, foreign bool) {
	if !f.has {
		f.val, f.has, f.kept = v, true, false
		if foreign {
			f.keep()
		}
		return
	}
	f.keep()
	begin := len(f.buf) - len(f.val)
	f.buf = append(append(f.buf, '\n'), v...)
	f.val = f.buf[begin:]
}

// keep makes the value independent of the caller's bytes.
func (f *field) keep() {
	if f.has && !f.kept {
		if f.buf == nil {
			f.buf = make([]byte, 0, 64) // an empty value must not become an absent one
		}
		f.buf = append(f.buf[:0], f.val...)
		f.val, f.kept = f.buf, true
	}
}
