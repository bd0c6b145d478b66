package wire

// observeChunk reads one chunk of a Chat or Completions stream, or a whole answer of theirs, which differs only in that
// it has message in place of delta.
func observeChunk(o *Observation, data []byte) (k Kind, m marks) {
	c := cursor{b: data}
	if c.peek() != '{' {
		o.Malformed++
		return 0, m
	}
	c.object()
	noChoices, flatError := false, false
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "id":
			o.readID(&c)
		case "model":
			o.readModel(&c)
		case "created":
			o.readCreated(&c)
		case "object": // SGLang: {"object":"error","message":...}
			raw, _ := c.str()
			flatError = string(raw) == "error"
		case "choices":
			var choice Kind
			choice, noChoices = readChoices(o, &c, &m)
			k |= choice
		case "usage":
			if o.readUsage(&c, grossInput) {
				k |= UsageSeen
			}
		case "metrics":
			o.readTimings(&c)
		case "error":
			k |= o.readError(&c)
		case "obfuscation":
			m.pad(&c)
		default:
			c.skip()
		}
	}
	if c.bad {
		o.Malformed++
	}
	if flatError {
		k |= o.fail(ReadFailure(0, data))
	}
	if k&Finish != 0 && o.FinishReason == "error" { // with the error object beside it or, as a rule, without
		k |= o.fail(&Failure{Status: 500, Type: "error", Message: "finish_reason error"})
	}
	if noChoices && k&UsageSeen != 0 && k&Failed == 0 {
		k |= UsageOnly
	}
	return o.content(k), m
}

// readChoices reads the choices; none says that the list was empty or null.
func readChoices(o *Observation, c *cursor, m *marks) (k Kind, none bool) {
	if c.peek() == 'n' {
		c.skip()
		return 0, true
	}
	if !c.array() {
		return 0, false
	}
	none = true
	for c.element() {
		none = false
		k |= readChoice(o, c, m)
	}
	return k, none
}

func readChoice(o *Observation, c *cursor, m *marks) (k Kind) {
	if !c.object() {
		return 0
	}
	index := int64(0)
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "index":
			if n, ok := c.integer(); ok {
				index = n
			}
		case "delta", "message":
			k |= readDelta(c, m)
		case "text":
			raw, ok := c.str()
			k |= m.text(c, raw, ok)
		case "finish_reason":
			raw, _ := c.str()
			k |= o.finished(raw)
		case "usage": // some resellers put it here
			if o.readUsage(c, grossInput) {
				k |= UsageSeen
			}
		default:
			c.skip()
		}
	}
	o.choices.begin(index)
	if k&Finish != 0 {
		o.choices.finish(index)
	}
	return k
}

// readDelta returns Content if the delta has generated content.
func readDelta(c *cursor, m *marks) (k Kind) {
	if !c.object() {
		return 0
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "content", "reasoning", "reasoning_content", "refusal":
			k |= readText(c, m)
		case "tool_calls":
			if c.array() {
				for c.element() {
					k |= readCall(c, m)
				}
			}
		case "function_call":
			k |= readFunction(c, m)
		case "audio":
			k |= readAudio(c, m)
		default:
			c.skip()
		}
	}
	return k
}

// readText reads generated text, or a list of parts of it.
func readText(c *cursor, m *marks) Kind {
	if c.peek() != '[' {
		raw, ok := c.str()
		return m.text(c, raw, ok)
	}
	m.bad = true
	return composite(c)
}

// composite skips a value and returns Content if it is an object or array with something in it.
func composite(c *cursor) Kind {
	if ch := c.peek(); ch != '[' && ch != '{' {
		c.skip()
		return 0
	}
	from := c.i
	c.skip()
	inside := cursor{b: c.b[:c.i], i: from + 1}
	if ch := inside.peek(); c.bad || ch == ']' || ch == '}' {
		return 0
	}
	return Content
}

// readCall reads one of the tool calls: its name or its arguments are content, its id alone is not.
func readCall(c *cursor, m *marks) (k Kind) {
	if !c.object() {
		return 0
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "function", "custom":
			k |= readFunction(c, m)
		default:
			c.skip()
		}
	}
	return k
}

func readFunction(c *cursor, m *marks) (k Kind) {
	if !c.object() {
		return 0
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "name", "arguments", "input":
			if c.peek() == '{' { // some servers send the arguments as an object
				m.bad = true
				k |= composite(c)
				continue
			}
			raw, ok := c.str()
			k |= m.text(c, raw, ok)
		default:
			c.skip()
		}
	}
	return k
}

func readAudio(c *cursor, m *marks) (k Kind) {
	if !c.object() {
		return 0
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "data", "transcript":
			raw, ok := c.str()
			k |= m.text(c, raw, ok)
		default:
			c.skip()
		}
	}
	return k
}
