package trace

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The ring against the plainest model of it: a list of the newest records, searched from its end.
func TestNamesAreExactOnEviction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 6).Draw(t, "size")
		b := NewBook(size)
		var model []*Record
		name := rapid.SampledFrom([]string{"", "a", "b", "c", "d-a1"})
		for i := range rapid.IntRange(0, 30).Draw(t, "records") {
			r := NewRecord(noon)
			r.ID = fmt.Sprintf("id%d", i)
			if rapid.Bool().Draw(t, "trusted") {
				r.ID = name.Filter(func(s string) bool { return s != "" }).Draw(t, "id")
			}
			r.ClientID = name.Draw(t, "client")
			r.UpstreamIDs = []string{r.ID + "-a1", name.Draw(t, "up"), name.Draw(t, "up")}
			b.Add(r)
			model = append([]*Record{r}, model...)
			model = model[:min(len(model), size)]

			for _, id := range []string{"a", "b", "c", "d-a1", "a-a1", "a-a2", r.ID, r.ID + "-a1", "id0", "id0-a1"} {
				want := slices.DeleteFunc(slices.Clone(model), func(r *Record) bool { return !r.goesBy(id) })
				got := b.Get(id)
				slices.SortFunc(got, bySerial)
				slices.SortFunc(want, bySerial)
				if !slices.Equal(got, want) {
					t.Fatalf("Get(%s) = %d records, want %d", id, len(got), len(want))
				}
			}
		}
	})
}

func bySerial(a, b *Record) int { return int(a.serial) - int(b.serial) }

func TestReusedClientIDFindsAllNewestFirst(t *testing.T) {
	b := NewBook(3)
	var last *Record
	for range 5 {
		tl := b.Open(noon)
		tl.Edit(func(r *Record) { r.ClientID = "mine-0001" })
		last = tl.Finish(OK, nil)
	}
	running := b.Open(noon)
	running.Edit(func(r *Record) { r.ClientID = "mine-0001" })
	got := b.Get("mine-0001")
	equal(t, "found", len(got), 4)
	equal(t, "first runs", got[0].Running(), true)
	equal(t, "then the newest", got[1], last)
	equal(t, "unknown", len(b.Get("other-0001")), 0)
	equal(t, "empty", len(b.Get("")), 0)
}

func TestRunningIsFoundByAllItsNames(t *testing.T) {
	b := NewBook(3)
	tl := b.Open(noon)
	tl.SetID("theirs-0001")
	tl.Edit(func(r *Record) { r.ClientID = "client"; r.UpstreamIDs = []string{"theirs-0001-a1", "cmpl-7"} })
	for _, id := range []string{"theirs-0001", "client", "theirs-0001-a1", "cmpl-7"} {
		got := b.Get(id)
		if len(got) != 1 || !got[0].Running() || got[0].ID != "theirs-0001" {
			t.Errorf("Get(%s) = %v", id, got)
		}
	}
	tl.Finish(OK, nil)
	for _, id := range []string{"theirs-0001", "client", "theirs-0001-a1", "cmpl-7"} {
		if got := b.Get(id); len(got) != 1 || got[0].Running() {
			t.Errorf("Get(%s) after the finish = %v", id, got)
		}
	}
}

func TestIDsSortByTime(t *testing.T) {
	var ids []string
	for range 1000 {
		ids = append(ids, NewID())
	}
	equal(t, "sorted", slices.IsSorted(ids), true)
	equal(t, "distinct", len(slices.Compact(ids)), 1000)
	equal(t, "length", len(ids[0]), 26)
	b := NewBook(1)
	early, late := b.Open(noon), b.Open(noon.Add(ms))
	equal(t, "by opening", early.ID() < late.ID(), true)
}
