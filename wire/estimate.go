package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// blobTokens is what one base64 blob (an image, a document, audio) counts in an estimate: about what the vendors count
// for a picture of ordinary size. Its bytes say nothing about its tokens.
const blobTokens = 1500

// estimateTokens estimates the prompt tokens of a request body from its bytes alone, reading 32 at a time: an ASCII
// byte counts 1/4 token, a character of several bytes (CJK, mostly) 1/1.5, and so does one written as \uXXXX. Names and
// punctuation of the JSON count too: templates spend about as much on roles and tool definitions. blobs strings of
// together opaque bytes were found to be base64 and count blobTokens each.
//
// It is within a factor of 1.5 of real tokenizers for prose and code; it errs on the high side for code.
func estimateTokens(body []byte, opaque, blobs int) int {
	wide, chars := wideBytes(body)
	if wide == 0 { // a writer that escapes characters escapes all of them
		chars = escapedChars(body)
		wide = 6 * chars
	}
	ascii := max(0, len(body)-wide-opaque)
	return (ascii+3)/4 + chars*2/3 + blobs*blobTokens
}

// wideBytes counts the bytes that are not ASCII and the characters that they begin.
func wideBytes(b []byte) (n, chars int) {
	const high = 0x8080808080808080
	for len(b) >= 32 {
		w0, w1 := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		w2, w3 := binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
		if (w0|w1|w2|w3)&high != 0 {
			n += bits.OnesCount64(w0&high) + bits.OnesCount64(w1&high) +
				bits.OnesCount64(w2&high) + bits.OnesCount64(w3&high)
			// A character's first byte has its two highest bits set, the others only the highest.
			chars += bits.OnesCount64(w0&(w0<<1)&high) + bits.OnesCount64(w1&(w1<<1)&high) +
				bits.OnesCount64(w2&(w2<<1)&high) + bits.OnesCount64(w3&(w3<<1)&high)
		}
		b = b[32:]
	}
	for _, ch := range b {
		if ch >= 0x80 {
			n++
			if ch >= 0xc0 {
				chars++
			}
		}
	}
	return n, chars
}

// escapedChars estimates the number of \uXXXX of characters that are not ASCII, as Python's json writes them by default.
// It looks at up to 32 windows of 512 bytes, evenly spaced.
func escapedChars(b []byte) int {
	const window, windows = 512, 32
	if len(b) <= window*windows {
		return countEscapes(b)
	}
	n, step := 0, len(b)/windows
	for i := range windows {
		n += countEscapes(b[i*step : i*step+window])
	}
	return n * step / window
}

func countEscapes(b []byte) (n int) {
	for {
		i := bytes.Index(b, []byte(`\u`))
		if i < 0 || len(b)-i < 6 {
			return n
		}
		b = b[i:]
		for len(b) >= 6 && b[0] == '\\' && b[1] == 'u' { // they come in rows
			if b[2] != '0' || b[3] != '0' || b[4] >= '8' {
				n++
			}
			b = b[6:]
		}
	}
}

// isBlob reports whether a long string is base64, bare or in a data: URL, judged by its beginning: only letters of that
// alphabet, and capitals, small letters and digits among them, which a long word has not.
func isBlob(s []byte) bool {
	if bytes.HasPrefix(s, []byte("data:")) {
		head := s[:min(len(s), 128)]
		comma := bytes.IndexByte(head, ',')
		if comma < 0 {
			return false
		}
		s = s[comma+1:]
	}
	if len(s) < 512 {
		return false
	}
	var small, capital, digit bool
	for _, ch := range s[:256] {
		switch {
		case 'a' <= ch && ch <= 'z':
			small = true
		case 'A' <= ch && ch <= 'Z':
			capital = true
		case '0' <= ch && ch <= '9':
			digit = true
		case ch == '+', ch == '/', ch == '-', ch == '_':
		case ch == '\\': // JSON writers may escape the slash
		default:
			return false
		}
	}
	return small && capital && digit
}
