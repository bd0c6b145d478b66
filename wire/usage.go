package wire

// rawUsage is the counts as the upstream gave them, kept because a later event may bring only some of them.
type rawUsage struct {
	prompt, output, read, write, reasoning int64
	known                                  Fields
	gross                                  bool // prompt includes read and write
}

// usageStyle says what the prompt count of a dialect includes.
type usageStyle bool

const (
	grossInput usageStyle = true  // OpenAI's dialects: cached tokens are a part of the prompt tokens
	netInput   usageStyle = false // Messages: input_tokens excludes them
)

// readUsage takes in a usage object, wherever the upstream put it, and returns false if the value was none or had no
// count. Counts are cumulative in every dialect: the last one wins, nothing is added up, and a count that is absent
// leaves what is known.
func (o *Observation) readUsage(c *cursor, style usageStyle) bool {
	if !c.object() {
		return false
	}
	seen := rawUsage{gross: bool(style)}
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "prompt_tokens":
			seen.set(c, &seen.prompt, FieldInput)
			seen.gross = true
		case "input_tokens":
			if seen.known&FieldInput == 0 || seen.prompt == 0 { // some send both, one of them 0
				seen.set(c, &seen.prompt, FieldInput)
			} else {
				c.skip()
			}
		case "completion_tokens", "output_tokens":
			if seen.known&FieldOutput == 0 || seen.output == 0 {
				seen.set(c, &seen.output, FieldOutput)
			} else {
				c.skip()
			}
		case "cache_read_input_tokens", "prompt_cache_hit_tokens", "cached_tokens":
			seen.set(c, &seen.read, FieldCacheRead)
		case "cache_creation_input_tokens":
			seen.set(c, &seen.write, FieldCacheWrite)
		case "reasoning_tokens":
			seen.set(c, &seen.reasoning, FieldReasoning)
		case "prompt_tokens_details", "input_tokens_details", "completion_tokens_details", "output_tokens_details":
			seen.readDetails(c)
		default:
			c.skip()
		}
	}
	if c.bad || seen.known == 0 {
		return false
	}
	o.merge(seen)
	return true
}

func (u *rawUsage) readDetails(c *cursor) {
	if !c.object() {
		return // null: unknown, not 0
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "cached_tokens":
			u.set(c, &u.read, FieldCacheRead)
		case "created_cache_tokens", "cache_write_tokens", "cache_creation_tokens":
			u.set(c, &u.write, FieldCacheWrite)
		case "reasoning_tokens":
			u.set(c, &u.reasoning, FieldReasoning)
		default:
			c.skip()
		}
	}
}

// set reads a count; null, text and negative numbers leave it unknown.
func (u *rawUsage) set(c *cursor, to *int64, f Fields) {
	if n, ok := c.integer(); ok && n >= 0 {
		*to = n
		u.known |= f
	}
}

// merge takes the counts that seen has over into o and derives o.Usage.
func (o *Observation) merge(seen rawUsage) {
	r := &o.raw
	if seen.known&FieldInput != 0 {
		// A message_delta of some servers says input_tokens 0 where message_start had the real count. A prompt that came
		// wholly from the cache says 0 too, but then there are cached tokens beside it.
		if seen.prompt > 0 || r.prompt == 0 || seen.read+seen.write > 0 {
			r.prompt, r.gross = seen.prompt, seen.gross
		}
	}
	if seen.known&FieldOutput != 0 {
		r.output = seen.output
	}
	if seen.known&FieldCacheRead != 0 {
		r.read = seen.read
	}
	if seen.known&FieldCacheWrite != 0 {
		r.write = seen.write
	}
	if seen.known&FieldReasoning != 0 {
		r.reasoning = seen.reasoning
	}
	r.known |= seen.known
	input := r.prompt
	if cached := r.read + r.write; r.gross && r.known&FieldInput != 0 && cached <= input {
		input -= cached // more cached than prompt tokens: this upstream counts them beside the prompt
	}
	o.Usage = Usage{Input: input, Output: r.output, CacheRead: r.read, CacheWrite: r.write, Reasoning: r.reasoning,
		Known: r.known}
}

// readTimings takes in the engine's own timings (vLLM: "metrics").
func (o *Observation) readTimings(c *cursor) {
	if !c.object() {
		return
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "time_to_first_token_ms":
			if ms, ok := c.number(); ok {
				o.ReportedTTFT, o.Reported = ms, true
			}
		case "queue_time_ms":
			if ms, ok := c.number(); ok {
				o.ReportedQueue = ms
			}
		default:
			c.skip()
		}
	}
}
