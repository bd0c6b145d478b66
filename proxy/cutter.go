package proxy

import (
	"tracegate/sse"
	"tracegate/wire"
)

// holdLimit bounds what is held back of an event that is not complete yet. A
// larger event is passed on as it comes.
const holdLimit = 64 << 10

// cutter decides which bytes of an event stream may be sent on: whole events,
// byte for byte, except the usage chunk that only we asked for. What begins an
// event is held until its end is there, so that a cut stream never ends in a
// half event, nothing is ever written between the lines of one, and a chunk
// can be hidden however it was split.
type cutter struct {
	hideUsage bool // the client did not ask for the usage chunk
	loose     bool // an event larger than holdLimit is being passed on
	orphan    bool // what was hidden ended with the CR of what may be a pair: the LF is hidden too
	held      []byte
	joined    []byte // held and what follows it, where both must be sent as one
}

// look is what one read of the stream contained.
type look struct {
	kinds  wire.Kind
	tokens int  // content events
	events int  // all events
	bare   bool // an error that stands outside of any event, where no client looks
}

// cut reads b, tells the observation of every event, and returns the bytes
// that may be sent. They are valid until the next call and may point into b.
// stopped: the stream claims its end although the answer is not whole; that
// end and what follows are not in out.
func (c *cutter) cut(b []byte, p *sse.Parser, d wire.Dialect, o *wire.Observation) (out []byte, seen look, stopped bool) {
	c.joined = c.joined[:0]
	start, done := 0, 0 // b[start:done] is complete and not yet in joined
	if c.orphan && len(b) > 0 {
		c.orphan = false
		if b[0] == '\n' {
			start, done = 1, 1
		}
	}
	for at := 0; at < len(b); {
		ev, n, ok := p.Next(b[at:])
		if !ok {
			if safe := p.Safe(); safe > 0 { // comments and blank lines
				done = at + safe
			}
			break
		}
		at += n
		kind := d.Observe(o, ev)
		seen.kinds |= kind
		seen.events++
		seen.bare = seen.bare || kind&wire.Failed != 0 && ev.Stray != nil
		if kind&wire.Content != 0 {
			seen.tokens++
		}
		if kind&wire.Terminal != 0 && !o.Complete() && o.Failure == nil && !o.Aborted() {
			// The stream says that it is over, but the answer is not whole: its
			// end must not reach the client.
			return c.flush(b, start, done), seen, true
		}
		if kind&wire.UsageOnly != 0 && c.hideUsage && !c.loose {
			c.take(b[start:done])
			c.held = c.held[:0]
			start = at
			c.orphan = at == len(b) && b[at-1] == '\r'
		}
		done = at
		c.loose = false
	}
	out = c.flush(b, start, done)
	return c.hold(out, b[max(done, start):]), seen, false
}

// take moves complete bytes behind what is held into joined.
func (c *cutter) take(b []byte) {
	if len(b) == 0 {
		return
	}
	c.joined = append(append(c.joined, c.held...), b...)
	c.held = c.held[:0]
}

// flush returns the complete bytes: straight from b where nothing stands before them.
func (c *cutter) flush(b []byte, start, done int) []byte {
	if done <= start {
		return c.joined
	}
	if len(c.held) == 0 && len(c.joined) == 0 {
		return b[start:done]
	}
	c.take(b[start:done])
	return c.joined
}

// hold keeps the beginning of an event, or passes it on when it is large.
func (c *cutter) hold(out, rest []byte) []byte {
	if len(rest) == 0 {
		return out
	}
	if !c.loose && len(c.held)+len(rest) <= holdLimit {
		c.held = append(c.held, rest...)
		return out
	}
	c.loose = true
	if len(out) == 0 && len(c.held) == 0 {
		return rest
	}
	if len(c.joined) == 0 {
		c.joined = append(c.joined, out...)
	}
	c.joined = append(append(c.joined, c.held...), rest...)
	c.held = c.held[:0]
	return c.joined
}

// mayInsert says whether bytes of our own may be written now: never between
// the lines of an event, nor between a CR and the LF that may follow it.
func (c *cutter) mayInsert(p *sse.Parser) bool {
	return !c.loose && (len(c.held) > 0 || p.AtBoundary())
}
