package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
)

// maxDepth bounds the nesting of a JSON text that is read.
const maxDepth = 1024

// longString is the length from which a skipped string is looked at as a possible blob; see cursor.opaque.
const longString = 1024

// cursor walks one JSON text from its beginning to its end, once, without allocating. It checks the punctuation, the
// literals and that strings end; it does not check the characters of strings or the exact form of numbers, which do
// not change what belongs to what. After the first error every method returns at once and bad is set.
type cursor struct {
	b      []byte
	i      int
	fresh  bool // the last thing read was the opening of an object or array
	bad    bool
	at     int    // where it went wrong
	why    string // what was expected there
	opaque int    // bytes of base64 blobs skipped
	blobs  int    // their number
}

func (c *cursor) fail(why string) {
	if !c.bad {
		c.bad, c.at, c.why = true, c.i, why
	}
	c.i = len(c.b)
}

func (c *cursor) failAtEnd(why string) {
	c.i = len(c.b)
	c.fail(why)
}

// peek skips blanks and returns the next byte, 0 at the end.
func (c *cursor) peek() byte {
	if c.i < len(c.b) && c.b[c.i] > ' ' {
		return c.b[c.i]
	}
	return c.peekOverBlanks()
}

func (c *cursor) peekOverBlanks() byte {
	for c.i < len(c.b) {
		switch ch := c.b[c.i]; ch {
		case ' ', '\n', '\t', '\r':
			c.i++
		default:
			return ch
		}
	}
	return 0
}

// object reads the opening of an object. If the next value is something else it is skipped and object returns false.
func (c *cursor) object() bool { return c.enter('{') }

// array does the same for an array.
func (c *cursor) array() bool { return c.enter('[') }

func (c *cursor) enter(open byte) bool {
	if c.peek() != open || c.bad {
		c.skip()
		return false
	}
	c.i++
	c.fresh = true
	return true
}

// key reads up to the value of the object's next member and returns the raw text between the quotes of its name. At
// the end of the object it reads the closing and returns false. The value must be read or skipped before the next call.
func (c *cursor) key() ([]byte, bool) {
	if !c.more('}') {
		return nil, false
	}
	if c.peek() != '"' {
		c.fail("expected a member name in quotes")
		return nil, false
	}
	from := c.i + 1
	end := stringEnd(c.b, c.i)
	if end < 0 {
		c.failAtEnd("a string without end")
		return nil, false
	}
	c.i = end
	if c.peek() != ':' {
		c.fail("expected ':' after a member name")
		return nil, false
	}
	c.i++
	c.fresh = false
	return c.b[from : end-1], true
}

// element reads up to the array's next element; at the end of the array it reads the closing and returns false.
func (c *cursor) element() bool {
	more := c.more(']')
	c.fresh = false
	return more
}

// more reads the comma before the next member or element, or the closing.
func (c *cursor) more(closing byte) bool {
	if c.bad {
		return false
	}
	ch := c.peek()
	if ch == closing {
		c.i++
		c.fresh = false
		return false
	}
	if c.fresh {
		return true
	}
	if ch != ',' {
		c.fail("expected ',' or the end of an object or array")
		return false
	}
	c.i++
	return true
}

// str reads a string and returns the raw text between its quotes, with its escapes. Another value is skipped.
func (c *cursor) str() ([]byte, bool) {
	if c.peek() != '"' {
		c.skip()
		return nil, false
	}
	from := c.i + 1
	end := stringEnd(c.b, c.i)
	if end < 0 {
		c.failAtEnd("a string without end")
		return nil, false
	}
	c.i = end
	return c.b[from : end-1], true
}

// integer reads a whole number. Another value is skipped.
func (c *cursor) integer() (int64, bool) {
	c.peek()
	from := c.i
	c.skip()
	if c.bad {
		return 0, false
	}
	return parseInteger(c.b[from:c.i])
}

