package fakeengine

import (
	"fmt"
	"strconv"
)

// What chat and completions have in common: chunks without a name, [DONE], and the frame of a whole answer.

// chunk begins a chunk up to the value of choices.
func (x *exchange) chunk(b []byte, object string) []byte {
	b = append(b, `data: {"id":`...)
	b = appendString(b, x.id)
	b = append(b, `,"object":"`...)
	b = append(b, object...)
	b = append(b, `","created":`...)
	b = strconv.AppendInt(b, x.born, 10)
	b = append(b, `,"model":`...)
	b = appendString(b, x.c.model)
	return append(b, `,"choices":[`...)
}

// choice begins a chunk up to the first key of its choice after the index.
func (x *exchange) choice(b []byte, object string, l *lane) []byte {
	b = append(x.chunk(b, object), `{"index":`...)
	return strconv.AppendInt(b, int64(l.index), 10)
}

// endChoice ends a chunk of one choice after its last key; reason is not empty in the last one of the choice.
func (x *exchange) endChoice(b []byte, l *lane, reason string) []byte {
	b = x.runningUsage(append(b, `}]`...), l, l.sent)
	if reason != "" && !x.c.usage {
		b = append(b, `,"system_fingerprint":`...)
		b = appendString(b, x.e.fingerprint())
	}
	return append(b, "}\n\n"...)
}

// endChunks ends a stream: a chunk with the usage and without choices where it was asked for, then the marker.
func (x *exchange) endChunks(object string) {
	if x.c.usage && x.fault(NoUsage) == nil {
		b := append(x.chunk(nil, object), `],"usage":`...)
		b = append(x.usage(b, false), `,"system_fingerprint":`...)
		b = appendString(b, x.e.fingerprint())
		if x.e.o.RequestMetrics {
			b = x.metrics(append(b, `,"metrics":`...), false)
		}
		x.out.emit(x, append(b, "}\n\n"...), evPlain)
	}
	x.doneMarker()
}

func (x *exchange) doneMarker() {
	if x.out.struck {
		x.out.put(x, []byte("data: [DONE]\n\n"))
		return
	}
	x.out.emit(x, []byte("data: [DONE]\n\n"), evTerminal)
}

// errorChunk is the failure in a stream. Unlike all other events it has blanks after the colons. The marker
// follows all the same.
func (x *exchange) errorChunk(message string) {
	x.out.head(x)
	x.out.put(x, fmt.Appendf(nil, "data: {\"error\": {\"message\": %s, \"type\": \"InternalServerError\", \"param\": null, \"code\": 500}}\n\n", quote(message)))
	x.out.put(x, []byte("data: [DONE]\n\n"))
}

// wholeHead begins a whole answer up to its choices.
func (x *exchange) wholeHead(object string) []byte {
	return fmt.Appendf(nil, `{"id":%s,"object":"%s","created":%d,"model":%s,"choices":[`, quote(x.id), object, x.born, quote(x.c.model))
}

// endWhole ends a whole answer after its choices; nulls are the keys between usage and metrics.
func (x *exchange) endWhole(b []byte, nulls string) []byte {
	b = fmt.Appendf(b, `],"service_tier":null,"system_fingerprint":%s`, quote(x.e.fingerprint()))
	if x.fault(NoUsage) == nil {
		b = x.usage(append(b, `,"usage":`...), true)
	}
	b = append(b, nulls...)
	b = append(b, `,"metrics":`...)
	if x.e.o.RequestMetrics {
		return append(x.metrics(b, true), '}')
	}
	return append(b, `null}`...)
}
