package admin

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"tracegate/trace"
)

func TestCSVHasOneFlatLineForEachRequest(t *testing.T) {
	r := newRig(t, nil)
	r.finished("refused", 1, func(x *trace.Record) {
		*x = *trace.NewRecord(noon)
		x.ID, x.Outcome = "refused", trace.Refused
		x.Stamp(trace.Finish, noon.Add(1500*time.Microsecond))
	})
	r.finished("whole", 2, func(x *trace.Record) {
		x.ClientID, x.Tenant, x.KeyID, x.Model, x.Dialect = "a \"quoted\", id", "team", "k1", "public", "chat"
		x.Attempts = []trace.Attempt{{N: 1, Deployment: "d1"}, {N: 2, Deployment: "d2"}}
		x.Tokens.Input, x.Tokens.Output, x.FinishReason = 12, 0, "stop"
		x.Stamp(trace.Admit, noon.Add(2*time.Second))
		x.Stamp(trace.Pick, noon.Add(2*time.Second+250*time.Microsecond))
		x.Stamp(trace.LastToken, noon.Add(3*time.Second))
	})
	a := r.get("/api/v1/requests?format=csv").is(200)
	equal(t, "content type", a.Header.Get("Content-Type"), "text/csv; charset=utf-8")
	lines := csvLines(t, a.body)
	for i, want := range []string{
		"id|client_request_id|tenant|key_id|model|deployment|dialect|stream|outcome|phase|enqueue_time|first_token_time|last_token_time|finish_time|ttft_ms|duration_ms|queue_ms|tokens_input|tokens_output|finish_reason|attempts",
		`whole|a "quoted", id|team|k1|public|d2|chat|true|ok|finished|2026-11-30T12:00:02Z|2026-11-30T12:00:02.2Z|2026-11-30T12:00:03Z|2026-11-30T12:00:12Z|200.000|10000.000|0.250|12|0|stop|2`,
		"refused||||||other|false|refused|admit||||2026-11-30T12:00:00.0015Z||1.500|||||0",
	} {
		equal(t, "line", strings.Join(lines[i], "|"), want)
	}
	equal(t, "lines", len(lines), 3)
	equal(t, "nothing selected", r.get("/api/v1/requests?format=csv&model=none").is(200).body, strings.Join(columns, ",")+"\n")
}

func csvLines(t *testing.T, body string) [][]string {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestJSONLinesAreTimelines(t *testing.T) {
	r := newRig(t, nil)
	r.finished("one", 1, nil)
	r.finished("two", 2, nil)
	tl := r.running("")
	a := r.get("/api/v1/requests?format=jsonl").is(200)
	equal(t, "content type", a.Header.Get("Content-Type"), "application/jsonl")
	var ids []string
	for line := range strings.Lines(a.body) {
		var rec trace.Record
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		ids = append(ids, rec.ID)
	}
	equal(t, "ids", strings.Join(ids, " "), tl.ID()+" two one")
	empty := r.get("/api/v1/requests?format=jsonl&model=none").is(200)
	equal(t, "nothing selected", empty.body, "")
	equal(t, "content type of nothing", empty.Header.Get("Content-Type"), "application/jsonl")
}

// A page of 1,000 is not the end of a table or of lines: the next cursor is in a header, where no body can hold it.
func TestExportsCanBePaged(t *testing.T) {
	r := newRig(t, nil)
	r.finished("one", 1, nil)
	r.finished("two", 2, nil)
	for _, format := range []string{"csv", "jsonl"} {
		first := r.get("/api/v1/requests?limit=1&format=" + format).is(200)
		next := first.Header.Get("X-Next-Cursor")
		if next == "" || !strings.Contains(first.body, "two") || strings.Contains(first.body, "one") {
			t.Errorf("%s: first page with cursor %q: %s", format, next, first.body)
		}
		last := r.get("/api/v1/requests?limit=1&format=" + format + "&cursor=" + next).is(200)
		if _, more := last.Header["X-Next-Cursor"]; more || !strings.Contains(last.body, "one") {
			t.Errorf("%s: last page with cursor %v: %s", format, last.Header["X-Next-Cursor"], last.body)
		}
	}
}

func TestCSVHoldsNoFormulas(t *testing.T) {
	r := newRig(t, nil)
	for value, want := range map[string]string{
		`=HYPERLINK("http://x")`: `'=HYPERLINK("http://x")`, "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)",
		"\t=1": "'\t=1", "\r=1": "'\r=1", "a=1": "a=1", "'=1": "'=1", "": "",
	} {
		r.finished("-id", 1, func(x *trace.Record) {
			x.ClientID, x.Tenant, x.KeyID, x.Model, x.Dialect, x.FinishReason = value, value, value, value, value, value
			x.Attempts = []trace.Attempt{{N: 1, Deployment: value}}
		})
		line := csvLines(t, r.get("/api/v1/requests?limit=1&format=csv").is(200).body)[1]
		equal(t, "id", line[0], "'-id")
		for i, column := range columns {
			switch column {
			case "client_request_id", "tenant", "key_id", "model", "deployment", "dialect", "finish_reason":
				equal(t, column, line[i], want)
			}
		}
	}
}
