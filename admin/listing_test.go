package admin

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tracegate/trace"
)

// listed fills the ring with five requests, one to five, that differ in what a listing can ask for.
func listed(t *testing.T) *rig {
	r := newRig(t, nil)
	for n, fill := range []func(*trace.Record){
		func(x *trace.Record) { x.Model, x.Tenant, x.Tags = "m1", "t1", []string{"batch"} },
		func(x *trace.Record) { x.Model, x.Tenant, x.Outcome = "m2", "t1", trace.ClientAbort },
		func(x *trace.Record) { x.Model, x.Tenant, x.Client.Session = "m1", "t2", "s 1" },
		func(x *trace.Record) {
			x.Model, x.Tenant, x.Cost = "m2", "t2", 0.5
			x.Attempts = []trace.Attempt{{N: 1, Deployment: "d1"}, {N: 2, Deployment: "d2"}}
		},
		func(x *trace.Record) { x.Model, x.Tenant, x.Tags, x.Cost = "m1", "t1", []string{"a", "batch"}, 2 },
	} {
		r.finished([]string{"one", "two", "three", "four", "five"}[n], n+1, fill)
	}
	return r
}

func TestAListingIsFiltered(t *testing.T) {
	r := listed(t)
	for query, want := range map[string]string{
		"":                           "five four three two one",
		"model=m1":                   "five three one",
		"model=m1&tenant=t1":         "five one",
		"tenant=t2":                  "four three",
		"deployment=d1":              "four",
		"deployment=d2":              "four",
		"outcome=client_abort":       "two",
		"outcome=ok":                 "five four three one",
		"tag=batch":                  "five one",
		"session=s+1":                "three",
		"since=2026-11-30T12:00:03Z": "five four three",
		"until=2026-11-30T12:00:03Z": "two one",
		"since=2026-11-30T13:00:02%2b01:00&until=2026-11-30T12:00:03.000000001Z": "three two",
		"min_ttft_ms=300":              "five four three",
		"min_ttft_ms=300.5":            "five four",
		"model=none":                   "",
		"model=m&tenant=":              "",
		"model=":                       "five four three two one",
		"sort=newest":                  "five four three two one",
		"sort=slowest_ttft":            "five four three two one",
		"sort=slowest_total":           "five four three two one",
		"sort=costliest&limit=2":       "five four",
		"limit=1":                      "five",
		"limit=1000":                   "five four three two one",
		"format=json&limit=2&model=m1": "five three",
	} {
		ids, _ := r.get("/api/v1/requests?" + query).ids()
		equal(t, "?"+query, strings.Join(ids, " "), want)
	}
}

func TestPagesFollowOneAnother(t *testing.T) {
	r := listed(t)
	var running []string
	for range 2 {
		running = append([]string{r.running("").ID()}, running...)
	}
	want := strings.Join(running, " ") + " five four three two one"
	for _, query := range []string{"limit=1", "limit=2", "limit=3", "limit=7"} {
		var got []string
		for next, pages := "", 0; ; pages++ {
			ids, cursor := r.get("/api/v1/requests?" + query + "&cursor=" + url.QueryEscape(next)).ids()
			got = append(got, ids...)
			if next = cursor; next == "" || pages > 10 {
				break
			}
		}
		equal(t, query, strings.Join(got, " "), want)
	}
	equal(t, "an empty page", r.get("/api/v1/requests?model=none").is(200).body, `{"requests":[],"next":null}`+"\n")
}

func TestAPageHasAHundredUnlessAsked(t *testing.T) {
	r := newRig(t, nil)
	for n := range 1100 {
		r.finished(fmt.Sprint("r", n), n, nil)
	}
	for query, want := range map[string]int{"": 100, "?limit=1000": 1000, "?limit=1": 1} {
		ids, next := r.get("/api/v1/requests" + query).ids()
		equal(t, "entries of "+query, len(ids), want)
		equal(t, "there is more after "+query, next != "", true)
	}
}

func TestWrongQueriesAreNamed(t *testing.T) {
	r := listed(t)
	for query, words := range map[string][]string{
		"modle=m1":                   {`"modle"`, "model, tenant"},
		"Model=m1":                   {`"Model"`},
		"model=m1&limit=5&x=":        {`"x"`},
		"limit=0":                    {`limit="0"`, "1 to 1000"},
		"limit=-1":                   {`limit="-1"`, "1 to 1000"},
		"limit=1001":                 {"limit=1001", "1 to 1000"},
		"limit=ten":                  {`limit="ten"`, "1 to 1000"},
		"limit=99999999999999999999": {"limit=", "1 to 1000"},
		"sort=oldest":                {"sort=oldest", "newest, slowest_ttft, slowest_total, costliest"},
		"cursor=x":                   {`cursor="x"`},
		"since=yesterday":            {`since="yesterday"`, "RFC 3339"},
		"until=2026-11-30":           {`until="2026-11-30"`, "RFC 3339"},
		"min_ttft_ms=1s":             {`min_ttft_ms="1s"`, "milliseconds"},
		"min_ttft_ms=-1":             {`min_ttft_ms="-1"`},
		"min_ttft_ms=NaN":            {`min_ttft_ms="NaN"`},
		"min_ttft_ms=1e300":          {`min_ttft_ms="1e300"`},
		"format=xml":                 {`format="xml"`, "json, jsonl, csv"},
		"outcome=aborted":            {`outcome="aborted"`, "ok, client_abort, refused"},
		"model=%zz":                  {"query"},
		"model=m1;tenant=t1":         {"query"},
		"model=m1&model=m2":          {"model", "once"},
	} {
		t.Run(query, func(t *testing.T) {
			r := *r
			r.t = t
			r.get("/api/v1/requests?"+query).refused(http.StatusBadRequest, words...)
		})
	}
}
