package trace

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// finished adds a record of a finished stream with a TTFT, a total and a cost.
func finished(b *Book, id string, ttft, total time.Duration, cost float64) *Record {
	r := NewRecord(noon)
	r.ID, r.Stream, r.Outcome, r.Cost = id, true, OK, cost
	r.Stamp(Enqueue, noon)
	if ttft >= 0 {
		r.Stamp(FirstToken, noon.Add(ttft))
	}
	r.Stamp(Finish, noon.Add(total))
	b.Add(r)
	return r
}

func ids(rs []*Record) (out []string) {
	for _, r := range rs {
		out = append(out, r.ID)
	}
	return out
}

func TestSorts(t *testing.T) {
	b := NewBook(10)
	finished(b, "a", 30*ms, 90*ms, 2)
	finished(b, "b", Unknown, 50*ms, Unknown)
	finished(b, "c", 10*ms, 70*ms, 3)
	run := b.Open(time.Now().Add(-time.Hour))
	run.SetID("run")
	for by, want := range map[Sort]string{"": "[run c b a]", Newest: "[run c b a]", SlowestTTFT: "[a c run b]",
		SlowestAll: "[run a c b]", Costliest: "[c a run b]"} {
		page, next := b.List(Query{Sort: by})
		equal(t, string(by), fmt.Sprint(ids(page)), want)
		equal(t, "next", next, "")
	}
}

func TestFilters(t *testing.T) {
	b := NewBook(10)
	finished(b, "plain", 10*ms, 20*ms, 1)
	r := NewRecord(noon)
	r.ID, r.Model, r.Tenant, r.Outcome, r.Stream = "hit", "m", "t", UpstreamError, true
	r.Tags, r.Client.Session = []string{"x", "y"}, "s"
	r.Attempts = []Attempt{{Deployment: "d1"}, {Deployment: "d2"}}
	r.Stamp(Enqueue, noon.Add(s))
	r.Stamp(FirstToken, noon.Add(2*s))
	r.Stamp(Finish, noon.Add(3*s))
	b.Add(r)
	tl := b.Open(noon.Add(-s))
	tl.SetID("running")
	for name, c := range map[string]struct {
		q    Query
		want string
	}{
		"model":                {Query{Model: "m"}, "[hit]"},
		"tenant":               {Query{Tenant: "t"}, "[hit]"},
		"first deployment":     {Query{Deployment: "d1"}, "[hit]"},
		"last deployment":      {Query{Deployment: "d2"}, "[hit]"},
		"outcome":              {Query{Outcome: OK}, "[plain]"},
		"tag":                  {Query{Tag: "y"}, "[hit]"},
		"session":              {Query{Session: "s"}, "[hit]"},
		"since":                {Query{Since: noon.Add(s)}, "[hit]"},
		"until":                {Query{Until: noon.Add(s)}, "[running plain]"},
		"min_ttft":             {Query{MinTTFT: s}, "[hit]"},
		"both":                 {Query{Model: "m", Outcome: OK}, "[]"},
		"nothing asked":        {Query{}, "[running hit plain]"},
		"an unreadable cursor": {Query{Cursor: "zz"}, "[running hit plain]"},
	} {
		page, _ := b.List(c.q)
		equal(t, name, fmt.Sprint(ids(page)), c.want)
	}
}

func TestRunningIsFilteredByItsMarks(t *testing.T) {
	b := NewBook(1)
	tl := b.Open(noon)
	tl.Edit(func(r *Record) { r.Stream = true })
	for _, m := range []Mark{Enqueue, Admit, Pick, Send, Headers} {
		tl.MarkAt(m, noon.Add(s))
	}
	tl.TokensAt(1, noon.Add(3*s))
	for d, want := range map[time.Duration]int{2 * s: 1, 3 * s: 0} {
		page, _ := b.List(Query{MinTTFT: d})
		equal(t, d.String(), len(page), want)
	}
	page, _ := b.List(Query{Until: noon.Add(s)})
	equal(t, "until the enqueue", len(page), 0)
}

func TestPagesAreTheWholeInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewBook(rapid.IntRange(1, 40).Draw(t, "memory"))
		for i := range rapid.IntRange(0, 50).Draw(t, "finished") {
			v := time.Duration(rapid.IntRange(-1, 4).Draw(t, "value")) * ms
			finished(b, fmt.Sprint("f", i), v, max(v, 0), float64(max(v, -1)))
		}
		for range rapid.IntRange(0, 5).Draw(t, "running") {
			b.Open(noon)
		}
		q := Query{Sort: rapid.SampledFrom([]Sort{Newest, SlowestTTFT, SlowestAll, Costliest}).Draw(t, "sort")}
		all, _ := b.List(Query{Sort: q.Sort, Limit: MaxLimit})
		if q.Sort == SlowestAll { // the running ones grow older meanwhile
			all = slices.DeleteFunc(all, (*Record).Running)
		}
		q.Limit = rapid.IntRange(1, 10).Draw(t, "limit")
		var got []*Record
		for range 100 {
			page, next := b.List(q)
			got = append(got, page...)
			if next == "" {
				break
			}
			if len(page) != q.Limit {
				t.Fatalf("page of %d before the last", len(page))
			}
			q.Cursor = next
			if err := q.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if q.Sort == SlowestAll {
			got = slices.DeleteFunc(got, (*Record).Running)
		}
		if !slices.Equal(ids(got), ids(all)) {
			t.Fatalf("pages %v, whole %v", ids(got), ids(all))
		}
	})
}

func TestNewRecordsDoNotShiftPages(t *testing.T) {
	b := NewBook(10)
	for i := range 4 {
		finished(b, fmt.Sprint(i), ms, ms, 0)
	}
	page, next := b.List(Query{Limit: 2})
	equal(t, "first", fmt.Sprint(ids(page)), "[3 2]")
	finished(b, "late", ms, ms, 0)
	page, _ = b.List(Query{Limit: 2, Cursor: next})
	equal(t, "second", fmt.Sprint(ids(page)), "[1 0]")
}

func TestLimits(t *testing.T) {
	b := NewBook(1100)
	for i := range 1100 {
		finished(b, fmt.Sprint(i), ms, ms, 0)
	}
	for limit, want := range map[int]int{0: 100, 7: 7, 1000: 1000, 5000: 1000} {
		page, _ := b.List(Query{Limit: limit})
		equal(t, fmt.Sprint(limit), len(page), want)
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{Sort: "best"}, "cannot sort by sort=best: allowed are newest, slowest_ttft, slowest_total, costliest"},
		{Query{Limit: 1001}, "cannot return limit=1001: allowed are 1 to 1000"},
		{Query{Cursor: "x"}, `cannot read cursor="x": not one of ours`},
		{Query{Cursor: "f1.zz!"}, `cannot read cursor="f1.zz!": not one of ours`},
	} {
		if err := c.q.Check(); err == nil || err.Error() != c.want {
			t.Errorf("Check = %v, want %s", err, c.want)
		}
	}
}
