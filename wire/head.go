package wire

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// The largest model name and session that are read.
const (
	maxModel   = 256
	maxSession = 256
)

// Head is what a gateway needs to know of a request body, and where it stands. The zero value is ready; ReadHead sets
// all of it. Using one Head for many requests saves the allocations of names that stay the same.
type Head struct {
	// Model is the model asked for, decoded. HasModel: the body has one.
	Model    string
	HasModel bool
	// Stream: the body asks for a streamed answer.
	Stream bool
	// MaxTokens is the limit on generated tokens, -1 if the body has none or null. In Chat max_completion_tokens wins
	// over max_tokens.
	MaxTokens int64
	// IncludeUsage: the body asks for usage at the end of the stream (stream_options.include_usage is true).
	IncludeUsage bool
	// Session names the conversation: prompt_cache_key (Chat, Responses), or the session in metadata.user_id
	// (Messages). Empty: none.
	Session string
	// EstimatedTokens estimates the prompt's tokens; see estimateTokens in estimate.go for the formula.
	EstimatedTokens int

	keys      requestKeys
	open      int     // after the object's opening brace
	empty     bool    // the object has no members
	model     span    // values, quotes included
	stream    span    //
	maxTokens [2]span // as in keys
	limits    [2]int64
	options   span // stream_options
	optOpen   int  // after its opening brace, 0 if it is no object
	optEmpty  bool //
	usage     span // include_usage
	system    int  // where the system prompt, if it is a member of its own, and
	prompt    int  // the rest of the prompt begin; see notePrompt
	rid       span // "rid" and
	requestID span // "request_id"
}

// span is a part of the body, body[from:to]; it is absent if to is 0.
type span struct{ from, to int }

func (s span) found() bool { return s.to > 0 }

// BadBody says why a request body cannot be accepted.
type BadBody struct {
	Offset  int    // where in the body
	Message string // a clause for people, such as "model" must be a string
}

func (e *BadBody) Error() string {
	return fmt.Sprintf("cannot read request body offset=%d: %s", e.Offset, e.Message)
}

// ReadHead reads the top level of a request body in one pass. The body must be one JSON object; blanks and a byte order
// mark around it are tolerated, anything after it is not. A member that the gateway acts on must have its type and must
// not come twice, however its name is written: otherwise the upstream could read another value than the gateway did.
// All else is left to the upstream. The error is a *BadBody.
func ReadHead(d Dialect, body []byte, h *Head) error {
	model, session := h.Model, h.Session
	*h = Head{MaxTokens: -1, keys: d.requestKeys()}
	c := cursor{b: body}
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		c.i = 3
	}
	if c.peek() != '{' {
		return &BadBody{c.i, "the body is not a JSON object"}
	}
	c.object()
	h.open = c.i
	h.empty = c.peek() == '}'
	for key, ok := c.key(); ok; key, ok = c.key() {
		c.peek()
		h.notePrompt(key, c.i)
		if err := h.readMember(&c, key, model, session); err != nil {
			return err
		}
	}
	if c.bad {
		if c.at >= len(body) {
			return &BadBody{len(body), "the body ends in the middle of the JSON (" + c.why + ")"}
		}
		return &BadBody{c.at, "the body is not valid JSON: " + c.why}
	}
	if c.peek(); c.i < len(body) {
		return &BadBody{c.i, "there is something after the JSON object"}
	}
	h.EstimatedTokens = estimateTokens(body, c.opaque, c.blobs)
	return nil
}

// readMember takes in the value of one top-level member. model and session are strings to use again if they are equal.
func (h *Head) readMember(c *cursor, key []byte, model, session string) error {
	var buf [64]byte
	if bytes.IndexByte(key, '\\') >= 0 {
		key = appendDecoded(buf[:0], key, len(buf))
	}
	if h.isVariant(key) {
		return &BadBody{c.i, "the key " + strconv.Quote(string(key)) + " differs from a known one by its case only, which some upstreams do not tell apart"}
	}
	switch string(key) {
	case "model":
		return h.readModel(c, model)
	case "stream":
		return h.readStream(c)
	case "stream_options":
		if h.keys.usageOption {
			return h.readOptions(c)
		}
	case "metadata":
		if h.keys.metadata {
			h.readMetadata(c, session)
			return nil
		}
	case "rid":
		return h.note(c, key, &h.rid)
	case "request_id":
		return h.note(c, key, &h.requestID)
	}
	k := &h.keys
	switch {
	case len(key) == 0:
	case string(key) == k.maxTokens[0]:
		return h.readMaxTokens(c, key, 0)
	case string(key) == k.maxTokens[1]:
		return h.readMaxTokens(c, key, 1)
	case string(key) == k.session && c.peek() == '"':
		raw, _ := c.str()
		h.setSession(raw, session)
		return nil
	}
	c.skip()
	return nil
}

