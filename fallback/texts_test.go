package fallback

import (
	"strings"
	"testing"
)

// One message as servers write it for every text that is read, by the text.
var messages = map[string]string{
	"context_length_exceeded":                    `{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
	"maximum context length":                     "This model's maximum context length is 8192 tokens. However, your prompt contains at least 8193 input tokens.",
	"prompt is too long":                         "prompt is too long: 210000 tokens > 200000 maximum",
	"longer than the model's con":                "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
	"exceed_context_size":                        `{"error":{"code":400,"message":"too many tokens","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}`,
	"exceeds the available context size":         "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
	"cannot schedule new futures after shutdown": "cannot schedule new futures after shutdown",
}

func TestEveryTextThatIsReadDecides(t *testing.T) {
	lists := map[Kind][][]byte{ContextLength: contextLengthTexts, Draining: drainingTexts}
	status := map[Kind]int{ContextLength: 400, Draining: 500}
	seen := 0
	for want, texts := range lists {
		for _, text := range texts {
			t.Run(string(text), func(t *testing.T) {
				equal(t, "the list is in lower case", string(text), strings.ToLower(string(text)))
				message, ok := messages[string(text)]
				if !ok {
					t.Fatal("this text has no message in the test")
				}
				for _, m := range []string{message, strings.ToUpper(message), "{\"error\":\"" + message + "\"}"} {
					equal(t, m, kindOf(Failure{Status: status[want], JSON: true, Message: []byte(m)}), want)
				}
			})
			seen++
		}
	}
	equal(t, "messages in the test", len(messages), seen)
}

func TestTextsDecideOnlyWhereTheStatusLeavesItOpen(t *testing.T) {
	tooLong := []byte("This model's maximum context length is 8192 tokens")
	leaving := []byte("cannot schedule new futures after shutdown")
	for _, c := range []struct {
		name    string
		failure Failure
		want    Kind
	}{
		{"413 and 422 may say it too", Failure{Status: 413, Message: tooLong}, ContextLength},
		{"422", Failure{Status: 422, Message: tooLong}, ContextLength},
		{"a 500 that speaks of the context is the server's", Failure{Status: 500, Message: tooLong}, Status5xx},
		{"a 404 is a model we configured", Failure{Status: 404, Message: tooLong}, NotFound},
		{"a 429 is a limit", Failure{Status: 429, Message: tooLong}, Pressure},
		{"a 400 of a client that quotes the engine", Failure{Status: 400, Message: leaving}, ClientError},
		{"what the connection did comes first", Failure{Kind: Cut, Status: 400, Message: tooLong}, Cut},
		{"no message", Failure{Status: 400}, ClientError},
		{"no message, 500", Failure{Status: 500}, Status5xx},
		{"almost the text", Failure{Status: 400, Message: []byte("maximum context")}, ClientError},
	} {
		t.Run(c.name, func(t *testing.T) { equal(t, "kind", kindOf(c.failure), c.want) })
	}
}

func kindOf(f Failure) Kind {
	k, _ := Classify(f)
	return k
}
