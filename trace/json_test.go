package trace

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func decode(t *testing.T, r *Record) map[string]any {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// full is a record with a value in every field.
func full() *Record {
	r := NewRecord(noon)
	r.ID, r.ClientID, r.UpstreamIDs = "01KBADQZ3BZTQ0A4M2Q8Y3W5XN", "client-0001", []string{"01KBADQZ3BZTQ0A4M2Q8Y3W5XN-a1", "cmpl-1"}
	r.Tenant, r.KeyID, r.Model, r.AskedModel = "search", "k1", "qwen3-32b", "gpt-4o"
	r.Dialect, r.UpstreamDialect, r.Stream = "chat", "messages", true
	r.Client, r.Tags = Client{Agent: "sdk/1", Session: "s-1", RetryCount: 2}, []string{"batch"}
	r.Outcome, r.Phase, r.Side, r.Status = StreamInterrupted, PhaseStreaming, SideNetwork, 200
	r.Error, r.Limit = &ErrorInfo{Kind: "cut", Message: "the connection ended"}, "timeouts.idle=60s"
	r.FinishReason, r.Cost = "stop", 0.0125
	r.Tokens = Tokens{Input: 100, Output: 20, CacheRead: 64, CacheWrite: 0, Reasoning: 5, Source: SourceUpstream}
	r.WriteStall, r.PickTime, r.RelayTime = 3*ms, 2*us, 40*us
	r.Attempts = []Attempt{
		{N: 1, Deployment: "a", Model: "small", Start: 5 * ms, Connect: 2 * ms, Sent: 0, Headers: Unknown, FirstByte: Unknown,
			FirstToken: Unknown, End: 90 * ms, Result: ResultFault, Fault: "timeout_first_token", AbortSent: 89 * ms,
			AbortReason: AbortTimeoutFirstToken},
		{N: 2, Deployment: "b", Start: 91 * ms, Connect: 0, Sent: 1 * ms, Headers: 20 * ms, FirstByte: 21 * ms,
			FirstToken: 22 * ms, End: 900 * ms, Result: ResultFault, Fault: "cut", Status: 200, UpstreamID: "cmpl-1", AbortSent: Unknown},
	}
	r.Limiter = LimiterVerdict{Decision: "degraded", Dimension: "tpm", Wait: 1500 * us}
	r.Route = Route{Strategy: "least_inflight", Considered: []Considered{{"a", 0.5, ""}, {"c", 0, "cooling"}}}
	r.Engine = EngineState{Waiting: 3, Running: 8, KVUsed: 0.75}
	r.Notes = []Note{{"seed", NoteDropped, "the upstream has none"}}
	r.Findings = []string{"fnd-1"}
	r.TBT = TBT{Count: 19, P50: 10 * ms, P90: 20 * ms, P99: 40 * ms, Max: 1500 * ms, Stalls: 1}
	r.Gaps = []Gap{NewGap(110*ms, 40*ms), NewGap(200*ms, 1500*ms+7*us)}
	for m, d := range []time.Duration{1 * ms, 2 * ms, 5 * ms, 6 * ms, 111 * ms, 112 * ms, 112*ms + 500*us, 113 * ms, 890 * ms, 900*ms + 1} {
		r.Stamp(Mark(m), noon.Add(d))
	}
	return r
}

func TestTimelineJSON(t *testing.T) {
	for name, r := range map[string]*Record{"full": full(), "empty": NewRecord(noon)} {
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, raw, "", "  "); err != nil {
			t.Fatal(err)
		}
		pretty.WriteByte('\n')
		file := "testdata/timeline_" + name + ".json"
		if *update {
			if err := os.WriteFile(file, pretty.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, pretty.Bytes()) {
			t.Errorf("%s differs:\n%s", file, pretty.Bytes())
		}
	}
}

// The names that scripts and dashboards rely on.
const contract = `id client_request_id upstream_request_ids tenant key_id model asked_model dialect upstream_dialect stream
client.agent client.session client.retry_count outcome phase error.kind error.message enqueue_time dispatch_time headers_time
first_byte_time first_token_time last_token_time finish_time ttft_ms duration_ms queue_ms tbt.count tbt.p50_ms tbt.p90_ms
tbt.p99_ms tbt.max_ms tbt.stalls tokens.input tokens.output tokens.cache_read tokens.cache_write tokens.reasoning
tokens.source cost finish_reason attempts.n attempts.deployment attempts.start attempts.connect_ms attempts.headers_ms
attempts.first_token_ms attempts.end attempts.outcome attempts.fault attempts.status attempts.upstream_request_id
attempts.abort_sent limiter.decision limiter.dimension limiter.wait_ms notes.setting notes.action notes.reason route.strategy
route.considered.deployment route.considered.score route.considered.excluded engine.waiting engine.running engine.kv_used
gaps write_stall_ms findings`

func TestEveryPublicNameIsThere(t *testing.T) {
	doc := decode(t, full())
	for path := range strings.FieldsSeq(contract) {
		var at any = doc
		for name := range strings.SplitSeq(path, ".") {
			if array, ok := at.([]any); ok {
				at = array[0]
			}
			object, _ := at.(map[string]any)
			value, ok := object[name]
			if !ok {
				t.Errorf("no %s", path)
				break
			}
			at = value
		}
	}
}

func TestTimelineSurvivesJSON(t *testing.T) {
	running := full()
	running.marks[Finish], running.Outcome, running.Taken = 0, "", noon.Add(s)
	running.Stream, running.ReportedTTFT = false, 5*ms
	for name, r := range map[string]*Record{"full": full(), "empty": NewRecord(noon), "running": running} {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var back Record
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(&back)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b, again) {
			t.Errorf("%s:\n%s\n%s", name, b, again)
		}
		if name == "full" && !reflect.DeepEqual(r, &back) {
			t.Errorf("got  %+v\nwant %+v", &back, r)
		}
	}
}