// isVariant: a key that the gateway acts on, in another case. Upstreams that
// ignore case would take its value for the one that was checked.
func (h *Head) isVariant(key []byte) bool {
	k := &h.keys
	for _, name := range [...]string{"model", "stream", "stream_options", k.maxTokens[0], k.maxTokens[1]} {
		if len(key) == len(name) && len(name) > 0 && string(key) != name && strings.EqualFold(string(key), name) {
			return true
		}
	}
	return false
}

// TakesMaxTokens reports whether the dialect has a limit on generated tokens.
func (h *Head) TakesMaxTokens() bool { return h.keys.maxTokensAdd != "" }

// LacksUsage reports whether the body asks for a stream that ends without usage, in a dialect where usage is an option.
func (h *Head) LacksUsage() bool { return h.Stream && !h.IncludeUsage && h.keys.usageOption }

// note skips the value and keeps its place.
func (h *Head) note(c *cursor, key []byte, at *span) error {
	if at.found() {
		return &BadBody{c.i, strconv.Quote(string(key)) + " appears twice"}
	}
	from := c.i
	c.skip()
	*at = span{from, c.i}
	return nil
}

func (h *Head) readModel(c *cursor, last string) error {
	at, isString := c.i, c.peek() == '"'
	if err := h.note(c, []byte("model"), &h.model); err != nil {
		return err
	}
	if !isString {
		if c.bad {
			return nil
		}
		return &BadBody{at, `"model" must be a string`}
	}
	if c.bad {
		return nil
	}
	raw := c.b[at+1 : c.i-1]
	if bytes.IndexByte(raw, '\\') >= 0 {
		var buf [maxModel + 1]byte
		raw = appendDecoded(buf[:0], raw, len(buf))
	}
	if len(raw) > maxModel {
		return &BadBody{at, `"model" is longer than 256 bytes`}
	}
	h.HasModel = true
	if h.Model = last; last != string(raw) {
		h.Model = string(raw)
	}
	return nil
}

func (h *Head) readStream(c *cursor) error {
	if err := h.note(c, []byte("stream"), &h.stream); err != nil || c.bad {
		return err
	}
	switch string(c.b[h.stream.from:h.stream.to]) {
	case "true":
		h.Stream = true
	case "false", "null":
	default:
		return &BadBody{h.stream.from, `"stream" must be true or false`}
	}
	return nil
}

func (h *Head) readMaxTokens(c *cursor, key []byte, which int) error {
	at := &h.maxTokens[which]
	if err := h.note(c, key, at); err != nil || c.bad {
		return err
	}
	text := c.b[at.from:at.to]
	if h.limits[which] = -1; string(text) == "null" {
		return nil
	}
	n, ok := parseInteger(text)
	if !ok || n < 0 {
		return &BadBody{at.from, strconv.Quote(string(key)) + " must be a whole number of at least 0"}
	}
	if h.limits[which] = n; which == 0 || h.MaxTokens < 0 {
		h.MaxTokens = n
	}
	return nil
}

func (h *Head) readOptions(c *cursor) error {
	if h.options.found() {
		return &BadBody{c.i, `"stream_options" appears twice`}
	}
	from := c.i
	if c.object() {
		h.optOpen = c.i
		h.optEmpty = c.peek() == '}'
		for key, ok := c.key(); ok; key, ok = c.key() {
			c.peek()
			if string(key) != "include_usage" {
				c.skip()
				continue
			}
			if err := h.note(c, key, &h.usage); err != nil {
				return err
			}
			h.IncludeUsage = !c.bad && string(c.b[h.usage.from:h.usage.to]) == "true"
		}
	}
	h.options = span{from, c.i}
	return nil
}
