package fakeengine

import (
	"encoding/json"
	"errors"
	"fmt"
)

// apiError is a refusal in vLLM's words.
type apiError struct {
	status  int
	kind    string
	message string
	param   string // "" = null
}

const (
	deathMessage = "EngineCore encountered an issue. See stack trace (above) for the root cause."
	busyMessage  = "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance."
	drainMessage = "cannot schedule new futures after shutdown"
)

func serverError(message string) *apiError {
	return &apiError{500, "InternalServerError", message, ""}
}

func badJSON(body []byte, err error) *apiError {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return &apiError{400, "Bad Request", fmt.Sprintf("1 validation error:\n  {'type': '%s_type', 'loc': 'body.%s', 'msg': 'Input should be a valid %s', 'input': '<%s>'}",
			wrong.Type, wrong.Field, wrong.Type, wrong.Value), "body." + wrong.Field}
	case errors.As(err, &syntax):
		at := int(syntax.Offset) - 1
		if at+1 >= len(body) { // it ended too soon
			at = len(body)
		}
		loc := fmt.Sprintf("body.%d", max(at, 0))
		return &apiError{400, "Bad Request", fmt.Sprintf("1 validation error:\n  {'type': 'json_invalid', 'loc': '%s', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', 'ctx': {'error': 'Expecting property name enclosed in double quotes'}}",
			loc), loc}
	}
	return &apiError{400, "Bad Request", err.Error(), "body"}
}

func missing(field string, body []byte) *apiError {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(body, &m) // it was an object a moment ago; the count is decoration
	return &apiError{400, "Bad Request", fmt.Sprintf("1 validation error:\n  {'type': 'missing', 'loc': 'body.%s', 'msg': 'Field required', 'input': '<dict of %d items>'}",
		field, len(m)), "body." + field}
}

func tooLong(limit int) *apiError {
	return &apiError{400, "BadRequestError", fmt.Sprintf("This model's maximum context length is %d tokens. However, your prompt contains at least %d input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=%d)",
		limit, limit+1, limit+1), "input_tokens"}
}

// body renders the error in the envelope of the route. Validation errors of the framework have OpenAI's
// envelope on every route; SGLang's is flat.
func (a *apiError) body(api string, flavor Flavor) []byte {
	param := "null"
	if a.param != "" {
		param = quote(a.param)
	}
	switch {
	case (api == "messages" || api == "count_tokens") && a.kind != "Bad Request":
		return fmt.Appendf(nil, `{"type":"error","error":{"type":%s,"message":%s}}`, quote(a.kind), quote(a.message))
	case flavor == SGLang:
		return fmt.Appendf(nil, `{"object":"error","message":%s,"type":%s,"param":%s,"code":%d}`, quote(a.message), quote(a.kind), param, a.status)
	}
	return fmt.Appendf(nil, `{"error":{"message":%s,"type":%s,"param":%s,"code":%d}}`, quote(a.message), quote(a.kind), param, a.status)
}

// statusKind is the error type that a default body of a scripted status has.
func statusKind(status int, anthropic bool) string {
	if anthropic {
		if k, ok := map[int]string{
			400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
			404: "not_found_error", 413: "request_too_large", 422: "invalid_request_error", 429: "rate_limit_error", 529: "overloaded_error",
		}[status]; ok {
			return k
		}
		return "api_error"
	}
	if k, ok := map[int]string{
		400: "BadRequestError", 401: "AuthenticationError", 403: "PermissionDeniedError", 404: "NotFoundError",
		422: "UnprocessableEntityError", 429: "RateLimitError", 503: "Service Unavailable",
	}[status]; ok {
		return k
	}
	return "InternalServerError"
}

// scriptedBody is the default body of a scripted status: 502 is a proxy's page, 503 of a scaling server is a
// string, the rest has the route's envelope.
func scriptedBody(status int, api string) (body []byte, contentType string) {
	switch status {
	case 502:
		return []byte("<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"), "text/html"
	case 503:
		return []byte(`{"error":"The model is currently scaling. Please try again later."}`), "application/json"
	}
	a := &apiError{status: status, kind: statusKind(status, api == "messages"), message: fmt.Sprintf("scripted status %d", status)}
	return a.body(api, VLLM), "application/json"
}
