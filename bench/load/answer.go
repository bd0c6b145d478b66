package load

import (
	"fmt"
	"strings"
)

// answerText is a script's text with its slots still named.
type answerText struct {
	opening, closing []string // events
	token            func(text string) string
	whole            string
}

func textOf(dialect string, n int) answerText {
	switch dialect {
	case "chat":
		return chatText(n)
	case "messages":
		return messagesText(n)
	}
	return responsesText(n)
}

func event(name, data string) string {
	if name == "" {
		return "data: " + data + "\n\n"
	}
	return "event: " + name + "\ndata: " + data + "\n\n"
}

// wholeWords is the text of an answer without stream: the marks of one token, then about four bytes a token.
func wholeWords(n int) string {
	return "~R{R}" + tokenMark + strings.Repeat("pad ", n)
}

func chatText(n int) answerText {
	const id = `"id":"chatcmpl-{I}","created":1767225600,"model":"bench-model"`
	usage := fmt.Sprintf(`"usage":{"prompt_tokens":100,"completion_tokens":%d,"total_tokens":%d}`, n, n+100)
	chunk := func(choices, rest string) string {
		return event("", `{`+id+`,"object":"chat.completion.chunk","choices":[`+choices+`]`+rest+`}`)
	}
	choice := func(delta, finish string) string {
		return `{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":` + finish + `}`
	}
	return answerText{
		opening: []string{chunk(choice(`{"role":"assistant","content":""}`, `null`), "")},
		token:   func(t string) string { return chunk(choice(`{"content":"`+t+`"}`, `null`), "") },
		closing: []string{chunk(choice(`{}`, `"stop"`), ""), chunk("", ","+usage), event("", "[DONE]")},
		whole: `{` + id + `,"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"` +
			wholeWords(n) + `"},"logprobs":null,"finish_reason":"stop"}],` + usage + `}`,
	}
}

func messagesText(n int) answerText {
	typed := func(name, rest string) string { return event(name, `{"type":"`+name+`"`+rest+`}`) }
	const message = `"id":"msg_{I}","type":"message","role":"assistant","model":"bench-model"`
	usage := func(output int) string {
		return fmt.Sprintf(`"usage":{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":%d}`, output)
	}
	return answerText{
		opening: []string{
			typed("message_start", `,"message":{`+message+`,"content":[],"stop_reason":null,"stop_sequence":null,`+usage(1)+`}`),
			typed("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`),
			typed("ping", ""),
		},
		token: func(t string) string {
			return typed("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"`+t+`"}`)
		},
		closing: []string{
			typed("content_block_stop", `,"index":0`),
			typed("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":%d}`, n)),
			typed("message_stop", ""),
		},
		whole: `{` + message + `,"content":[{"type":"text","text":"` + wholeWords(n) + `"}],"stop_reason":"end_turn","stop_sequence":null,` + usage(n) + `}`,
	}
}

func responsesText(n int) answerText {
	typed := func(name, rest string) string {
		return event(name, `{"type":"`+name+`","sequence_number":{S},`+rest+`}`)
	}
	const at = `"item_id":"msg_{I}","output_index":0,"content_index":0,`
	part := func(text string) string {
		return `{"type":"output_text","text":"` + text + `","annotations":[]}`
	}
	item := func(status, content string) string {
		return `{"id":"msg_{I}","type":"message","status":"` + status + `","role":"assistant","content":[` + content + `]}`
	}
	usage := fmt.Sprintf(`{"input_tokens":100,"input_tokens_details":{"cached_tokens":0},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}`, n, n+100)
	response := func(status, output, usage string) string {
		return `{"id":"resp_{I}","object":"response","created_at":1767225600,"status":"` + status + `","error":null,"model":"bench-model","output":[` +
			output + `],"tools":[],"usage":` + usage + `}`
	}
	done := item("completed", part("done"))
	return answerText{
		opening: []string{
			typed("response.created", `"response":`+response("in_progress", "", "null")),
			typed("response.output_item.added", `"output_index":0,"item":`+item("in_progress", "")),
			typed("response.content_part.added", at+`"part":`+part("")),
		},
		token: func(t string) string { return typed("response.output_text.delta", at+`"logprobs":[],"delta":"`+t+`"`) },
		closing: []string{
			typed("response.output_text.done", at+`"text":"done"`),
			typed("response.content_part.done", at+`"part":`+part("done")),
			typed("response.output_item.done", `"output_index":0,"item":`+done),
			typed("response.completed", `"response":`+response("completed", done, usage)),
		},
		whole: response("completed", item("completed", part(wholeWords(n))), usage),
	}
}
