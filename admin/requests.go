package admin

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tracegate/trace"
)

// getRequest finds a timeline by our id, the client's or the upstream's. Where
// a client used its id more than once, the newest is the answer.
func (a *api) getRequest(w http.ResponseWriter, r *http.Request) {
	found := a.newest(r.PathValue("id"))
	if found == nil {
		refuse(w, http.StatusNotFound, "there is no timeline id="+strconv.Quote(r.PathValue("id"))+" among the running requests and the newest finished ones")
		return
	}
	reply(w, http.StatusOK, found)
}

// newest is the running request of that id that was opened last, else the one
// that finished last; nil if there is none.
func (a *api) newest(id string) *trace.Record {
	var newest *trace.Record
	for _, r := range a.Book.Get(id) { // the running ones first, in no order, then the finished ones
		if newest == nil || r.Running() && r.Opened.After(newest.Opened) {
			newest = r
		}
	}
	return newest
}

func (a *api) abortRequest(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	found := a.newest(id)
	switch {
	case found == nil:
		a.audited(r, "request abort", id, "", "not found")
		refuse(w, http.StatusNotFound, "there is no timeline id="+strconv.Quote(id))
	case !found.Running() || !a.Book.Abort(found, trace.AbortOperator):
		a.audited(r, "request abort", found.ID, "", "it had finished")
		refuse(w, http.StatusConflict, "the request has finished id="+strconv.Quote(id))
	default:
		a.audited(r, "request abort", found.ID, "", "ok")
		reply(w, http.StatusAccepted, map[string]string{"id": found.ID, "status": "aborting"})
	}
}

type page struct {
	Requests []*trace.Record `json:"requests"`
	Next     *string         `json:"next"`
}

func (a *api) listRequests(w http.ResponseWriter, r *http.Request) {
	q, format, err := readQuery(r.URL.RawQuery)
	if err == nil {
		err = q.Check()
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	records, next := a.Book.List(q)
	if next != "" && (format == "jsonl" || format == "csv") {
		w.Header().Set("X-Next-Cursor", next) // these bodies have no place for it
	}
	switch format {
	case "jsonl":
		w.Header().Set("Content-Type", "application/jsonl")
		e := json.NewEncoder(w)
		for _, rec := range records {
			if e.Encode(rec) != nil {
				return // the caller has gone
			}
		}
	case "csv":
		writeCSV(w, records)
	default:
		p := page{Requests: records}
		if p.Requests == nil {
			p.Requests = []*trace.Record{}
		}
		if next != "" {
			p.Next = &next
		}
		reply(w, http.StatusOK, p)
	}
}

// parameters of a listing that are taken as they are.
var known = map[string]bool{"model": true, "tenant": true, "deployment": true, "outcome": true, "tag": true, "session": true,
	"since": true, "until": true, "min_ttft_ms": true, "sort": true, "cursor": true, "limit": true, "format": true}

// readQuery reads the parameters of a listing.
func readQuery(raw string) (q trace.Query, format string, err error) {
	v, err := parameters(raw)
	if err != nil {
		return q, "", err
	}
	q = trace.Query{
		Model: v.Get("model"), Tenant: v.Get("tenant"), Deployment: v.Get("deployment"), Outcome: trace.Outcome(v.Get("outcome")),
		Tag: v.Get("tag"), Session: v.Get("session"), Sort: trace.Sort(v.Get("sort")), Cursor: v.Get("cursor"),
	}
	if q.Outcome != "" && !slices.Contains(trace.Outcomes, q.Outcome) {
		return q, "", fmt.Errorf("cannot select outcome=%q: allowed are %s", q.Outcome, outcomes())
	}
	if q.Since, err = instant(v, "since"); err != nil {
		return q, "", err
	}
	if q.Until, err = instant(v, "until"); err != nil {
		return q, "", err
	}
	if s := v.Get("min_ttft_ms"); s != "" {
		ms, err := strconv.ParseFloat(s, 64)
		if err != nil || !(ms >= 0 && ms <= 1e12) {
			return q, "", fmt.Errorf("cannot read min_ttft_ms=%q: a number of milliseconds is needed", s)
		}
		q.MinTTFT = time.Duration(ms * float64(time.Millisecond))
	}
	if s := v.Get("limit"); s != "" {
		if q.Limit, err = strconv.Atoi(s); err != nil || q.Limit < 1 {
			return q, "", fmt.Errorf("cannot return limit=%s: allowed are 1 to %d", strconv.Quote(s), trace.MaxLimit)
		}
	}
	switch format = v.Get("format"); format {
	case "", "json", "jsonl", "csv":
		return q, format, nil
	default:
		return q, "", fmt.Errorf("cannot write format=%q: allowed are json, jsonl, csv", format)
	}
}

// parameters reads the query's known parameters. An unknown, broken or repeated
// one is an error, because a filter that is left out silently selects everything.
func parameters(raw string) (url.Values, error) {
	v, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fmt.Errorf("cannot read the query: %w", err)
	}
	for name, values := range v {
		if !known[name] {
			return nil, fmt.Errorf("there is no parameter %s: allowed are model, tenant, deployment, outcome, tag, session, since, until, min_ttft_ms, sort, cursor, limit, format", strconv.Quote(name))
		}
		if len(values) > 1 {
			return nil, fmt.Errorf("the parameter %s may stand once", name)
		}
	}
	return v, nil
}

func outcomes() string {
	var words []string
	for _, o := range trace.Outcomes {
		words = append(words, string(o))
	}
	return strings.Join(words, ", ")
}

func instant(v url.Values, name string) (time.Time, error) {
	s := v.Get(name)
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, fmt.Errorf("cannot read %s=%q: an RFC 3339 time is needed, such as 2026-01-31T15:04:05Z", name, s)
	}
	return t, nil
}

var columns = []string{"id", "client_request_id", "tenant", "key_id", "model", "deployment", "dialect", "stream", "outcome", "phase",
	"enqueue_time", "first_token_time", "last_token_time", "finish_time", "ttft_ms", "duration_ms", "queue_ms",
	"tokens_input", "tokens_output", "finish_reason", "attempts"}

// writeCSV writes the flat part of the records; what is unknown stays empty.
func writeCSV(w http.ResponseWriter, records []*trace.Record) {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	out := csv.NewWriter(w)
	_ = out.Write(columns) // a failure shows again in Flush, when the caller has gone
	for _, r := range records {
		_ = out.Write([]string{text(r.ID), text(r.ClientID), text(r.Tenant), text(r.KeyID), text(r.Model), text(r.Deployment()), text(r.Dialect),
			strconv.FormatBool(r.Stream), string(r.Outcome), string(r.Phase),
			wall(r, trace.Enqueue), wall(r, trace.FirstToken), wall(r, trace.LastToken), wall(r, trace.Finish),
			milliseconds(r.TTFT()), milliseconds(r.Duration()), milliseconds(r.Queue()),
			count(r.Tokens.Input), count(r.Tokens.Output), text(r.FinishReason), strconv.Itoa(len(r.Attempts))})
	}
	out.Flush()
}

// text is the cell of a value from outside. A spreadsheet would run one that begins like a formula: an apostrophe before
// it makes it text there.
func text(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

func wall(r *trace.Record, m trace.Mark) string {
	t := r.At(m)
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

func milliseconds(d time.Duration, ok bool) string {
	if !ok {
		return ""
	}
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 3, 64)
}

func count(n int64) string {
	if n < 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