func TestScoreThatIsNoNumberKeepsJSONValid(t *testing.T) {
	r := NewRecord(noon)
	zero := 0.0
	r.Route.Considered = []Considered{{"a", 1 / zero, ""}}
	r.Cost, r.Engine.KVUsed = zero/zero, 1/zero
	decode(t, r)
}

func TestStringsFromOutsideStayInTheirPlace(t *testing.T) {
	r := NewRecord(noon)
	r.AskedModel = "a\",\"outcome\":\"ok\n\x00\xff"
	equal(t, "asked", decode(t, r)["asked_model"], any("a\",\"outcome\":\"ok\n\x00\ufffd"))
}

func FuzzTimelineFromJSON(f *testing.F) {
	for _, r := range []*Record{full(), NewRecord(noon)} {
		f.Add(r.AppendJSON(nil))
	}
	f.Add([]byte(`{"gaps":[[1]],"open_time":"0001-01-01T00:00:00Z","attempts":[{"n":-1}],"tbt":{"count":-5}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Record
		if json.Unmarshal(b, &r) != nil {
			return
		}
		if out := r.AppendJSON(nil); !json.Valid(out) {
			t.Errorf("%q became %q", b, out)
		}
	})
}

func FuzzCursor(f *testing.F) {
	f.Add("r0.5")
	f.Add("v-1.zz")
	b := NewBook(2)
	finished(b, "a", ms, ms, 1)
	f.Fuzz(func(t *testing.T, cursor string) {
		for _, by := range []Sort{Newest, SlowestTTFT} {
			b.List(Query{Cursor: cursor, Sort: by})
		}
	})
}

func TestMillisecondsAreExact(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0", 1: "0.000001", ms: "1", 1500 * us: "1.5", 12*ms + 345678: "12.345678",
		s + 10*us: "1000.01", 100: "0.0001"} {
		e := encoder{}
		e.bareMillis(d)
		equal(t, d.String(), string(e.b), want)
		var back millis
		if err := json.Unmarshal(e.b, &back); err != nil || time.Duration(back) != d {
			t.Errorf("%v came back as %v, %v", d, time.Duration(back), err)
		}
	}
}

// TestSideIsToldAsItIsDrawn: also where the outcome alone says who broke the stream.
func TestSideIsToldAsItIsDrawn(t *testing.T) {
	for _, c := range []struct {
		name    string
		outcome Outcome
		stream  bool
		side    Side
		want    any
	}{
		{"the client left", ClientAbort, true, "", "client"},
		{"the client took nothing", WriteStall, true, "", "client"},
		{"the upstream cut it", StreamInterrupted, true, "", "upstream"},
		{"our shutdown", StreamInterrupted, true, SideGateway, "gateway"},
		{"our shutdown, a whole answer", UpstreamError, false, SideGateway, "gateway"},
		{"complete", OK, true, "", nil},
		{"the client left a whole answer", ClientAbort, false, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewRecord(noon)
			r.Outcome, r.Stream, r.Side = c.outcome, c.stream, c.side
			r.Stamp(Send, noon.Add(ms))
			if got := decode(t, r)["side"]; got != c.want {
				t.Errorf("side %v, want %v", got, c.want)
			}
		})
	}
}