func parseInteger(text []byte) (n int64, ok bool) {
	negative := len(text) > 1 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	if len(text) == 0 || len(text) > 18 {
		return 0, false
	}
	for _, ch := range text {
		if ch < '0' || ch > '9' {
			return 0, false
		}
		n = n*10 + int64(ch-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

// number reads any number. Another value is skipped.
func (c *cursor) number() (float64, bool) {
	c.peek()
	from := c.i
	c.skip()
	if c.bad {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(c.b[from:c.i]), 64)
	return f, err == nil
}

// skip reads one value of any kind.
func (c *cursor) skip() {
	switch c.peek() {
	case '"':
		c.skipString()
	case '{', '[':
		c.skipNested()
	default:
		c.skipScalar()
	}
	c.fresh = false
}

func (c *cursor) skipString() {
	end := stringEnd(c.b, c.i)
	if end < 0 {
		c.failAtEnd("a string without end")
		return
	}
	if end-c.i > longString && isBlob(c.b[c.i+1:end-1]) {
		c.opaque += end - c.i
		c.blobs++
	}
	c.i = end
}

func (c *cursor) skipScalar() {
	if c.i == len(c.b) {
		c.fail("expected a value")
		return
	}
	literal := ""
	switch ch := c.b[c.i]; {
	case ch == '-' || '0' <= ch && ch <= '9':
		for c.i++; c.i < len(c.b) && inNumber[c.b[c.i]]; c.i++ {
		}
		return
	case ch == 't':
		literal = "true"
	case ch == 'f':
		literal = "false"
	case ch == 'n':
		literal = "null"
	}
	if literal == "" || len(c.b)-c.i < len(literal) || string(c.b[c.i:c.i+len(literal)]) != literal {
		c.fail("expected a value")
		return
	}
	c.i += len(literal)
}

var inNumber = [256]bool{'0': true, '1': true, '2': true, '3': true, '4': true, '5': true, '6': true, '7': true,
	'8': true, '9': true, '+': true, '-': true, '.': true, 'e': true, 'E': true}

// skipNested reads an object or array with all that is in it.
func (c *cursor) skipNested() {
	var objects [maxDepth / 64]uint64 // which open brackets are objects
	depth := 0
	for {
		// At a value.
		ch := c.peek()
		if ch == '{' || ch == '[' {
			if depth == maxDepth {
				c.fail("nested too deep")
				return
			}
			if ch == '{' {
				objects[depth/64] |= 1 << (depth % 64)
			} else {
				objects[depth/64] &^= 1 << (depth % 64)
			}
			depth++
			c.i++
			c.fresh = true
		} else if ch == '"' {
			c.skipString()
			c.fresh = false
		} else {
			c.skipScalar()
			c.fresh = false
		}
		// After a value, or after an opening: up to the next value, or out.
		for {
			if c.bad || depth == 0 {
				return
			}
			more := false
			if objects[(depth-1)/64]&(1<<((depth-1)%64)) != 0 {
				_, more = c.key()
			} else {
				more = c.element()
			}
			if more {
				break
			}
			depth--
		}
	}
}

// stringEnd returns the index after the closing quote of the string whose opening quote is b[i], -1 if it has none.
func stringEnd(b []byte, i int) int {
	begin := i + 1
	n := nextQuote(b[begin:])
	for i = begin; n >= 0; n = bytes.IndexByte(b[i:], '"') {
		i += n + 1
		if b[i-2] != '\\' || backslashes(b[begin:i-1])%2 == 0 {
			return i
		}
	}
	return -1
}

// nextQuote returns the index of the first '"' in b, -1 if there is none. Names and words are short, so it looks at two
// words of 8 bytes before it calls for the long search.
func nextQuote(b []byte) int {
	const (
		ones   = 0x0101010101010101
		highs  = 0x8080808080808080
		quotes = '"' * ones
	)
	if len(b) < 16 {
		return bytes.IndexByte(b, '"')
	}
	x := binary.LittleEndian.Uint64(b) ^ quotes
	if found := (x - ones) &^ x & highs; found != 0 {
		return bits.TrailingZeros64(found) / 8
	}
	x = binary.LittleEndian.Uint64(b[8:]) ^ quotes
	if found := (x - ones) &^ x & highs; found != 0 {
		return 8 + bits.TrailingZeros64(found)/8
	}
	n := bytes.IndexByte(b[16:], '"')
	if n < 0 {
		return -1
	}
	return 16 + n
}

// backslashes returns how many of them b ends with.
func backslashes(b []byte) (n int) {
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return n
}
