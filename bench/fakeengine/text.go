package fakeengine

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Words that steer an answer when they stand in the prompt.
const (
	WordUseTool  = "FAKE-USE-TOOL"  // first turn: a call of the first tool (or of FAKE-USE-TOOL=name)
	WordUseTools = "FAKE-USE-TOOLS" // likewise two calls
	WordTokens   = "FAKE-TOKENS-"   // natural length: FAKE-TOKENS-12
	WordReason   = "FAKE-REASON-"   // reasoning tokens before the answer: FAKE-REASON-5
)

var (
	markerPattern = regexp.MustCompile(`MARK-[0-9a-f]+`)
	tokensPattern = regexp.MustCompile(WordTokens + `(\d{1,7})`)
	reasonPattern = regexp.MustCompile(WordReason + `(\d{1,7})`)
	toolPattern   = regexp.MustCompile(WordUseTool + `S?(?:=([A-Za-z0-9_.-]+))?`)
)

// markerEvery is the distance of two echoes of the prompt's marker, in tokens.
const markerEvery = 8

// vocabulary has words of one to four bytes per character. An empty token is the first half of a character
// that two tokens make up.
var vocabulary = []string{
	" the", " model", " answers", ",", " über", " naïve", "世界", "你好", " and", " tokens", "。", " flow", " 🙂", " to",
	" stream", "", "🚀", " αβγ", " one", " \"quoted\"", "\n", " back\\slash", " two", "、", " é", " more", " words", ".",
}

// kind says what a token is part of.
type kind int

const (
	kindText kind = iota
	kindReasoning
	kindToolName
	kindToolArgs
	kindNothing // swallowed by a parser: no event, or an empty delta when it is the last
)

// piece is the visible part of one token.
type piece struct {
	kind kind
	text string
	call int // number of the tool call
}

// toolCall is a call in an answer.
type toolCall struct {
	id, name string
	args     []string
}

// answer is the script of one answer: what each token says. It is fixed before the first step.
type answer struct {
	marker    string
	seed      uint64
	reasoning int
	calls     []toolCall
	total     int
	ending    int32
}

// piece returns token i of choice c.
func (a *answer) piece(c, i int) piece {
	if i < a.reasoning {
		return piece{kind: kindReasoning, text: a.word(c, i)}
	}
	if a.reasoning > 0 {
		if i == a.reasoning {
			return piece{kind: kindNothing} // the end of the thought
		}
		i--
	}
	if len(a.calls) == 0 {
		return piece{kind: kindText, text: a.word(c, i)}
	}
	i -= a.reasoning
	for n, call := range a.calls {
		if i == 0 {
			return piece{kind: kindToolName, text: call.name, call: n}
		}
		if i <= len(call.args) {
			return piece{kind: kindToolArgs, text: call.args[i-1], call: n}
		}
		i -= 1 + len(call.args)
	}
	return piece{kind: kindNothing}
}

func (a *answer) word(c, i int) string {
	if a.marker != "" && i%markerEvery == 0 {
		return " " + a.marker
	}
	if i == 0 {
		return "Fake"
	}
	return vocabulary[mix(a.seed+uint64(c)*0x9e3779b97f4a7c15+uint64(i))%uint64(len(vocabulary))]
}

