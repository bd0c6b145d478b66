package wire

import "strconv"

// Error is an error that the gateway itself reports to a client.
type Error struct {
	// Status is the HTTP status. Type and Code are derived from it, per dialect, where they are empty. Messages has no
	// code. In a Responses stream the code is always one that its clients know.
	Status     int
	Type, Code string
	// Message is for people: any bytes, escaped here. RequestID is ours; it is left out where it is empty.
	Message, RequestID string
}

// commentKeepalive is one comment line and no blank line: a blank line would dispatch an empty event in parsers that
// remember an id.
const commentKeepalive = ": keepalive\n"

// appendAnthropicError appends {"type":"error","error":{...},"request_id":...}.
func appendAnthropicError(dst []byte, e Error) []byte {
	if e.Type == "" {
		e.Type = anthropicType(e.Status)
	}
	dst = append(dst, `{"type":"error","error":{"type":`...)
	dst = appendQuoted(dst, e.Type)
	dst = append(dst, `,"message":`...)
	dst = appendQuoted(dst, e.Message)
	dst = append(dst, '}')
	if e.RequestID != "" {
		dst = append(dst, `,"request_id":`...)
		dst = appendQuoted(dst, e.RequestID)
	}
	return append(dst, '}')
}

func anthropicType(status int) string {
	switch status {
	case 400, 405, 411, 415, 417, 422, 426, 431, 505:
		return "invalid_request_error"
	case 401:
		return "authentication_error"
	case 402:
		return "billing_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 408, 504:
		return "timeout_error"
	case 409:
		return "conflict_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 503, 529:
		return "overloaded_error"
	}
	return "api_error"
}

// appendOpenAIError appends {"error":{"message","type","param","code","request_id"}}.
func appendOpenAIError(dst []byte, e Error) []byte {
	typ, code := openAIType(e.Status)
	if e.Type != "" {
		typ = e.Type
	}
	if e.Code != "" {
		code = e.Code
	}
	dst = append(dst, `{"error":{"message":`...)
	dst = appendQuoted(dst, e.Message)
	dst = append(dst, `,"type":`...)
	dst = appendQuoted(dst, typ)
	dst = append(dst, `,"param":null,"code":`...)
	if code == "" {
		dst = append(dst, "null"...)
	} else {
		dst = appendQuoted(dst, code)
	}
	if e.RequestID != "" {
		dst = append(dst, `,"request_id":`...)
		dst = appendQuoted(dst, e.RequestID)
	}
	return append(dst, "}}"...)
}

// openAIType returns the type and the code that stand for a status; the code may be empty.
func openAIType(status int) (typ, code string) {
	switch status {
	case 401:
		return "authentication_error", "invalid_api_key"
	case 402:
		return "insufficient_quota", "insufficient_quota"
	case 403:
		return "permission_error", "permission_denied"
	case 408:
		return "invalid_request_error", "request_timeout"
	case 413:
		return "invalid_request_error", "request_too_large"
	case 429:
		return "rate_limit_error", "rate_limit_exceeded"
	case 502:
		return "server_error", "bad_gateway"
	case 503, 529:
		return "server_error", "service_unavailable"
	case 504:
		return "server_error", "timeout"
	}
	if status >= 500 && status != 505 {
		return "server_error", ""
	}
	return "invalid_request_error", ""
}

// appendOpenAIEvent appends the error as a data event, without a [DONE] after it.
func appendOpenAIEvent(dst []byte, e Error) []byte {
	dst = append(dst, "data: "...)
	return append(appendOpenAIError(dst, e), "\n\n"...)
}

// appendResponseFailed appends a response.failed event. A bare error event would not do: Codex ignores it. The
// response in it has every member that the official clients' models require, and continues the id and the sequence
// number of the stream.
func appendResponseFailed(dst []byte, e Error, o *Observation) []byte {
	if o == nil {
		o = &Observation{}
	}
	sequence := int64(0)
	if o.HasSequence {
		sequence = o.Sequence + 1
	}
	dst = append(dst, "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":"...)
	dst = strconv.AppendInt(dst, sequence, 10)
	dst = append(dst, `,"response":{"id":`...)
	if o.ID != "" {
		dst = appendQuoted(dst, o.ID)
	} else {
		dst = appendQuoted(dst, "resp_"+e.RequestID)
	}
	dst = append(dst, `,"object":"response","created_at":`...)
	dst = strconv.AppendInt(dst, o.Created, 10)
	dst = append(dst, `,"status":"failed","error":{"code":`...)
	dst = appendQuoted(dst, streamCode(e.Code))
	dst = append(dst, `,"message":`...)
	dst = appendQuoted(dst, e.Message)
	if e.RequestID != "" {
		dst = append(dst, `,"request_id":`...)
		dst = appendQuoted(dst, e.RequestID)
	}
	dst = append(dst, `},"incomplete_details":null,"instructions":null,"metadata":{},"model":`...)
	dst = appendQuoted(dst, o.Model)
	return append(dst, `,"output":[],"parallel_tool_calls":true,"temperature":null,"tool_choice":"auto","tools":[],`+
		`"top_p":null,"usage":null}}`+"\n\n"...)
}

// streamCode returns the code for response.failed. Clients retry on server_error; the two others they understand. They
// give up for good on server_is_overloaded.
func streamCode(code string) string {
	switch code {
	case "context_length_exceeded", "rate_limit_exceeded":
		return code
	}
	return "server_error"
}
