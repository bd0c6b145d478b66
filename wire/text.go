package wire

import (
	"unicode/utf16"
	"unicode/utf8"
)

// appendQuoted appends s as a JSON string that fits on one line of an event stream: control characters and the line
// separators are escaped, bytes that are no UTF-8 become U+FFFD.
func appendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		ch := s[i]
		if ch < utf8.RuneSelf {
			i++
			switch {
			case ch == '"' || ch == '\\':
				dst = append(dst, '\\', ch)
			case ch == '\n':
				dst = append(dst, '\\', 'n')
			case ch == '\r':
				dst = append(dst, '\\', 'r')
			case ch == '\t':
				dst = append(dst, '\\', 't')
			case ch < ' ' || ch == 0x7f:
				dst = append(dst, '\\', 'u', '0', '0', hex[ch>>4], hex[ch&15])
			default:
				dst = append(dst, ch)
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(dst, `\ufffd`...)
		case r == '\u2028' || r == '\u2029':
			dst = append(dst, `\u202`...)
			dst = append(dst, hex[r&15])
		default:
			dst = append(dst, s[i-n:i]...)
		}
	}
	return append(dst, '"')
}

// appendDecoded appends the text of a JSON string given raw, without its quotes, until limit bytes were appended; it
// never ends inside a character. Broken escapes and lone surrogates become U+FFFD.
func appendDecoded(dst, raw []byte, limit int) []byte {
	limit += len(dst)
	for i := 0; i < len(raw); {
		var char [utf8.UTFMax]byte
		n := 0
		switch {
		case raw[i] != '\\':
			size := 1
			if raw[i] >= utf8.RuneSelf {
				_, size = utf8.DecodeRune(raw[i:])
			}
			n = copy(char[:], raw[i:i+size])
			i += size
		default:
			r, size := decodeEscape(raw[i:])
			n = utf8.EncodeRune(char[:], r)
			i += size
		}
		if len(dst)+n > limit {
			break
		}
		dst = append(dst, char[:n]...)
	}
	return dst
}

// decodeEscape returns the character of the escape at the beginning of b and the escape's length.
func decodeEscape(b []byte) (rune, int) {
	if len(b) < 2 {
		return utf8.RuneError, len(b)
	}
	switch b[1] {
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case '"', '\\', '/':
		return rune(b[1]), 2
	case 'u':
		r, ok := hex4(b[2:])
		if !ok {
			return utf8.RuneError, 2
		}
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
			if low, ok := hex4(b[8:]); ok {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					return pair, 12
				}
			}
		}
		return utf8.RuneError, 6
	}
	return utf8.RuneError, 2
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, ch := range b[:4] {
		switch {
		case '0' <= ch && ch <= '9':
			ch -= '0'
		case 'a' <= ch && ch <= 'f':
			ch -= 'a' - 10
		case 'A' <= ch && ch <= 'F':
			ch -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(ch)
	}
	return r, true
}
