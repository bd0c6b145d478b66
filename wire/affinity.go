package wire

import (
	"bytes"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// leadingText is how many bytes of the system text, and as many of the first message, Affinity reads. Conversations that
// differ only after both share so much of the prompt that they may as well share an engine; and the cost does not depend
// on the size of the prompt.
const leadingText = 1024

// billingLine begins the line that Claude Code puts before its system prompt. It differs between conversations, in older
// versions between requests (MadAppGang/claudish pull 101, vllm-project/vllm pull 36829).
const billingLine = "x-anthropic-billing-header:"

// billingSlack is read on top of leadingText where such a line is taken away, so that its length does not matter.
const billingSlack = 256

// Affinity is a hash that is equal for requests that share the beginning of their prompt, so that the deployment that has
// it in its cache can be found again; 0 where there is nothing to hash. It is the same in every process. head is the one
// that was read from body.
//
// With a session it is the session's. Otherwise it is that of the texts of the system prompt and of the first message
// after it, leadingText bytes each, as the model gets them: neither escapes, blanks, the order of members, any other
// field nor the dialect matters. Tools are left out: mostly they follow from the system prompt. No more is read than those
// bytes and what stands before them.
func Affinity(head *Head, body []byte) uint64 {
	if head.Session != "" {
		return something(xxhash.Sum64String(head.Session))
	}
	var l leading
	if head.system > 0 {
		l.read(&cursor{b: body, i: head.system}, true)
	}
	if head.prompt > 0 {
		l.readPrompt(&cursor{b: body, i: head.prompt})
	}
	if l.n == l.marks {
		return 0
	}
	return something(xxhash.Sum64(l.text[:l.n]))
}

// something keeps 0 for nothing.
func something(hash uint64) uint64 { return max(hash, 1) }

// notePrompt keeps the place of the members that Affinity reads: they may stand behind all messages, and looking for them
// again would cost as much as reading the head.
func (h *Head) notePrompt(key []byte, at int) {
	name, apart := h.keys.prompt()
	switch {
	case name == "":
	case h.prompt == 0 && string(key) == name:
		h.prompt = at
	case apart && h.system == 0 && (string(key) == "system" || string(key) == "instructions"):
		h.system = at
	}
}

// prompt is the name of the member that has the prompt, empty in a dialect without one. apart: the system prompt is not
// in it.
func (k *requestKeys) prompt() (name string, apart bool) {
	switch {
	case k.metadata:
		return "messages", true
	case k.usageOption && k.session != "":
		return "messages", false
	case k.usageOption:
		return "prompt", false
	case k.session != "":
		return "input", true
	}
	return "", false
}

// leading is the beginning of a prompt: the system's text, a mark, the first message's text.
type leading struct {
	text   [2*leadingText + billingSlack + 1]byte // n of them; an array, because a slice of one would escape
	n      int
	marks  int  // bytes of text that are no text
	system int  // where the first message's text begins, once begun
	billed bool // a billing line was taken away
	begun  bool // the first message has been reached
}

// readPrompt reads the value of messages, input or prompt up to the end of the first message's text.
func (l *leading) readPrompt(c *cursor) {
	if c.peek() != '[' {
		l.readMessage(c)
		return
	}
	c.array()
	for !l.begun && c.element() {
		if c.peek() == '{' {
			l.readItem(c)
		} else { // one of several prompts, or of many token ids
			l.readMessage(&cursor{b: c.b, i: c.i})
		}
	}
}

// readItem reads a message, or an item of Responses that is none. System messages before all others are part of the
// system prompt.
func (l *leading) readItem(c *cursor) {
	c.object()
	known, system, content := false, false, 0
	for name, ok := c.key(); ok; name, ok = c.key() {
		c.peek()
		switch string(name) {
		case "role":
			role, _ := c.str()
			known, system = true, string(role) == "system" || string(role) == "developer"
			continue
		case "content":
			if known && !system { // no need to look for its end
				l.readMessage(c)
				return
			}
			content = c.i
		}
		c.skip()
	}
	switch part := (cursor{b: c.b, i: content}); {
	case content == 0:
	case system:
		l.read(&part, true)
	default:
		l.readMessage(&part)
	}
}

// readMessage reads the content of the first message.
func (l *leading) readMessage(c *cursor) {
	l.begun = true
	l.text[l.n] = 0
	l.n++
	l.marks++
	l.system = l.n
	l.read(c, false)
}

// read reads a content as far as there is room: a string, an array of parts with texts, or token ids. It does not care
// to come to the end of it.
func (l *leading) read(c *cursor, system bool) {
	switch ch := c.peek(); {
	case ch == '"':
		l.add(c.b[c.i+1:], system)
	case isDigit(ch) && !system:
		ids := c.b[c.i:]
		ids = ids[:min(len(ids), leadingText)]
		if end := bytes.IndexByte(ids, ']'); end >= 0 {
			ids = ids[:end]
		}
		l.n += copy(l.text[l.n:], ids)
	case ch == '[':
		c.array()
		for !l.full(system) && c.element() {
			switch ch := c.peek(); {
			case ch == '{':
				l.readPart(c, system)
			case isDigit(ch) && !system:
				l.read(c, system)
				return
			case ch == '"':
				l.add(c.b[c.i+1:], system)
				c.skip()
			default:
				c.skip()
			}
		}
	}
}

func isDigit(ch byte) bool { return '0' <= ch && ch <= '9' }

func (l *leading) readPart(c *cursor, system bool) {
	c.object()
	for name, ok := c.key(); ok; name, ok = c.key() {
		if c.peek() == '"' && string(name) == "text" {
			if l.add(c.b[c.i+1:], system); l.full(system) {
				return
			}
		}
		c.skip()
	}
}

// room is how long text may become.
func (l *leading) room(system bool) int {
	if system {
		return leadingText
	}
	return l.system + leadingText
}

func (l *leading) full(system bool) bool { return l.n >= l.room(system) }

// add takes in the text of the string that goes on with raw.
func (l *leading) add(raw []byte, system bool) {
	room := l.room(system)
	if !system || l.n > 0 || l.billed {
		l.n = len(appendText(l.text[:l.n], raw, room))
		return
	}
	text := appendText(l.text[:0], raw, room+billingSlack)
	if bytes.HasPrefix(text, []byte(billingLine)) {
		l.billed = true
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			text = text[:copy(text, text[end+1:])]
		} else {
			text = text[:0]
		}
	}
	l.n = min(len(text), room)
}

// appendText appends the text of the string that goes on with raw, up to its closing quote or until dst has room bytes.
// Other than appendDecoded it need not know the string's end, and may end inside a character. dst has room for a
// character more, so that it stays where it is.
func appendText(dst, raw []byte, room int) []byte {
	for i := 0; i < len(raw) && len(dst) < room; {
		from, end := i, min(len(raw), i+room-len(dst))
		for i < end && raw[i] != '"' && raw[i] != '\\' {
			i++
		}
		dst = append(dst, raw[from:i]...)
		if i == end {
			continue
		}
		if raw[i] == '"' {
			break
		}
		char, size := decodeEscape(raw[i:])
		dst = utf8.AppendRune(dst, char)
		i += size
	}
	return dst[:min(len(dst), room)]
}
