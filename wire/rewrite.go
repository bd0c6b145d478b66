package wire

import "strconv"

// Rewrite says which fields of a request to set; a zero field is left alone.
type Rewrite struct {
	// Model is the model's name upstream.
	Model string
	// MaxTokens is the limit on generated tokens. Where the body has two such members with numbers, each that is over it
	// is set.
	MaxTokens int64
	// IncludeUsage asks the upstream for usage at the end of the stream. It has no effect on a request that is not
	// streamed (upstreams refuse the option there) or in a dialect without the option.
	IncludeUsage bool
	// RIDField and RID set the request id that the engine takes from the body: "rid" or "request_id".
	RIDField, RID string
}

type editKind uint8

const (
	editModel editKind = iota
	editMaxTokens
	editOptions // the whole of stream_options
	editUsage   // the value of include_usage
	editAddUsage
	editRID
	editAddAll
)

// edit replaces body[from:to].
type edit struct {
	span
	kind editKind
}

// edits is the list of edits of one body, in order of place.
type edits struct {
	at [8]edit
	n  int
	// Members to add to the body.
	model, maxTokens, options, rid bool
}

func (e *edits) add(s span, kind editKind) {
	i := e.n
	for ; i > 0 && e.at[i-1].from > s.from; i-- {
		e.at[i] = e.at[i-1]
	}
	e.at[i] = edit{s, kind}
	e.n++
}

// NeedsRewrite reports whether AppendRewritten would change the body.
func (h *Head) NeedsRewrite(r Rewrite) bool {
	e := h.plan(r)
	return e.n > 0
}

// AppendRewritten appends the body with the fields of r set. body must be the one that h was read from. Only the spans
// of those values are replaced, and members that are missing are added at the front: every other byte stays, so key
// order, the text of numbers, unknown fields and broken escapes survive.
func (h *Head) AppendRewritten(dst, body []byte, r Rewrite) []byte {
	e := h.plan(r)
	from := 0
	for _, edit := range e.at[:e.n] {
		dst = append(dst, body[from:edit.from]...)
		from = edit.to
		switch edit.kind {
		case editModel:
			dst = appendQuoted(dst, r.Model)
		case editMaxTokens:
			dst = strconv.AppendInt(dst, r.MaxTokens, 10)
		case editOptions:
			dst = append(dst, `{"include_usage":true}`...)
		case editUsage:
			dst = append(dst, "true"...)
		case editAddUsage:
			dst = append(dst, `"include_usage":true`...)
			dst = comma(dst, h.optEmpty)
		case editRID:
			dst = appendQuoted(dst, r.RID)
		case editAddAll:
			dst = h.appendMembers(dst, &e, r)
		}
	}
	return append(dst, body[from:]...)
}

func comma(dst []byte, last bool) []byte {
	if last {
		return dst
	}
	return append(dst, ',')
}

// appendMembers appends the members that the body has not.
func (h *Head) appendMembers(dst []byte, e *edits, r Rewrite) []byte {
	begin := len(dst)
	if e.model {
		dst = appendQuoted(append(dst, `"model":`...), r.Model)
		dst = append(dst, ',')
	}
	if e.maxTokens {
		dst = append(appendQuoted(dst, h.keys.maxTokensAdd), ':')
		dst = append(strconv.AppendInt(dst, r.MaxTokens, 10), ',')
	}
	if e.options {
		dst = append(dst, `"stream_options":{"include_usage":true},`...)
	}
	if e.rid {
		dst = append(appendQuoted(dst, r.RIDField), ':')
		dst = append(appendQuoted(dst, r.RID), ',')
	}
	if h.empty && len(dst) > begin {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// plan lists the edits.
func (h *Head) plan(r Rewrite) (e edits) {
	if r.Model != "" && (!h.HasModel || h.Model != r.Model) {
		if e.model = !h.model.found(); !e.model {
			e.add(h.model, editModel)
		}
	}
	if r.MaxTokens > 0 {
		h.planMaxTokens(&e, r.MaxTokens)
	}
	if r.IncludeUsage && h.LacksUsage() {
		switch {
		case h.usage.found():
			e.add(h.usage, editUsage)
		case h.optOpen > 0:
			e.add(span{h.optOpen, h.optOpen}, editAddUsage)
		case h.options.found():
			e.add(h.options, editOptions)
		default:
			e.options = true
		}
	}
	h.planRID(&e, r.RIDField)
	if e.model || e.maxTokens || e.options || e.rid {
		e.add(span{h.open, h.open}, editAddAll)
	}
	return e
}

// OverLimit reports whether a limit on generated tokens in the body is over n. A body may have two, of which engines
// read either.
func (h *Head) OverLimit(n int64) bool { return h.limits[0] > n || h.limits[1] > n }

// planMaxTokens sets every limit that is over n, so that it does not matter which one the upstream reads; where all that
// are there are null, one of them; where none is there, it adds one.
func (h *Head) planMaxTokens(e *edits, n int64) {
	if !h.TakesMaxTokens() {
		return
	}
	if h.MaxTokens >= 0 {
		for i, s := range h.maxTokens {
			if s.found() && h.limits[i] > n {
				e.add(s, editMaxTokens)
			}
		}
		return
	}
	for _, s := range h.maxTokens {
		if s.found() {
			e.add(s, editMaxTokens)
			return
		}
	}
	e.maxTokens = true
}

// planRID sets the id over the client's own, because the gateway finds the request in the engine by it.
func (h *Head) planRID(e *edits, field string) {
	at := h.rid
	switch field {
	case "":
		return
	case "rid":
	case "request_id":
		at = h.requestID
	default:
		panic("BUG: unknown request id field " + field)
	}
	if e.rid = !at.found(); !e.rid {
		e.add(at, editRID)
	}
}