// text joins the text (or the reasoning) of the first n tokens.
func (a *answer) text(c, n int, k kind) string {
	var b strings.Builder
	for i := range n {
		if p := a.piece(c, i); p.kind == k {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// toolArgs joins the arguments of call n among the first tokens.
func (a *answer) toolArgs(tokens, n int) string {
	var b strings.Builder
	for i := range tokens {
		if p := a.piece(0, i); p.kind == kindToolArgs && p.call == n {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// toolInput is the object of a call; arguments cut by the token limit are kept as text.
func (a *answer) toolInput(tokens, n int) string {
	args := a.toolArgs(tokens, n)
	if json.Valid([]byte(args)) {
		return args
	}
	return `{"partial":` + quote(args) + `}`
}

// mix is the finaliser of splitmix64.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// compose decides the answer to a call.
func (e *Engine) compose(c *call) *answer {
	a := &answer{seed: e.o.Seed ^ c.digest, ending: reasonStop}
	if all := markerPattern.FindAll(c.prompt, -1); len(all) > 0 {
		a.marker = string(all[len(all)-1])
	}
	natural := wordNumber(tokensPattern, c.prompt, e.o.DefaultTokens)
	a.reasoning = min(wordNumber(reasonPattern, c.prompt, 0), natural)
	if c.wantsTool {
		a.calls = e.composeCalls(c, a.marker)
		natural = a.reasoning + min(a.reasoning, 1) + 1
		for _, t := range a.calls {
			natural += 1 + len(t.args)
		}
		a.ending = reasonTools
	}
	a.total = natural
	if limit := c.maxTokens; limit >= 0 && (limit <= natural || c.ignoreEOS) {
		if limit < natural || c.ignoreEOS || len(a.calls) == 0 {
			a.ending = reasonLength
		}
		a.total = max(limit, 1)
	} else if c.ignoreEOS {
		a.total, a.ending = e.o.MaxModelLen-c.promptTokens, reasonLength
	}
	return a
}

func wordNumber(p *regexp.Regexp, prompt []byte, otherwise int) int {
	m := p.FindSubmatch(prompt)
	if m == nil {
		return otherwise
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		return otherwise
	}
	return max(n, 1)
}

func (e *Engine) composeCalls(c *call, marker string) []toolCall {
	all := toolPattern.FindAllSubmatch(c.prompt, -1)
	asked := all[len(all)-1]
	t := toolSpec{Name: "get_weather"}
	if i := slices.IndexFunc(c.tools, func(t toolSpec) bool { return t.Name == string(asked[1]) }); i >= 0 {
		t = c.tools[i]
	} else if len(c.tools) > 0 {
		t = c.tools[0]
	}
	calls := make([]toolCall, 1+bytes.Count(asked[0], []byte("TOOLS")))
	for i := range calls {
		args := sampleArguments(t.Schema, marker)
		calls[i] = toolCall{id: e.newID("chatcmpl-tool-"), name: t.Name, args: splitText(args, 6)}
	}
	return calls
}

// splitText cuts s into pieces of n characters.
func splitText(s string, n int) (out []string) {
	r := []rune(s)
	for len(r) > n {
		out = append(out, string(r[:n]))
		r = r[n:]
	}
	return append(out, string(r))
}

// sampleArguments makes up arguments that a JSON schema of a tool accepts: its required properties with the
// plainest values. Without required properties the marker is the only one.
func sampleArguments(schema json.RawMessage, marker string) string {
	var s schemaNode
	if json.Unmarshal(schema, &s) != nil || len(s.Required) == 0 {
		return `{"city":"世界","mark":` + quote(marker) + `}`
	}
	return string(s.object())
}

type schemaNode struct {
	Type       any                   `json:"type"`
	Enum       []json.RawMessage     `json:"enum"`
	Items      *schemaNode           `json:"items"`
	Properties map[string]schemaNode `json:"properties"`
	Required   []string              `json:"required"`
}

func (s schemaNode) object() []byte {
	out := []byte{'{'}
	for i, name := range s.Required {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendString(out, name)
		out = append(out, ':')
		out = append(out, s.Properties[name].sample(name)...)
	}
	return append(out, '}')
}

func (s schemaNode) sample(name string) []byte {
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	switch s.Type {
	case "integer", "number":
		return []byte("1")
	case "boolean":
		return []byte("false")
	case "array":
		if s.Items == nil {
			return []byte("[]")
		}
		return append(append([]byte{'['}, s.Items.sample(name)...), ']')
	case "object":
		return s.object()
	}
	if name == "command" || name == "cmd" {
		return []byte(`"echo fake"`)
	}
	return []byte(`"fake"`)
}
