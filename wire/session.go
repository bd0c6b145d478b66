package wire

import "bytes"

// readMetadata takes the session out of the metadata of a Messages request. user_id is, from Claude Code, a string that
// holds a JSON object with session_id; older versions write user_<hash>_account_<id>_session_<id>; others any text.
func (h *Head) readMetadata(c *cursor, last string) {
	if !c.object() {
		return
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		raw, ok := memberText(key, "user_id", c)
		if !ok {
			continue
		}
		var buf [1024]byte
		id := appendDecoded(buf[:0], raw, len(buf))
		if len(id) > 0 && id[0] == '{' {
			inner := cursor{b: id}
			inner.object()
			id = id[:0:0]
			for key, ok := inner.key(); ok; key, ok = inner.key() {
				if raw, ok := memberText(key, "session_id", &inner); ok {
					id = raw
				}
			}
		} else if i := bytes.LastIndex(id, []byte("_session_")); i >= 0 {
			id = id[i+len("_session_"):]
		}
		h.setSession(id, last)
	}
}

// setSession takes in a session as JSON text without quotes; one that is too long to be a name is none.
func (h *Head) setSession(raw []byte, last string) {
	if bytes.IndexByte(raw, '\\') >= 0 {
		var buf [maxSession + 1]byte
		raw = appendDecoded(buf[:0], raw, len(buf))
	}
	if len(raw) > maxSession {
		return
	}
	if h.Session = last; last != string(raw) {
		h.Session = string(raw)
	}
}
