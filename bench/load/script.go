package load

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
)

// Dialects that the load can speak.
var Dialects = []string{"chat", "messages", "responses"}

func dialectPath(dialect string) string {
	switch dialect {
	case "chat":
		return "/v1/chat/completions"
	case "messages":
		return "/v1/messages"
	case "responses":
		return "/v1/responses"
	}
	return ""
}

// terminalMark is in the last event of a complete stream and nowhere else.
func terminalMark(dialect string) string {
	return map[string]string{"chat": "[DONE]", "messages": `"message_stop"`, "responses": `"response.completed"`}[dialect]
}

// slots are the numbers inside an answer that differ between requests and tokens. Each has a fixed width, so that both sides know
// the length of every piece, and a piece is compared as a few long runs of bytes.
type slots struct {
	received int64 // {R} when the upstream had read the whole request
	stamp    int64 // {T} just before this token was written
	id       int64 // {I} the request
	index    int64 // {K} the token; {S} is 1,000,000 + index, a sequence number without leading zeros
}

const sequenceBase = 1_000_000

var slotWidth = map[byte]int{'R': 19, 'T': 19, 'I': 10, 'K': 5, 'S': 7}

// tokenMark is the text of a token. It survives a gateway that writes the event anew.
const tokenMark = "~T{T}~I{I}~K{K}~"

type hole struct {
	at, width int
	kind      byte
}

// piece is a stretch of bytes with holes for the slots.
type piece struct {
	text  []byte
	holes []hole
}

func newPiece(tpl string) piece {
	var p piece
	for i := 0; i < len(tpl); i++ {
		if tpl[i] == '{' && i+2 < len(tpl) && tpl[i+2] == '}' {
			if w := slotWidth[tpl[i+1]]; w > 0 {
				p.holes = append(p.holes, hole{len(p.text), w, tpl[i+1]})
				p.text = append(p.text, strings.Repeat("0", w)...)
				i += 2
				continue
			}
		}
		p.text = append(p.text, tpl[i])
	}
	return p
}

func (p piece) appendTo(dst []byte, s slots) []byte {
	base := len(dst)
	dst = append(dst, p.text...)
	for _, h := range p.holes {
		putDigits(dst[base+h.at:base+h.at+h.width], s.value(h.kind))
	}
	return dst
}

func (s slots) value(kind byte) int64 {
	switch kind {
	case 'R':
		return s.received
	case 'T':
		return s.stamp
	case 'I':
		return s.id
	case 'K':
		return s.index
	}
	return sequenceBase + s.index
}

// match reports whether b, of the piece's length, is the piece with this id and index, and reads the two times.
func (p piece) match(b []byte, id, index int64) (s slots, ok bool) {
	from := 0
	want := slots{id: id, index: index}
	for _, h := range p.holes {
		if !bytes.Equal(b[from:h.at], p.text[from:h.at]) {
			return s, false
		}
		from = h.at + h.width
		v, digits := getDigits(b[h.at:from])
		switch h.kind {
		case 'R':
			s.received = v
		case 'T':
			s.stamp = v
		default:
			digits = digits && v == want.value(h.kind)
		}
		if !digits {
			return s, false
		}
	}
	return s, bytes.Equal(b[from:], p.text[from:])
}

func putDigits(b []byte, v int64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + v%10)
		v /= 10
	}
}

func getDigits(b []byte) (v int64, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	return v, true
}

// script is an answer of n tokens in one dialect, known to the upstream that writes it and to the load that checks it.
type script struct {
	dialect string
	n       int
	// The decoded body of a stream is first (opening events and token 0), n-1 times token, last.
	first, token, last piece
	whole              piece // the body of an answer without stream
	// The same as the upstream writes it: with the head, and one HTTP chunk for each event.
	firstWire, tokenWire, lastWire, wholeWire piece
}

var scripts sync.Map // of *script by [2]any{dialect, n}

func scriptFor(dialect string, n int) *script {
	key := [2]any{dialect, n}
	if s, ok := scripts.Load(key); ok {
		return s.(*script)
	}
	s, _ := scripts.LoadOrStore(key, newScript(dialect, n))
	return s.(*script)
}

func newScript(dialect string, n int) *script {
	t := textOf(dialect, n)
	first := append(t.opening, t.token("~R{R}"+tokenMark))
	token := []string{t.token(tokenMark)}
	const head = "HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\nserver: uvicorn\r\n"
	const streamHead = head + "content-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
	whole := newPiece(t.whole)
	return &script{
		dialect: dialect, n: n,
		first: newPiece(strings.Join(first, "")), token: newPiece(token[0]), last: newPiece(strings.Join(t.closing, "")),
		firstWire: newPiece(streamHead + chunks(first)), tokenWire: newPiece(chunks(token)), lastWire: newPiece(chunks(t.closing) + "0\r\n\r\n"),
		whole: whole,
		wholeWire: newPiece(fmt.Sprintf("%scontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s",
			head, len(whole.text), t.whole)),
	}
}

func chunks(events []string) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(newPiece(e).text), e)
	}
	return b.String()
}
