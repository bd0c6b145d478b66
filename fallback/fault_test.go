package fallback

import "testing"

func TestClassifyFollowsTheContractsTable(t *testing.T) {
	cases := []struct {
		name    string
		failure Failure
		kind    Kind
		verdict Verdict
	}{
		{"refused", Failure{Kind: Connect}, Connect, Fault},
		{"name not found", Failure{Kind: DNS}, DNS, Fault},
		{"handshake", Failure{Kind: TLS}, TLS, Fault},
		{"connect limit", Failure{Kind: TimeoutConnect}, TimeoutConnect, Fault},
		{"first-token limit", Failure{Kind: TimeoutFirstToken}, TimeoutFirstToken, Fault},
		{"cut", Failure{Kind: Cut}, Cut, Fault},
		{"empty 200", Failure{Kind: Empty}, Empty, Fault},
		{"broken HTTP", Failure{Kind: Protocol}, Protocol, Fault},
		{"idle limit", Failure{Kind: TimeoutIdle}, TimeoutIdle, Fault},
		{"error object in a 200", Failure{Kind: ErrorEvent}, ErrorEvent, Fault},
		{"client gone", Failure{Kind: ClientGone}, ClientGone, NotTheirs},
		{"write stall", Failure{Kind: WriteStall}, WriteStall, NotTheirs},
		{"500", Failure{Status: 500, JSON: true}, Status5xx, Fault},
		{"502", Failure{Status: 502}, Status5xx, Fault},
		{"504", Failure{Status: 504, JSON: true}, Status5xx, Fault},
		{"HTML 503", Failure{Status: 503}, Status5xx, Fault},
		{"JSON 503", Failure{Status: 503, JSON: true}, Pressure, Backpressure},
		{"429", Failure{Status: 429, JSON: true}, Pressure, Backpressure},
		{"529", Failure{Status: 529, JSON: true}, Pressure, Backpressure},
		{"vLLM shutting down", Failure{Status: 500, JSON: true, Message: []byte(`{"error":{"message":"cannot schedule new futures after shutdown"}}`)}, Draining, None},
		{"401", Failure{Status: 401}, Credential, Fault},
		{"402", Failure{Status: 402}, Credential, Fault},
		{"403", Failure{Status: 403}, Credential, Fault},
		{"404", Failure{Status: 404}, NotFound, Fault},
		{"400 too long", Failure{Status: 400, Message: []byte("This model's maximum context length is 8192 tokens")}, ContextLength, NotTheirs},
		{"400 too long, Anthropic", Failure{Status: 400, Message: []byte("Prompt is too long: 210000 tokens > 200000 maximum")}, ContextLength, NotTheirs},
		{"400", Failure{Status: 400, Message: []byte("temperature must be at most 2")}, ClientError, NotTheirs},
		{"422", Failure{Status: 422}, ClientError, NotTheirs},
		{"redirect", Failure{Status: 307}, Protocol, Fault},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			kind, verdict := Classify(c.failure)
			if kind != c.kind || verdict != c.verdict {
				t.Errorf("got %s, %v; want %s, %v", kind, verdict, c.kind, c.verdict)
			}
		})
	}
}
