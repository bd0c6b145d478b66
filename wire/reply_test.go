package wire

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestErrorTypes(t *testing.T) {
	tests := []struct {
		status               int
		anthropic, typ, code string
	}{
		{400, "invalid_request_error", "invalid_request_error", ""},
		{401, "authentication_error", "authentication_error", "invalid_api_key"},
		{402, "billing_error", "insufficient_quota", "insufficient_quota"},
		{403, "permission_error", "permission_error", "permission_denied"},
		{404, "not_found_error", "invalid_request_error", ""},
		{405, "invalid_request_error", "invalid_request_error", ""},
		{408, "timeout_error", "invalid_request_error", "request_timeout"},
		{413, "request_too_large", "invalid_request_error", "request_too_large"},
		{417, "invalid_request_error", "invalid_request_error", ""},
		{429, "rate_limit_error", "rate_limit_error", "rate_limit_exceeded"},
		{431, "invalid_request_error", "invalid_request_error", ""},
		{500, "api_error", "server_error", ""},
		{502, "api_error", "server_error", "bad_gateway"},
		{503, "overloaded_error", "server_error", "service_unavailable"},
		{504, "timeout_error", "server_error", "timeout"},
		{505, "invalid_request_error", "invalid_request_error", ""},
		{529, "overloaded_error", "server_error", "service_unavailable"},
	}
	for _, tt := range tests {
		want := `{"type":"error","error":{"type":"` + tt.anthropic + `","message":"m"},"request_id":"r"}`
		if got := string(Messages.AppendErrorBody(nil, Error{Status: tt.status, Message: "m", RequestID: "r"})); got != want {
			t.Errorf("messages %d: %s, want %s", tt.status, got, want)
		}
		code := `null`
		if tt.code != "" {
			code = `"` + tt.code + `"`
		}
		want = `{"error":{"message":"m","type":"` + tt.typ + `","param":null,"code":` + code + `,"request_id":"r"}}`
		for _, d := range []Dialect{Chat, Completions, Responses, Embeddings, Other} {
			if got := string(d.AppendErrorBody(nil, Error{Status: tt.status, Message: "m", RequestID: "r"})); got != want {
				t.Errorf("%s %d: %s, want %s", d.Name(), tt.status, got, want)
			}
		}
	}
}

func TestGivenTypeAndCodeStay(t *testing.T) {
	e := Error{Status: 400, Type: "policy_blocked", Code: "context_length_exceeded", Message: "m"}
	if got, want := string(Messages.AppendErrorBody(nil, e)), `{"type":"error","error":{"type":"policy_blocked","message":"m"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := string(Chat.AppendErrorBody(nil, e)), `{"error":{"message":"m","type":"policy_blocked","param":null,"code":"context_length_exceeded"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestErrorEvents(t *testing.T) {
	e := Error{Status: 502, Message: "m", RequestID: "r"}
	if got, want := string(Messages.AppendErrorEvent(nil, e, nil)),
		"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"m\"},\"request_id\":\"r\"}\n\n"; got != want {
		t.Errorf("messages: %q", got)
	}
	if got, want := string(Chat.AppendErrorEvent(nil, e, nil)),
		"data: {\"error\":{\"message\":\"m\",\"type\":\"server_error\",\"param\":null,\"code\":\"bad_gateway\",\"request_id\":\"r\"}}\n\n"; got != want {
		t.Errorf("chat: %q", got)
	}
}

// TestResponseFailed: the event continues the stream's id, model and sequence numbers, and has what clients require.
func TestResponseFailed(t *testing.T) {
	var o Observation
	for _, c := range captures(t, "streams") {
		if c.name == "responses_stream_engine_death" {
			observe(c.dialect, &o, c.body)
		}
	}
	for _, tt := range []struct{ given, want string }{
		{"", "server_error"}, {"timeout", "server_error"}, {"server_is_overloaded", "server_error"},
		{"context_length_exceeded", "context_length_exceeded"}, {"rate_limit_exceeded", "rate_limit_exceeded"},
	} {
		got := string(Responses.AppendErrorEvent(nil, Error{Status: 502, Code: tt.given, Message: "m", RequestID: "r"}, &o))
		payload, ok := strings.CutPrefix(got, "event: response.failed\ndata: ")
		if !ok || !strings.HasSuffix(payload, "}\n\n") || strings.Count(payload, "\n") != 2 {
			t.Fatalf("%q", got)
		}
		var ev struct {
			Type     string
			Sequence int64 `json:"sequence_number"`
			Response struct {
				ID, Object, Status, Model string
				Created                   int64 `json:"created_at"`
				Error                     struct{ Code, Message string }
				Output, Tools             []any
			}
		}
		if err := json.Unmarshal([]byte(payload), &ev); err != nil {
			t.Fatal(err)
		}
		r := ev.Response
		if ev.Type != "response.failed" || ev.Sequence != 32 || r.ID != o.ID || r.Object != "response" || r.Status != "failed" ||
			r.Model != "tiny" || r.Created != o.Created || r.Output == nil || r.Tools == nil || r.Error.Message != "m" {
			t.Errorf("%+v", ev)
		}
		if r.Error.Code != tt.want {
			t.Errorf("code %q for %q, want %q", r.Error.Code, tt.given, tt.want)
		}
	}
}
