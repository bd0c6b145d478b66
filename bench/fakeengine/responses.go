package fakeengine

import (
	"encoding/json"
	"fmt"
	"strings"
)

// responses writes /v1/responses.
type responses struct {
	buf      []byte
	sequence int
	items    []string // rendered, finished
	itemID   string
	item     kind
	begun    bool
	call     int
	text     strings.Builder
	stop     string
}

// open writes the two events that say nothing about tokens yet.
func (r *responses) open(x *exchange) {
	for _, name := range []string{"response.created", "response.in_progress"} {
		r.send(x, evPlain, name, `{"response":%s,"sequence_number":%d,"type":"%s"}`, r.response(x, "in_progress"), r.sequence, name)
	}
}

func (r *responses) begin(*exchange, *lane) {}

func (r *responses) token(x *exchange, _ *lane, p piece, reason string) {
	if reason != "" {
		r.stop = reason
	}
	switch {
	case p.kind == kindNothing:
	case p.kind == kindToolName:
		r.endItem(x)
		r.call = p.call
		r.startItem(x, kindToolArgs)
	case p.text == "": // half a character gives no event
	default:
		if !r.begun || r.item != p.kind {
			r.endItem(x)
			r.startItem(x, p.kind)
		}
		r.delta(x, p)
	}
}

func (r *responses) delta(x *exchange, p piece) {
	r.text.WriteString(p.text)
	d, id, at := quote(p.text), quote(r.itemID), len(r.items)
	switch p.kind {
	case kindText:
		r.send(x, evContent, "response.output_text.delta", `{"content_index":0,"delta":%s,"item_id":%s,"logprobs":[],"output_index":%d,"sequence_number":%d,"type":"response.output_text.delta"}`, d, id, at, r.sequence)
	case kindReasoning:
		r.send(x, evContent, "response.reasoning_text.delta", `{"content_index":0,"delta":%s,"item_id":%s,"output_index":%d,"sequence_number":%d,"type":"response.reasoning_text.delta"}`, d, id, at, r.sequence)
	default:
		r.send(x, evContent, "response.function_call_arguments.delta", `{"delta":%s,"item_id":%s,"output_index":%d,"sequence_number":%d,"type":"response.function_call_arguments.delta"}`, d, id, at, r.sequence)
	}
}

func (r *responses) startItem(x *exchange, k kind) {
	r.newItem(x, k)
	r.begun = true
	at := len(r.items)
	ev := evPlain
	if k == kindToolArgs {
		ev = evContent // the name of the tool
	}
	r.send(x, ev, "response.output_item.added", `{"item":%s,"output_index":%d,"sequence_number":%d,"type":"response.output_item.added"}`, r.render(x, "in_progress"), at, r.sequence)
	part := ""
	switch k {
	case kindText:
		part = `{"annotations":[],"text":"","type":"output_text","logprobs":[]}`
	case kindReasoning:
		part = `{"text":"","type":"reasoning_text"}`
	default:
		return
	}
	r.send(x, evPlain, "response.content_part.added", `{"content_index":0,"item_id":%s,"output_index":%d,"part":%s,"sequence_number":%d,"type":"response.content_part.added"}`, quote(r.itemID), at, part, r.sequence)
}

func (r *responses) newItem(x *exchange, k kind) {
	prefix := map[kind]string{kindText: "msg_", kindReasoning: "rs_", kindToolArgs: "fc_"}[k]
	r.itemID, r.item = x.e.newID(prefix), k
	r.text.Reset()
}

func (r *responses) endItem(x *exchange) {
	if !r.begun {
		return
	}
	r.begun = false
	at, id, text := len(r.items), quote(r.itemID), quote(r.text.String())
	switch r.item {
	case kindText:
		r.send(x, evPlain, "response.output_text.done", `{"content_index":0,"item_id":%s,"logprobs":[],"output_index":%d,"sequence_number":%d,"text":%s,"type":"response.output_text.done"}`, id, at, r.sequence, text)
	case kindReasoning:
		r.send(x, evPlain, "response.reasoning_text.done", `{"content_index":0,"item_id":%s,"output_index":%d,"sequence_number":%d,"text":%s,"type":"response.reasoning_text.done"}`, id, at, r.sequence, text)
	default:
		r.send(x, evPlain, "response.function_call_arguments.done", `{"arguments":%s,"item_id":%s,"output_index":%d,"sequence_number":%d,"type":"response.function_call_arguments.done","name":%s}`,
			text, id, at, r.sequence, quote(x.answer.calls[r.call].name))
	}
	if r.item != kindToolArgs {
		r.send(x, evPlain, "response.content_part.done", `{"content_index":0,"item_id":%s,"output_index":%d,"part":%s,"sequence_number":%d,"type":"response.content_part.done"}`, id, at, r.part(), r.sequence)
	}
	item := r.render(x, "completed")
	r.send(x, evPlain, "response.output_item.done", `{"item":%s,"output_index":%d,"sequence_number":%d,"type":"response.output_item.done"}`, item, at, r.sequence)
	r.items = append(r.items, item)
}

func (r *responses) part() string {
	if r.item == kindReasoning {
		return `{"text":` + quote(r.text.String()) + `,"type":"reasoning_text"}`
	}
	return `{"annotations":[],"text":` + quote(r.text.String()) + `,"type":"output_text","logprobs":null}`
}

