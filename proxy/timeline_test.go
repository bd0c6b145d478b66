package proxy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/sse"
	"tracegate/trace"
)

// told is a field of a timeline's JSON and its value: "*" is any, ID the request's own id.
type told map[string]string

// toldAlways is what the three requests below have in common.
var toldAlways = told{
	"id": "ID", "client_request_id": "id-of-the-client", "upstream_request_ids[0]": "ID-a1",
	"tenant": "team", "key_id": "k1", "model": "public", "asked_model": "other-name",
	"client.agent": "sdk/1.2", "client.session": "session-of-the-body", "client.retry_count": "2",
	"tags[0]": "batch", "tags[1]": "night",
	"open_time": "*", "enqueue_time": "*", "admit_time": "*", "pick_time": "*", "dispatch_time": "*",
	"headers_time": "*", "first_byte_time": "*", "commit_time": "*", "finish_time": "*",
	"duration_ms": "*", "queue_ms": "*", "write_stall_ms": "*", "status": "200",
	"limiter.decision": "allow", "route.strategy": "least_inflight",
	"route.considered[0].deployment": "d1", "route.considered[0].score": "*",
	"route.considered[1].deployment": "d2", "route.considered[1].score": "*", "route.considered[1].excluded": "*",
	"notes[0].setting": "max_tokens", "notes[0].action": "changed",
	"notes[0].reason": "what was asked for is over tenants.team.max_tokens=40",
	"tokens.input":    "*", "tokens.output": "40", "tokens.source": "upstream",
	"attempts[0].n": "1", "attempts[0].deployment": "d1", "attempts[0].start": "*", "attempts[0].end": "*",
	"attempts[0].connect_ms": "*", "attempts[0].sent_ms": "*", "attempts[0].headers_ms": "*", "attempts[0].first_byte_ms": "*",
	"attempts[0].status": "200", "attempts[0].outcome": "ok", "attempts[0].upstream_request_id": "ID-a1",
	"tbt.count": "0", "tbt.stalls": "0", "phase": "finished", "outcome": "ok",
}

var toldOfAStream = told{
	"stream": "true", "first_token_time": "*", "last_token_time": "*", "ttft_ms": "*", "tpot_ms": "*", "gaps": "*",
	"tbt.count": "*", "tbt.p50_ms": "*", "tbt.p90_ms": "*", "tbt.p99_ms": "*", "tbt.max_ms": "*",
	"attempts[0].first_token_ms": "*",
}

// TestTimelineIsFull: of a request through the whole gateway, every field that is told, and no other.
func TestTimelineIsFull(t *testing.T) {
	for _, c := range []struct {
		d      dialectCase
		stream bool
		faults []fakeengine.Fault
		more   told
	}{
		{dialects[1], false, nil, told{
			"dialect": "chat", "upstream_dialect": "chat", "stream": "false", "ttft_ms": "*",
			"upstream_request_ids[1]": "chatcmpl-ID-a1", "finish_reason": "length",
			"tokens.cache_read": "0", "tokens.cache_write": "0", "tokens.reasoning": "5",
		}},
		{dialects[3], true, nil, told{
			"dialect": "responses", "upstream_dialect": "responses", "upstream_request_ids[1]": "resp_ID-a1", "finish_reason": "max_output_tokens",
			"tokens.cache_read": "0", "tokens.cache_write": "0", "tokens.reasoning": "*",
		}},
		{dialects[0], true, []fakeengine.Fault{{Kind: fakeengine.Hang, After: 3}}, told{
			"dialect": "messages", "upstream_dialect": "messages", "upstream_request_ids[1]": "chatcmpl-ID-a1",
			"outcome": "timeout_idle", "phase": "streaming", "side": "gateway", "limit": "timeouts.idle=300ms",
			"error.kind": "timeout_idle", "error.message": "the upstream sent no further token within timeouts.idle=300ms",
			"attempts[0].outcome": "fault", "attempts[0].fault": "timeout_idle",
			"attempts[0].abort_sent": "*", "attempts[0].abort_reason": "timeout_idle",
			"tokens.output": "3", "tokens.source": "estimated",
		}},
	} {
		t.Run(c.d.name, func(t *testing.T) {
			r := newRig(t, setup{tenant: "    max_tokens: 40", config: "timeouts: {idle: 300ms}",
				model:  `      - {name: d2, base_url: "http://127.0.0.1:1", weight: 0}`,
				engine: fakeengine.Options{UsageDetails: true, RequestMetrics: true, EchoRequestID: true, StepBase: time.Millisecond}})
			r.engine.Script(c.faults...)
			want := maps.Clone(toldAlways)
			if c.stream {
				maps.Copy(want, toldOfAStream)
			}
			maps.Copy(want, c.more)
			a := r.post(c.d.path, withSession(c.d, c.stream), "User-Agent: sdk/1.2 (linux)", "X-Stainless-Retry-Count: 2",
				"X-Gateway-Tags: batch, night", "X-Request-Id: id-of-the-client")
			rec := r.record()
			isTimeline(t, rec, want)
			if !c.stream {
				isReportedTTFT(t, rec, a.body)
			}
		})
	}
}

