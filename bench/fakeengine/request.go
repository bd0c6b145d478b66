package fakeengine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
)

// call is a parsed request of one of the generating APIs.
type call struct {
	api          string
	model        string
	stream       bool
	maxTokens    int // -1 = absent
	n            int
	ignoreEOS    bool
	usage        bool // include_usage
	continuous   bool // continuous_usage_stats
	interval     int  // tokens per event after the first; less than 1 = 1
	bodyID       string
	prompt       []byte   // everything the model reads, as bytes
	prompts      [][]byte // completions may have several
	promptTokens int      // of the first prompt
	digest       uint64
	wantsTool    bool
	tools        []toolSpec
	body         requestBody
}

type toolSpec struct {
	Name   string
	Schema json.RawMessage
}

type requestBody struct {
	Model         *string         `json:"model"`
	Messages      json.RawMessage `json:"messages"`
	Prompt        json.RawMessage `json:"prompt"`
	Input         json.RawMessage `json:"input"`
	System        json.RawMessage `json:"system"`
	Instructions  json.RawMessage `json:"instructions"`
	Tools         json.RawMessage `json:"tools"`
	ToolChoice    json.RawMessage `json:"tool_choice"`
	Stream        *bool           `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
		Continuous   bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
	MaxTokens           *int     `json:"max_tokens"`
	MaxCompletionTokens *int     `json:"max_completion_tokens"`
	MaxOutputTokens     *int     `json:"max_output_tokens"`
	N                   *int     `json:"n"`
	Temperature         *float64 `json:"temperature"`
	TopP                *float64 `json:"top_p"`
	IgnoreEOS           bool     `json:"ignore_eos"`
	StreamInterval      int      `json:"stream_interval"`
	RequestID           string   `json:"request_id"`
	RID                 string   `json:"rid"`
}

// maxChoices bounds n.
const maxChoices = 128

// parse reads and validates a body of a generating API.
func (e *Engine) parse(api string, body []byte) (*call, *apiError) {
	c := &call{api: api, maxTokens: -1, n: 1}
	if err := json.Unmarshal(body, &c.body); err != nil {
		return c, badJSON(body, err)
	}
	b := &c.body
	if b.Model != nil {
		c.model = *b.Model
	}
	c.stream = b.Stream != nil && *b.Stream
	if b.N != nil && (api == "chat" || api == "completions") {
		c.n = min(max(*b.N, 1), maxChoices)
	}
	if b.StreamOptions != nil {
		c.usage = b.StreamOptions.IncludeUsage
		c.continuous = c.usage && b.StreamOptions.Continuous
	}
	c.ignoreEOS, c.interval = b.IgnoreEOS, b.StreamInterval
	c.bodyID = b.RequestID
	if e.o.Flavor == SGLang && b.RID != "" {
		c.bodyID = b.RID
	}
	if fail := c.readPrompt(body); fail != nil {
		return c, fail
	}
	if fail := e.validate(c); fail != nil {
		return c, fail
	}
	c.promptTokens = promptTokens(c.prompts[0])
	for _, p := range c.prompts {
		if limit := e.o.MaxModelLen; promptTokens(p) >= limit {
			return c, tooLong(limit)
		}
	}
	h := fnv.New64a()
	_, _ = h.Write(c.prompt) // a hash never fails
	c.digest = h.Sum64()
	c.readTools()
	return c, nil
}

// tokenBytes is the engine's tokenizer: so many bytes are a token.
const tokenBytes = 4

func promptTokens(prompt []byte) int { return max((len(prompt)+tokenBytes-1)/tokenBytes, 1) }

// readPrompt gathers what the model reads, in rendered order: tools, system, then the turns.
func (c *call) readPrompt(body []byte) *apiError {
	b := &c.body
	var turns json.RawMessage
	switch c.api {
	case "chat", "messages":
		if turns = b.Messages; len(turns) == 0 {
			return missing("messages", body)
		}
	case "completions":
		if turns = b.Prompt; len(turns) == 0 {
			return &apiError{400, "BadRequestError", "Either prompt or prompt_embeds must be provided and non-empty. (parameter=prompt)", "prompt"}
		}
	case "responses":
		if turns = b.Input; len(turns) == 0 {
			return missing("input", body)
		}
	}
	if c.api == "messages" && b.Model == nil {
		return missing("model", body)
	}
	c.prompt = bytes.Join([][]byte{b.Tools, b.System, b.Instructions, turns}, nil)
	c.prompts = [][]byte{c.prompt}
	var texts []string
	if c.api == "completions" && json.Unmarshal(turns, &texts) == nil && len(texts) > 0 {
		c.prompts = nil
		for _, t := range texts {
			c.prompts = append(c.prompts, []byte(t))
		}
	}
	return nil
}

// validate checks what vLLM checks before it answers.
func (e *Engine) validate(c *call) *apiError {
	b := &c.body
	if b.StreamOptions != nil && !c.stream {
		return &apiError{400, "BadRequestError", "Stream options can only be defined when `stream=True`. (parameter=stream_options)", "stream_options"}
	}
	if t := b.Temperature; t != nil && (*t < 0 || *t > 2) {
		return &apiError{400, "BadRequestError", fmt.Sprintf("temperature must be in [0, 2], got %.1f. (parameter=temperature, value=%.1f)", *t, *t), "temperature"}
	}
	switch {
	case b.Model == nil:
		c.model = e.o.Model
	case !e.o.AnyModel && c.model != e.o.Model:
		return &apiError{404, "NotFoundError", fmt.Sprintf("The model `%s` does not exist. Valid aliases: %s.", c.model, e.o.Model), "model"}
	}
	field := "max_tokens"
	limit := b.MaxTokens
	switch {
	case c.api == "responses":
		field, limit = "max_output_tokens", b.MaxOutputTokens
	case c.api == "messages":
		field = "max_completion_tokens" // the chat field that it is translated to
	case c.api == "chat" && b.MaxCompletionTokens != nil:
		field, limit = "max_completion_tokens", b.MaxCompletionTokens
	}
	if limit != nil {
		c.maxTokens = max(*limit, 0)
		if c.maxTokens > e.o.MaxModelLen {
			return &apiError{400, "BadRequestError", fmt.Sprintf("%s=%d cannot be greater than max_model_len=%d. Please request fewer output tokens. (parameter=%s, value=%d)",
				field, c.maxTokens, e.o.MaxModelLen, field, c.maxTokens), field}
		}
	}
	return nil
}

// readTools decides whether the answer is a tool call: the prompt asks for one and no tool has answered
// since.
func (c *call) readTools() {
	if c.api == "completions" || !bytes.Contains(c.prompt, []byte(WordUseTool)) {
		return
	}
	turns := c.body.Messages
	if c.api == "responses" {
		turns = c.body.Input
	}
	asked, answered := 0, -1
	var list []json.RawMessage
	if json.Unmarshal(turns, &list) == nil {
		for i, turn := range list {
			if bytes.Contains(turn, []byte(WordUseTool)) {
				asked = i
			}
			if isToolResult(turn) {
				answered = i
			}
		}
	}
	c.wantsTool = asked > answered
	if !c.wantsTool {
		return
	}
	var tools []struct {
		Name        string          `json:"name"`
		Parameters  json.RawMessage `json:"parameters"`
		InputSchema json.RawMessage `json:"input_schema"`
		Function    *struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
	if json.Unmarshal(c.body.Tools, &tools) != nil {
		return
	}
	for _, t := range tools {
		switch {
		case t.Function != nil:
			c.tools = append(c.tools, toolSpec{t.Function.Name, t.Function.Parameters})
		case len(t.InputSchema) > 0:
			c.tools = append(c.tools, toolSpec{t.Name, t.InputSchema})
		case t.Name != "":
			c.tools = append(c.tools, toolSpec{t.Name, t.Parameters})
		}
	}
}

func isToolResult(turn json.RawMessage) bool {
	var t struct {
		Role    string          `json:"role"`
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(turn, &t) != nil {
		return false
	}
	if t.Role == "tool" || t.Type == "function_call_output" || t.Type == "custom_tool_call_output" {
		return true
	}
	var parts []struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(t.Content, &parts) != nil {
		return false
	}
	for _, p := range parts {
		if p.Type == "tool_result" {
			return true
		}
	}
	return false
}
