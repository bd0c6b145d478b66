package fakeengine

import "fmt"

// dialect writes the answer of one API. Its methods are called in this order on the handler's goroutine.
type dialect interface {
	// open writes what goes out with the headers, before any token.
	open(x *exchange)
	// begin writes the first event of a choice; it comes with its first token.
	begin(x *exchange, l *lane)
	// token writes a piece; reason is not empty on the last one of the choice.
	token(x *exchange, l *lane, p piece, reason string)
	// finish ends a choice that has no token left to carry the reason.
	finish(x *exchange, l *lane, reason string)
	// close writes usage and the terminal event.
	close(x *exchange)
	// fail writes the in-stream error.
	fail(x *exchange, message string)
	// done writes the terminal marker and nothing else, where the dialect has such a thing.
	done(x *exchange)
	// body renders the whole answer.
	body(x *exchange) []byte
}

// lane is one choice of an answer.
type lane struct {
	q        *sequence
	index    int
	sent     int // tokens written
	finished bool
}

// namedEvent appends an event as messages and responses have them.
func namedEvent(b []byte, name, format string, args ...any) []byte {
	b = append(b, "event: "...)
	b = append(b, name...)
	b = append(b, "\ndata: "...)
	b = fmt.Appendf(b, format, args...)
	return append(b, "\n\n"...)
}

func dialectOf(api string) dialect {
	switch api {
	case "chat":
		return &chat{}
	case "completions":
		return &completions{}
	case "messages":
		return &messages{}
	case "responses":
		return &responses{}
	}
	panic("BUG: no dialect for api=" + api)
}
