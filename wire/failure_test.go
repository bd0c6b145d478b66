package wire

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestReadFailure(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		want   Failure
	}{
		{"OpenAI", 429, `{"error":{"message":"m","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, Failure{429, "tokens", "rate_limit_exceeded", "m"}},
		{"vLLM inside a 200", 0, `{"error": {"message": "m", "type": "InternalServerError", "param": null, "code": 500}}`, Failure{500, "InternalServerError", "500", "m"}},
		{"Anthropic inside a 200", 0, `{"type":"error","error":{"type":"overloaded_error","message":"m"},"request_id":"r"}`, Failure{529, "overloaded_error", "", "m"}},
		{"code as text", 0, `{"error":{"message":"m","code":"503"}}`, Failure{503, "", "503", "m"}},
		{"unknown words", 0, `{"error":{"message":"m","code":"strange"}}`, Failure{0, "", "strange", "m"}},
		{"text as error", 401, `{"error":"Unauthorized"}`, Failure{401, "", "", "Unauthorized"}},
		{"detail", 404, `{"detail":"Not Found"}`, Failure{404, "", "", "Not Found"}},
		{"detail as list", 422, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, Failure{422, "", "", "field required"}},
		{"flat", 0, `{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}`, Failure{400, "BadRequestError", "400", "m"}},
		{"in a list", 400, `[{"error":{"code":400,"message":"m"}}]`, Failure{400, "", "400", "m"}},
		{"escapes", 400, `{"error":{"message":"a\n\"b\" \u4e16\ud83d\ude00\ud800"}}`, Failure{400, "", "", "a\n\"b\" 世😀\ufffd"}},
		{"text", 500, " Internal Server\r\n\tError < 5 ", Failure{500, "", "", "Internal Server Error < 5"}},
		{"page", 502, "<html>\r\n<head><title>502 Bad Gateway</title><style>a{b}</style></head>\r\n<body><hr>nginx</body></html>", Failure{502, "", "", "502 Bad Gateway nginx"}},
		{"nothing", 503, "", Failure{503, "", "", ""}},
		{"broken JSON", 500, `{"error":`, Failure{500, "", "", `{"error":`}},
		{"null error", 200, `{"error":null}`, Failure{200, "", "", `{"error":null}`}},
		{"not UTF-8", 500, "a\xffb", Failure{500, "", "", "a\ufffdb"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := *ReadFailure(tt.status, []byte(tt.body)); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestFailureIsCut(t *testing.T) {
	long := strings.Repeat("世", 5000)
	for _, body := range []string{long, `{"error":"` + long + `"}`, `{"error":{"message":"` + long + `","type":"` + long + `"}}`} {
		f := ReadFailure(500, []byte(body))
		if len(f.Message) > maxWords || len(f.Message) < maxWords-4 || len(f.Type) > 64 || !utf8.ValidString(f.Message) {
			t.Errorf("%d bytes of message, %d of type", len(f.Message), len(f.Type))
		}
	}
}
