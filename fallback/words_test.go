package fallback

import "testing"

// TestKindsAreTheContractsWords: they are in timelines and metrics, so no one may change.
func TestKindsAreTheContractsWords(t *testing.T) {
	for kind, want := range map[Kind]struct {
		word    string
		verdict Verdict
	}{
		Connect:           {"connect", Fault},
		DNS:               {"dns", Fault},
		TLS:               {"tls", Fault},
		TimeoutConnect:    {"timeout_connect", Fault},
		TimeoutFirstToken: {"timeout_first_token", Fault},
		TimeoutIdle:       {"timeout_idle", Fault},
		TimeoutTotal:      {"timeout_total", NotTheirs},
		Cut:               {"cut", Fault},
		Empty:             {"empty", Fault},
		ErrorEvent:        {"error_event", Fault},
		Protocol:          {"protocol", Fault},
		Status5xx:         {"status_5xx", Fault},
		Draining:          {"draining", None},
		Pressure:          {"backpressure", Backpressure},
		Credential:        {"credential", Fault},
		NotFound:          {"not_found", Fault},
		ContextLength:     {"context_length", NotTheirs},
		ClientError:       {"client_error", NotTheirs},
		ClientGone:        {"client_gone", NotTheirs},
		WriteStall:        {"write_stall", NotTheirs},
		OperatorAbort:     {"operator", NotTheirs},
		GatewayDrained:    {"drain", NotTheirs},
	} {
		equal(t, "word", string(kind), want.word)
		got, verdict := Classify(Failure{Kind: kind, Status: 500})
		equal(t, want.word+": kind", got, kind)
		equal(t, want.word+": verdict", verdict, want.verdict)
	}
}

// TestEveryStatusHasAVerdict walks all statuses: 4xx without a row of its own is the client's, the rest faults.
func TestEveryStatusHasAVerdict(t *testing.T) {
	special := map[int]Kind{429: Pressure, 529: Pressure, 401: Credential, 402: Credential, 403: Credential, 404: NotFound}
	for status := 100; status < 600; status++ {
		want, ok := special[status]
		switch {
		case ok:
		case status >= 500:
			want = Status5xx
		case status >= 400:
			want = ClientError
		default:
			want = Protocol
		}
		if got := kindOf(Failure{Status: status}); got != want {
			t.Errorf("%d: got %s, want %s", status, got, want)
		}
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
