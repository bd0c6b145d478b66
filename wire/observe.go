package wire

import (
	"bytes"

	"tracegate/sse"
)

// frame deals with what is the same in every dialect: a bare JSON error in the stream, events without data, events too
// large to be read. It returns the data to be read, nil if there is none.
func (o *Observation) frame(ev *sse.Event) (k Kind, data []byte) {
	if ev.Stray != nil {
		f := &Failure{}
		if f.readJSON(ev.Stray) {
			f.Status = max(f.Status, statusOf(f.Code, f.Type))
			k = o.fail(f)
		}
	}
	if ev.Oversize {
		o.Uninspected++
	}
	if string(ev.Name) == "error" {
		k |= o.fail(ReadFailure(0, ev.Data))
	}
	return k, ev.Data
}

// openEvent reads up to the first member of an event's object. Some resellers end every dialect with [DONE].
func (o *Observation) openEvent(data []byte) (c cursor, ok bool) {
	c.b = data
	if c.peek() == '{' {
		return c, c.object()
	}
	if len(data) > 0 && !isDone(data) {
		o.Malformed++
	}
	return c, false
}

// isDone reports whether the data is the end mark of Chat and Completions.
func isDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

// end notes the dialect's last event.
func (o *Observation) end() Kind {
	o.terminal = true
	return Terminal
}

// endBody ends the reading of an answer that is not streamed.
func (o *Observation) endBody(bad bool) {
	o.terminal = true
	if bad {
		o.Malformed++
		o.ended = false
	}
}

// content notes that there was some.
func (o *Observation) content(k Kind) Kind {
	if k&Content != 0 {
		o.HasContent = true
	}
	return k
}

// readID and the next ones take in members whose first value stays.

func (o *Observation) readID(c *cursor) {
	if raw, ok := c.str(); ok && o.ID == "" {
		o.ID = string(appendDecoded(nil, raw, 256))
	}
}

func (o *Observation) readModel(c *cursor) {
	if raw, ok := c.str(); ok && o.Model == "" {
		o.Model = string(appendDecoded(nil, raw, 256))
	}
}

func (o *Observation) readCreated(c *cursor) {
	if n, ok := c.integer(); ok && o.Created == 0 {
		o.Created = n
	}
}

// finished takes in a finish reason; an empty one is none, as some upstreams send it with every chunk.
func (o *Observation) finished(reason []byte) Kind {
	if len(reason) == 0 {
		return 0
	}
	if o.FinishReason != string(reason) {
		o.FinishReason = reasonText(reason)
	}
	return Finish
}

// reasonText returns the text of a finish reason, without allocating for the common ones.
func reasonText(raw []byte) string {
	for _, s := range [...]string{"stop", "length", "tool_calls", "end_turn", "max_tokens", "tool_use", "completed",
		"max_output_tokens", "abort", "content_filter", "stop_sequence"} {
		if s == string(raw) {
			return s
		}
	}
	return short(raw)
}
