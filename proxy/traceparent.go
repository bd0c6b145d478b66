package proxy

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

// W3C trace context, version 00: 00-<trace id>-<parent id>-<flags>.
const (
	traceIDDigits     = 32
	spanIDDigits      = 16
	traceparentLength = 3 + traceIDDigits + 1 + spanIDDigits + 3
)

// traceContext is the trace that an exchange belongs to.
type traceContext struct {
	id    string // 32 hex digits
	flags string // 2 hex digits
}

// continuedTrace takes the client's trace where its tenant may continue one,
// and begins a new one otherwise.
func continuedTrace(traceparent []byte, trusted bool) traceContext {
	if trusted && isTraceparent(traceparent) {
		return traceContext{id: string(traceparent[3 : 3+traceIDDigits]), flags: string(traceparent[traceparentLength-2:])}
	}
	return traceContext{id: randomHex(traceIDDigits), flags: "00"}
}

func isTraceparent(v []byte) bool {
	if len(v) != traceparentLength || string(v[:3]) != "00-" || v[3+traceIDDigits] != '-' || v[traceparentLength-3] != '-' {
		return false
	}
	id, parent, flags := v[3:3+traceIDDigits], v[4+traceIDDigits:4+traceIDDigits+spanIDDigits], v[traceparentLength-2:]
	return isHex(id) && isHex(parent) && isHex(flags) && !allZero(id) && !allZero(parent)
}

func isHex(v []byte) bool {
	for _, c := range v {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func allZero(v []byte) bool {
	for _, c := range v {
		if c != '0' {
			return false
		}
	}
	return true
}

// randomHex makes an id. It names, and guards nothing, so the fast source does.
func randomHex(digits int) string { return string(appendRandomHex(nil, digits)) }

func appendRandomHex(dst []byte, digits int) []byte {
	for ; digits > 0; digits -= spanIDDigits {
		var b [spanIDDigits / 2]byte
		binary.BigEndian.PutUint64(b[:], rand.Uint64()|1) // an id of zeros is none
		dst = hex.AppendEncode(dst, b[:])
	}
	return dst
}

// appendTraceparent names this attempt as the parent of what the upstream does.
func (x *exchange) appendTraceparent(dst []byte) []byte {
	dst = append(append(dst, "00-"...), x.trace.id...)
	dst = appendRandomHex(append(dst, '-'), spanIDDigits)
	return append(append(dst, '-'), x.trace.flags...)
}