// withSession is a request for the alias that names its conversation in the body.
func withSession(d dialectCase, stream bool) string {
	field := `"prompt_cache_key":"session-of-the-body"`
	if d.name == "messages" {
		field = `"metadata":{"user_id":"user_0_account__session_session-of-the-body"}`
	}
	body := strings.Replace(d.body(stream, "FAKE-REASON-5 hello"), `"public"`, `"other-name"`, 1)
	return body[:len(body)-1] + "," + field + "}"
}

func isTimeline(t *testing.T, rec *trace.Record, want told) {
	t.Helper()
	have := fieldsOf(t, must(json.Marshal(rec)))
	for _, name := range slices.Sorted(maps.Keys(want)) {
		v, ok := have[name]
		if expected := strings.Replace(want[name], "ID", rec.ID, 1); !ok || expected != "*" && v != expected {
			t.Errorf("%s: told %t, %q, want %q", name, ok, v, expected)
		}
		delete(have, name)
	}
	for name, v := range have {
		t.Errorf("%s is told: %s", name, v)
	}
}

// isReportedTTFT: the TTFT of an answer that is no stream is the engine's own.
func isReportedTTFT(t *testing.T, rec *trace.Record, body []byte) {
	t.Helper()
	var v struct {
		Metrics struct {
			TTFT float64 `json:"time_to_first_token_ms"`
		} `json:"metrics"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	got, ok := rec.TTFT()
	if want := time.Duration(v.Metrics.TTFT * float64(time.Millisecond)); !ok || want <= 0 || got != want {
		t.Errorf("ttft %s, known %t; the engine reported %s", got, ok, want)
	}
}

// fieldsOf flattens a JSON object. What is null or empty is left out, of gaps only that there are some is kept.
func fieldsOf(t *testing.T, text []byte) told {
	t.Helper()
	var whole any
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	out := told{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case nil:
		case map[string]any:
			for k, inner := range v {
				walk(strings.TrimPrefix(path+"."+k, "."), inner)
			}
		case []any:
			for i, inner := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), inner)
			}
		default:
			if strings.HasPrefix(path, "gaps[") {
				path = "gaps"
			}
			out[path] = fmt.Sprint(v)
		}
	}
	walk("", whole)
	return out
}

// TestEventsTooLargeAreNoted: what they said is not in the timeline, and it says so.
func TestEventsTooLargeAreNoted(t *testing.T) {
	r := newRig(t, quickly(setup{}))
	r.engine.Script(fakeengine.Fault{Kind: fakeengine.BigEvent, N: sse.MaxInspect, After: 2})
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			a := r.post(d.path, d.body(true, "hello"))
			equal(t, "status", a.StatusCode, 200)
			equal(t, "end of the body", a.err, nil)
			rec := r.record()
			equal(t, "outcome", rec.Outcome, trace.OK)
			events := 1
			if d.name == "responses" {
				events = 5 // the text comes again as that of its part, its item and the response
			}
			want := []trace.Note{{Setting: "inspection", Action: trace.NoteDropped, Reason: fmt.Sprintf("%d events were too large to be read", events)}}
			equal(t, "notes", fmt.Sprint(rec.Notes), fmt.Sprint(want))
		})
	}
}