// render gives the open item as it stands.
func (r *responses) render(x *exchange, status string) string {
	id := quote(r.itemID)
	content := "[" + r.part() + "]"
	switch r.item {
	case kindText:
		if status == "in_progress" {
			content = "[]"
		}
		return fmt.Sprintf(`{"id":%s,"content":%s,"role":"assistant","status":%q,"type":"message","phase":null}`, id, content, status)
	case kindReasoning:
		if status == "in_progress" {
			content = "null"
		}
		return fmt.Sprintf(`{"id":%s,"summary":[],"type":"reasoning","content":%s,"encrypted_content":null,"status":%q}`, id, content, status)
	}
	t := x.answer.calls[r.call]
	return fmt.Sprintf(`{"arguments":%s,"call_id":%s,"name":%s,"type":"function_call","id":%s,"async":null,"caller":null,"namespace":null,"status":%q}`,
		quote(r.text.String()), quote(t.id), quote(t.name), id, status)
}

func (r *responses) finish(_ *exchange, _ *lane, reason string) { r.stop = reason }

// close ends with the one terminal event that vLLM has; a token limit is told inside it.
func (r *responses) close(x *exchange) {
	r.endItem(x)
	r.send(x, evTerminal, "response.completed", `{"response":%s,"sequence_number":%d,"type":"response.completed"}`, r.response(x, r.status()), r.sequence)
}

func (r *responses) status() string {
	if r.stop == "length" || r.stop == "abort" {
		return "incomplete"
	}
	return "completed"
}

// response renders the response object.
func (r *responses) response(x *exchange, status string) string {
	b := &x.c.body
	details, usage, metrics := "null", "null", ""
	if status != "in_progress" {
		if r.stop == "length" {
			details = `{"reason":"max_output_tokens"}`
		}
		if x.fault(NoUsage) == nil {
			usage = r.usage(x)
		}
		if x.e.o.RequestMetrics {
			metrics = `"metrics":` + string(x.metrics(nil, true)) + `,`
		}
	}
	limit := "null"
	if b.MaxOutputTokens != nil {
		limit = fmt.Sprint(*b.MaxOutputTokens)
	}
	number := func(v *float64, otherwise float64) string {
		if v == nil {
			return float(otherwise)
		}
		return float(*v)
	}
	choice := rawOr(b.ToolChoice, `"auto"`)
	if len(b.Tools) == 0 {
		choice = `"none"`
	}
	return fmt.Sprintf(`{"id":%s,"created_at":%d,"incomplete_details":%s,"instructions":%s,"metadata":null,"model":%s,"object":"response","output":[%s],"parallel_tool_calls":true,"temperature":%s,"tool_choice":%s,"tools":%s,"top_p":%s,"background":false,"max_output_tokens":%s,"max_tool_calls":null,"previous_response_id":null,"prompt":null,"reasoning":null,"service_tier":"auto","status":%q,"text":null,"top_logprobs":null,"truncation":"disabled","usage":%s,"user":null,%s"presence_penalty":0.0,"frequency_penalty":0.0,"kv_transfer_params":null,"ec_transfer_params":null,"input_messages":null,"output_messages":null}`,
		quote(x.id), x.born, details, rawOr(b.Instructions, "null"), quote(x.c.model), strings.Join(r.items, ","), number(b.Temperature, 1), choice,
		rawOr(b.Tools, "[]"), number(b.TopP, 1), limit, status, usage, metrics)
}

func rawOr(raw json.RawMessage, otherwise string) string {
	if len(raw) == 0 {
		return otherwise
	}
	return string(raw)
}

// usage always has the cached tokens on this route.
func (r *responses) usage(x *exchange) string {
	prompt, cached, completion, reasoning := x.totals()
	return fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d,"cache_write_tokens":0,"input_tokens_per_turn":[],"cached_tokens_per_turn":[]},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d,"tool_output_tokens":0,"output_tokens_per_turn":[],"tool_output_tokens_per_turn":[]},"total_tokens":%d}`,
		prompt, cached, completion, reasoning, prompt+completion)
}

func (r *responses) send(x *exchange, k eventKind, name, format string, args ...any) {
	r.sequence++ // args were evaluated before: the first event has number 0
	r.buf = namedEvent(r.buf[:0], name, format, args...)
	x.out.emit(x, r.buf, k)
}

func (r *responses) done(*exchange) {}

// fail: vLLM cuts the connection without a word; SGLang has an event.
func (r *responses) fail(x *exchange, message string) {
	x.out.head(x)
	if x.e.o.Flavor == VLLM {
		x.out.kill = true
		return
	}
	x.out.put(x, namedEvent(nil, "response.failed", `{"response":{"id":%s,"object":"response","status":"failed","error":{"code":"server_error","message":%s}},"sequence_number":%d,"type":"response.failed"}`,
		quote(x.id), quote(message), r.sequence))
}

// body collects the same items without sending anything.
func (r *responses) body(x *exchange) []byte {
	l := x.lanes[0]
	r.stop = x.finishReason(l)
	collect := func(k kind, text string) {
		r.newItem(x, k)
		r.text.WriteString(text)
		r.items = append(r.items, r.render(x, "completed"))
	}
	for _, k := range []kind{kindReasoning, kindText} {
		if text := x.answer.text(0, l.sent, k); text != "" {
			collect(k, text)
		}
	}
	for i := range x.answer.calls {
		r.call = i
		collect(kindToolArgs, x.answer.toolArgs(l.sent, i))
	}
	return []byte(r.response(x, r.status()))
}
