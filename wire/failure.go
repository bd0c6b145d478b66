package wire

import (
	"bytes"
	"unicode/utf8"
)

// maxWords is how much of an upstream's message is kept.
const maxWords = 1024

// ReadFailure reads the error of an upstream's answer with the given status, in whatever envelope it came: OpenAI's,
// Anthropic's, a string as error, FastAPI's detail, a flat error object, a list of one, plain text, HTML. It returns a
// Failure in any case, with an empty message where the body says nothing. A status of 0 is read out of the error.
func ReadFailure(status int, body []byte) *Failure {
	f := &Failure{Status: status}
	if !f.readJSON(body) {
		f.readPlain(body)
	}
	if f.Status == 0 {
		f.Status = statusOf(f.Code, f.Type)
	}
	return f
}

// readJSON reads an envelope and returns false if body is none.
func (f *Failure) readJSON(body []byte) bool {
	c := cursor{b: bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))}
	if c.peek() == '[' {
		if !c.array() || !c.element() {
			return false
		}
	}
	if c.peek() != '{' {
		return false
	}
	return f.readEnvelope(&c)
}

func (f *Failure) readEnvelope(c *cursor) bool {
	if !c.object() {
		return false
	}
	var flat Failure
	found := false
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "error":
			found = f.readValue(c) || found
		case "detail":
			found = f.readDetail(c) || found
		case "message", "type", "code", "status":
			flat.readMember(key, c)
		default:
			c.skip()
		}
	}
	if found {
		return true
	}
	if c.bad || flat.Message == "" {
		return false
	}
	if f.Status != 0 {
		flat.Status = f.Status
	}
	*f = flat
	return true
}

// readValue reads the value of an "error" member and returns false if it stands for no error.
func (f *Failure) readValue(c *cursor) bool {
	if c.peek() == '"' {
		raw, _ := c.str()
		f.Message = words(raw)
		return f.Message != ""
	}
	if !c.object() {
		return false
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		f.readMember(key, c)
	}
	return true
}

// readMember reads one member of an error object.
func (f *Failure) readMember(key []byte, c *cursor) {
	switch string(key) {
	case "message":
		if raw, ok := c.str(); ok {
			f.Message = words(raw)
		}
	case "type":
		if raw, ok := c.str(); ok {
			f.Type = short(raw)
		}
	case "code": // OpenAI: text; vLLM: the status as a number
		if c.peek() == '"' {
			raw, _ := c.str()
			f.Code = short(raw)
			return
		}
		from := c.i
		if n, ok := c.integer(); ok {
			f.Code = string(bytes.TrimSpace(c.b[from:c.i]))
			f.setStatus(n)
		}
	case "status", "status_code":
		if n, ok := c.integer(); ok {
			f.setStatus(n)
		}
	default:
		c.skip()
	}
}

func (f *Failure) setStatus(n int64) {
	if f.Status == 0 && n >= 400 && n <= 599 {
		f.Status = int(n)
	}
}

// readDetail reads FastAPI's detail: text, or a list of objects with msg.
func (f *Failure) readDetail(c *cursor) bool {
	if c.peek() == '"' {
		raw, _ := c.str()
		f.Message = words(raw)
		return true
	}
	if !c.array() {
		return false
	}
	for c.element() {
		if !c.object() {
			continue
		}
		for key, ok := c.key(); ok; key, ok = c.key() {
			if raw, ok := memberText(key, "msg", c); ok && f.Message == "" {
				f.Message = words(raw)
			}
		}
	}
	return f.Message != ""
}

// memberText reads the value of a member: its text if it is called name and is a string.
func memberText(key []byte, name string, c *cursor) ([]byte, bool) {
	if string(key) != name {
		c.skip()
		return nil, false
	}
	return c.str()
}

// readPlain takes a text, or the words of an HTML page, as the message.
func (f *Failure) readPlain(body []byte) {
	body = bytes.TrimSpace(body)
	body = body[:min(len(body), 64*maxWords)]
	page := bytes.HasPrefix(body, []byte("<"))
	text := make([]byte, 0, min(len(body), maxWords)+utf8.UTFMax)
	for len(body) > 0 {
		if page && body[0] == '<' {
			body = skipTag(body)
			text = appendBlank(text)
			continue
		}
		r, n := utf8.DecodeRune(body)
		body = body[n:]
		if len(text)+utf8.RuneLen(r) > maxWords {
			break
		}
		if r <= ' ' {
			text = appendBlank(text)
			continue
		}
		text = utf8.AppendRune(text, r)
	}
	f.Message = string(bytes.TrimSpace(text))
}

// skipTag returns what follows the tag at the beginning of b; what a style or script element holds are no words.
func skipTag(b []byte) []byte {
	for _, name := range [...]string{"style", "script"} {
		if len(b) > len(name) && bytes.EqualFold(b[1:1+len(name)], []byte(name)) {
			if end := bytes.Index(b, []byte("</")); end > 0 {
				b = b[end:]
			}
		}
	}
	_, rest, _ := bytes.Cut(b, []byte(">"))
	return rest
}

func appendBlank(text []byte) []byte {
	if len(text) == 0 || text[len(text)-1] == ' ' {
		return text
	}
	return append(text, ' ')
}

func words(raw []byte) string { return string(appendDecoded(nil, raw, maxWords)) }

func short(raw []byte) string { return string(appendDecoded(nil, raw, 64)) }

// statusOf returns the HTTP status that the code or the type of an error stands for, 0 if unknown.
func statusOf(code, typ string) int {
	if n, ok := parseInteger([]byte(code)); ok && n >= 400 && n <= 599 {
		return int(n)
	}
	for _, word := range [...]string{code, typ} {
		if status := statusWords[word]; status != 0 {
			return status
		}
	}
	return 0
}

var statusWords = map[string]int{
	// Anthropic
	"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
	"not_found_error": 404, "conflict_error": 409, "request_too_large": 413, "rate_limit_error": 429,
	"api_error": 500, "internal_error": 500, "timeout_error": 504, "overloaded_error": 529,
	// OpenAI
	"context_length_exceeded": 400, "invalid_api_key": 401, "model_not_found": 404, "rate_limit_exceeded": 429,
	"insufficient_quota": 429, "tokens": 429, "requests": 429, "server_error": 500, "server_is_overloaded": 503,
	"service_unavailable": 503,
	// vLLM, by the names of its exceptions
	"BadRequestError": 400, "Bad Request": 400, "AuthenticationError": 401, "PermissionDeniedError": 403,
	"NotFoundError": 404, "UnprocessableEntityError": 422, "RateLimitError": 429, "InternalServerError": 500,
	"NotImplementedError": 501, "Service Unavailable": 503,
	// new-api and its kin
	"insufficient_user_quota": 403, "pre_consume_token_quota_failed": 403, "get_channel_failed": 503,
	"do_request_failed": 500, "empty_response": 502, "bad_response_body": 502,
}

// fail notes that the answer has failed; the first failure stays.
func (o *Observation) fail(f *Failure) Kind {
	if o.Failure == nil {
		o.Failure = f
	}
	return Failed
}

// readError reads the "error" member of an event or answer. null, false and empty text are no error.
func (o *Observation) readError(c *cursor) Kind {
	if ch := c.peek(); ch != '"' && ch != '{' {
		c.skip()
		return 0
	}
	f := &Failure{}
	if !f.readValue(c) {
		return 0
	}
	if f.Status == 0 {
		f.Status = statusOf(f.Code, f.Type)
	}
	return o.fail(f)
}
