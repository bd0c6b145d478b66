package admin

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tracegate/trace"
)

// getRequest finds a timeline by our id, the client's or the upstream's. Where
// a client used its id more than once, the newest is the answer.
func (a *api) getRequest(w http.ResponseWriter, r *http.Request) {
	found := a.Book.Get(r.PathValue("id"))
	if len(found) == 0 {
		refuse(w, http.StatusNotFound, "there is no timeline id="+strconv.Quote(r.PathValue("id"))+" among the running requests and the newest finished ones")
		return
	}
	reply(w, http.StatusOK, found[0])
}

func (a *api) abortRequest(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	found := a.Book.Get(id)
	switch {
	case len(found) == 0:
		refuse(w, http.StatusNotFound, "there is no timeline id="+strconv.Quote(id))
	case !found[0].Running() || !a.Book.Abort(found[0].ID, trace.AbortOperator):
		refuse(w, http.StatusConflict, "the request has finished id="+strconv.Quote(id))
	default:
		reply(w, http.StatusAccepted, map[string]string{"id": found[0].ID, "status": "aborting"})
	}
}

type page struct {
	Requests []*trace.Record `json:"requests"`
	Next     *string         `json:"next"`
}

func (a *api) listRequests(w http.ResponseWriter, r *http.Request) {
	q, format, err := readQuery(r.URL.Query())
	if err == nil {
		err = q.Check()
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	records, next := a.Book.List(q)
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

// readQuery reads the parameters; an unknown one is an error, because a
// misspelt filter would silently select everything.
func readQuery(v url.Values) (q trace.Query, format string, err error) {
	for name := range v {
		if !known[name] {
			return q, "", fmt.Errorf("there is no parameter %s: allowed are model, tenant, deployment, outcome, tag, session, since, until, min_ttft_ms, sort, cursor, limit, format", strconv.Quote(name))
		}
	}
	q = trace.Query{
		Model: v.Get("model"), Tenant: v.Get("tenant"), Deployment: v.Get("deployment"), Outcome: trace.Outcome(v.Get("outcome")),
		Tag: v.Get("tag"), Session: v.Get("session"), Sort: trace.Sort(v.Get("sort")), Cursor: v.Get("cursor"),
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
		_ = out.Write([]string{r.ID, r.ClientID, r.Tenant, r.KeyID, r.Model, r.Deployment(), r.Dialect,
			strconv.FormatBool(r.Stream), string(r.Outcome), string(r.Phase),
			wall(r, trace.Enqueue), wall(r, trace.FirstToken), wall(r, trace.LastToken), wall(r, trace.Finish),
			milliseconds(r.TTFT()), milliseconds(r.Duration()), milliseconds(r.Queue()),
			count(r.Tokens.Input), count(r.Tokens.Output), r.FinishReason, strconv.Itoa(len(r.Attempts))})
	}
	out.Flush()
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
