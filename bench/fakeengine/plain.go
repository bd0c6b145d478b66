package fakeengine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// plainRoute is a path that generates nothing.
type plainRoute struct {
	methods string // blank-separated
	handle  func(*exchange)
}

var plainRoutes map[string]plainRoute

func init() { // a literal would refer to itself through the handlers
	plainRoutes = map[string]plainRoute{
		"/v1/models":                   {"GET", (*exchange).serveModels},
		"/health":                      {"GET", (*exchange).serveHealth},
		"/ping":                        {"GET POST", (*exchange).serveHealth},
		"/version":                     {"GET", (*exchange).serveVersion},
		"/load":                        {"GET", (*exchange).serveLoad},
		"/metrics":                     {"GET", (*exchange).serveMetrics},
		"/tokenize":                    {"POST", (*exchange).serveTokenize},
		"/v1/tokenize":                 {"POST", (*exchange).serveTokenize},
		"/v1/messages/count_tokens":    {"POST", (*exchange).serveCountTokens},
		"/v1/embeddings":               {"POST", (*exchange).serveEmbeddings},
		"/v1/rerank":                   {"POST", (*exchange).serveScores},
		"/v1/score":                    {"POST", (*exchange).serveScores},
		"/inference/v1/abort_requests": {"POST", (*exchange).serveAbortRequests},
		"/abort_request":               {"POST", (*exchange).serveAbortRequest},
		"/server_info":                 {"GET", (*exchange).serveServerInfo},
		"/get_server_info":             {"GET", (*exchange).serveServerInfo},
		"/v1/loads":                    {"GET", (*exchange).serveLoads},
	}
}

func (x *exchange) serveHealth() {
	if x.e.currentMode() == modeDead {
		x.respond(503, nil)
		return
	}
	x.respond(200, nil)
}

func (x *exchange) serveVersion() {
	x.json(200, fmt.Appendf(nil, `{"version":%s}`, quote(version)))
}

// serveLoad answers as a server with load tracking does.
func (x *exchange) serveLoad() {
	s := x.e.Stats()
	x.json(200, fmt.Appendf(nil, `{"server_load":%d}`, s.Running+s.Waiting))
}

func (x *exchange) serveModels() {
	now, model := time.Now().Unix(), quote(x.e.o.Model)
	b := fmt.Appendf(nil, `{"object":"list","data":[{"id":%s,"object":"model","created":%d,"owned_by":%s,"root":%s,"parent":null,"max_model_len":%d`,
		model, now, quote(x.e.owner()), model, x.e.o.MaxModelLen)
	if x.e.o.Flavor == VLLM {
		b = fmt.Appendf(b, `,"permission":[{"id":%s,"object":"model_permission","created":%d,"allow_create_engine":false,"allow_sampling":true,"allow_logprobs":true,"allow_search_indices":false,"allow_view":true,"allow_fine_tuning":false,"organization":"*","group":null,"is_blocking":false}]`,
			quote(x.e.newID("modelperm-")), now)
	}
	x.json(200, append(b, "}]}"...))
}

func (e *Engine) owner() string {
	if e.o.Flavor == SGLang {
		return "sglang"
	}
	return "vllm"
}

// small reads the body of a route that generates nothing; it answers itself when the body is refused.
func (x *exchange) small() (*requestBody, bool) {
	var b requestBody
	if err := json.Unmarshal(x.raw, &b); err != nil {
		x.refuse(badJSON(x.raw, err))
		return nil, false
	}
	c := &call{api: x.api, body: b}
	if b.Model != nil {
		c.model = *b.Model
	}
	x.update(func(l *RequestLog) { l.Model = c.model })
	fail := x.e.validate(c)
	if fail == nil {
		fail = x.e.unavailable()
	}
	if fail != nil {
		x.refuse(fail)
		return nil, false
	}
	b.Model = &c.model
	return &b, true
}

// rendered is what the tokenizer would see.
func (b *requestBody) rendered() []byte {
	return slices.Concat(b.Tools, b.System, b.Messages, b.Prompt, b.Input)
}

func (x *exchange) serveTokenize() {
	b, ok := x.small()
	if !ok {
		return
	}
	n := promptTokens(b.rendered())
	out := fmt.Appendf(nil, `{"count":%d,"max_model_len":%d,"tokens":[`, n, x.e.o.MaxModelLen)
	for i := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, "%d", i%32000)
	}
	x.json(200, append(out, `],"token_strs":null}`...))
}

func (x *exchange) serveCountTokens() {
	if x.e.o.Flavor == SGLang {
		x.notFound()
		return
	}
	b, ok := x.small()
	if !ok {
		return
	}
	n := promptTokens(b.rendered())
	x.json(200, fmt.Appendf(nil, `{"input_tokens":%d,"context_management":{"original_input_tokens":%d}}`, n, n))
}

func (x *exchange) serveEmbeddings() {
	b, ok := x.small()
	if !ok {
		return
	}
	if len(b.Input) == 0 {
		x.refuse(missing("input", x.raw))
		return
	}
	inputs := 1
	var list []json.RawMessage
	if json.Unmarshal(b.Input, &list) == nil {
		inputs = len(list)
	}
	out := fmt.Appendf(nil, `{"id":%s,"object":"list","created":%d,"model":%s,"data":[`, quote(x.e.newID("embd-")), time.Now().Unix(), quote(*b.Model))
	for i := range inputs {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, `{"index":%d,"object":"embedding","embedding":[`, i)
		for d := range 8 {
			if d > 0 {
				out = append(out, ',')
			}
			out = fmt.Appendf(out, "%.6f", float64(mix(uint64(i*8+d))%2000)/1000-1)
		}
		out = append(out, ']', '}')
	}
	n := promptTokens(b.Input)
	x.json(200, fmt.Appendf(out, `],"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":0,"prompt_tokens_details":null}}`, n, n))
}

// serveScores answers rerank and score with one plain result.
func (x *exchange) serveScores() {
	b, ok := x.small()
	if !ok {
		return
	}
	x.json(200, fmt.Appendf(nil, `{"id":%s,"object":"list","created":%d,"model":%s,"data":[{"index":0,"object":"score","score":0.5}],"results":[{"index":0,"relevance_score":0.5}],"usage":{"prompt_tokens":%d,"total_tokens":%d}}`,
		quote(x.e.newID("score-")), time.Now().Unix(), quote(*b.Model), promptTokens(x.raw), promptTokens(x.raw)))
}

// serveAbortRequests is the abort endpoint that needs --enable-scale-out.
func (x *exchange) serveAbortRequests() {
	if !x.e.o.ScaleOut {
		x.refuse(&apiError{403, "PermissionDeniedError", "Scale-out endpoints are disabled. Restart vllm serve with --enable-scale-out to enable them.", ""})
		return
	}
	var v struct {
		IDs []string `json:"request_ids"`
	}
	if err := json.Unmarshal(x.raw, &v); err != nil {
		x.refuse(badJSON(x.raw, err))
		return
	}
	x.e.core.abortIDs(v.IDs...)
	x.respond(200, nil)
}
