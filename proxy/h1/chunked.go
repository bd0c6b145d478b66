package h1

import "errors"

const (
	maxChunkLine = 4 << 10  // a chunk's size with its extensions
	maxTrailers  = 64 << 10 // all trailer fields together
	maxSizeDigit = 16       // hexadecimal digits of a chunk's size
)

var (
	errChunkSize    = errors.New("chunk size is not a hexadecimal number")
	errChunkTooBig  = errors.New("chunk size is too large")
	errChunkLine    = errors.New("chunk size line is longer than 4 KiB")
	errChunkLineEnd = errors.New("chunk size line does not end in CRLF")
	errChunkEnd     = errors.New("chunk is not followed by CRLF")
	errTrailerEnd   = errors.New("trailer line does not end in CRLF")
	errTrailerSize  = errors.New("trailers are larger than 64 KiB")
)

type chunkState uint8

const (
	atSizeStart chunkState = iota // the first digit of a size
	inSize                        // further digits
	inExtension                   // anything after the digits, up to CR
	atSizeLF                      // the LF of a size line
	inData                        // left > 0 bytes of payload
	atDataCR                      // the CR after a chunk's payload
	atDataLF                      // and its LF
	atTrailer                     // start of a trailer line, or the last CR
	inTrailer                     // inside a trailer line
	atTrailerLF                   // the LF of a trailer line
	atLastLF                      // the LF that ends the body
	chunksDone                    // nothing more belongs to the body
)

// dechunker takes chunked framing off a body that arrives in arbitrary pieces.
// The zero value is at the start of a body. It holds no bytes and no reference:
// whatever was read of a size line lives in the state, so a connection that
// waits needs no buffer. Extensions and trailers are skipped. Line ends must be
// CRLF: a lone LF is where parsers disagree about where a body ends.
type dechunker struct {
	left   int64 // payload bytes missing from the current chunk; the size while it is read
	count  int   // digits, bytes of the size line, or bytes of trailers so far
	digits int
	state  chunkState
}

func (d *dechunker) done() bool { return d.state == chunksDone }

// decode moves the payload in b together, in place, and returns it as one slice
// of b. used < len(b) only if the body ended inside b: the rest is not its own.
// With an error, out is the payload before it.
func (d *dechunker) decode(b []byte) (out []byte, used int, err error) {
	start, end, i := 0, 0, 0 // b[start:end] is the payload so far
	for i < len(b) && d.state != chunksDone {
		if d.state != inData {
			if err = d.frame(b[i]); err != nil {
				break
			}
			i++
			continue
		}
		k := len(b) - i
		if int64(k) > d.left {
			k = int(d.left)
		}
		if start == end {
			start, end = i, i+k // the first piece stays where it is
		} else {
			copy(b[end:], b[i:i+k])
			end += k
		}
		i += k
		if d.left -= int64(k); d.left == 0 {
			d.state = atDataCR
		}
	}
	return b[start:end], i, err
}

// frame takes one byte that is not payload.
func (d *dechunker) frame(c byte) error {
	switch d.state {
	case atSizeStart, inSize, inExtension:
		return d.sizeLine(c)
	case atSizeLF:
		if c != '\n' {
			return errChunkLineEnd
		}
		d.count, d.digits = 0, 0
		d.state = inData
		if d.left == 0 {
			d.state = atTrailer
		}
	case atDataCR:
		if c != '\r' {
			return errChunkEnd
		}
		d.state = atDataLF
	case atDataLF:
		if c != '\n' {
			return errChunkEnd
		}
		d.state = atSizeStart
	default:
		return d.trailer(c)
	}
	return nil
}

func (d *dechunker) sizeLine(c byte) error {
	if d.count++; d.count > maxChunkLine {
		return errChunkLine
	}
	if d.state != inExtension {
		if v, ok := hexDigit(c); ok {
			if d.digits++; d.digits > maxSizeDigit || d.left>>59 != 0 {
				return errChunkTooBig
			}
			d.left = d.left<<4 | int64(v)
			d.state = inSize
			return nil
		}
		if d.state == atSizeStart {
			return errChunkSize
		}
		if c != '\r' && c != ';' && c != ' ' && c != '\t' {
			return errChunkSize
		}
	}
	switch c {
	case '\r':
		d.state = atSizeLF
	case '\n':
		return errChunkLineEnd
	default:
		d.state = inExtension
	}
	return nil
}

func (d *dechunker) trailer(c byte) error {
	if d.count++; d.count > maxTrailers {
		return errTrailerSize
	}
	switch d.state {
	case atTrailer, inTrailer:
		switch {
		case c == '\n':
			return errTrailerEnd
		case c != '\r':
			d.state = inTrailer
		case d.state == atTrailer:
			d.state = atLastLF
		default:
			d.state = atTrailerLF
		}
	case atTrailerLF, atLastLF:
		if c != '\n' {
			return errTrailerEnd
		}
		if d.state == atLastLF {
			d.state = chunksDone
		} else {
			d.state = atTrailer
		}
	default:
		panic("BUG: a byte after the end of a chunked body")
	}
	return nil
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
