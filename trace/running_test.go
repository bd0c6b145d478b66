package trace

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A client may choose its ids, and choose one twice.
func TestAbortHitsOneOfThoseThatShareAnID(t *testing.T) {
	b := NewBook(4)
	var aborted []int
	var all []*Timeline
	for i := range 3 {
		tl := b.Open(noon)
		tl.SetID("shared-0001")
		tl.OnAbort(func(reason AbortReason) {
			equal(t, "reason", reason, AbortOperator)
			aborted = append(aborted, i)
		})
		all = append(all, tl)
	}
	all[0].Finish(OK, nil) // the last of the running takes its place
	all = all[1:]
	other := b.Open(noon)
	other.SetID("shared-0001")
	equal(t, "without a hook", b.Abort(other.Snapshot(), AbortOperator), false)
	other.OnAbort(func(AbortReason) { t.Error("a stranger was aborted") })

	equal(t, "by a snapshot", b.Abort(all[1].Snapshot(), AbortOperator), true)
	equal(t, "aborted", fmt.Sprint(aborted), "[2]")
	equal(t, "by a snapshot of an older one", b.Abort(all[0].Snapshot(), AbortOperator), true)
	equal(t, "aborted", fmt.Sprint(aborted), "[2 1]")
	r := all[0].Finish(ClientAbort, nil)
	equal(t, "by a finished record", b.Abort(r, AbortOperator), false)
	equal(t, "by a record of another process", b.Abort(NewRecord(noon), AbortOperator), false)
	equal(t, "aborted", fmt.Sprint(aborted), "[2 1]")
}

func TestAbortOfATimeline(t *testing.T) {
	tl := NewBook(1).Open(noon)
	equal(t, "without a hook", tl.Abort(AbortDrain), false)
	var got []AbortReason
	tl.OnAbort(func(r AbortReason) { got = append(got, r) })
	equal(t, "with one", tl.Abort(AbortDrain), true)
	equal(t, "reasons", fmt.Sprint(got), fmt.Sprint([]AbortReason{AbortDrain}))
	tl.Finish(ClientAbort, nil)
	equal(t, "finished", tl.Abort(AbortDrain), false)
	equal(t, "none", (*Timeline)(nil).Abort(AbortDrain), false)
}

func TestEachRunningMayFinishThem(t *testing.T) {
	b := NewBook(2)
	for range 10 {
		b.Open(noon)
	}
	b.EachRunning(func(tl *Timeline) { tl.Finish(ClientAbort, nil) })
	equal(t, "running", b.Running(), 0)
}

// Everybody looks while the owners write: what they see holds together. The race detector watches.
func TestReadersSeeConsistentTimelines(t *testing.T) {
	b := NewBook(8)
	var owners, readers sync.WaitGroup
	var stop atomic.Bool
	for range 2 {
		readers.Go(func() {
			for !stop.Load() {
				b.EachRunning(func(tl *Timeline) {
					_, _, _ = tl.LastToken(), tl.Deployment(), tl.ID()
					checkConsistent(t, tl.Snapshot())
				})
				b.Get("cmpl-1")
				page, _ := b.List(Query{Sort: SlowestTTFT, MinTTFT: 1})
				for _, r := range page {
					checkConsistent(t, r)
				}
			}
		})
	}
	for range 4 {
		owners.Go(func() {
			for range 50 {
				tl := b.Open(time.Now())
				tl.Edit(func(r *Record) { r.Stream = true; r.UpstreamIDs = append(r.UpstreamIDs, "cmpl-1") })
				begin(tl)
				for i := range 200 {
					tl.Tokens(1 + i%2)
				}
				tl.Edit(func(r *Record) { r.Notes = append(r.Notes, Note{Setting: "n"}) })
				tl.EndAttempt(ResultOK, "", 200)
				checkConsistent(t, tl.Finish(OK, nil))
			}
		})
	}
	owners.Wait()
	stop.Store(true)
	readers.Wait()
}

func checkConsistent(t *testing.T, r *Record) {
	h := r.Histogram()
	if h == nil {
		return
	}
	if r.TBT.Count != h.Count() || h.Sum() < 0 {
		t.Errorf("count %d of %d, sum %v", r.TBT.Count, h.Count(), h.Sum())
	}
	enqueue, _ := r.Offset(Enqueue)
	last, _ := r.Offset(LastToken)
	for _, g := range r.Gaps {
		if end := enqueue + g.Offset() + g.Length(); end > last+offsetUnit+gapUnit {
			t.Errorf("a gap ends at %v, after the last token at %v", end, last)
		}
	}
}

func TestSnapshotSharesNothing(t *testing.T) {
	b := NewBook(1)
	tl := b.Open(time.Now())
	begin(tl)
	tl.Edit(func(r *Record) { r.Tags = []string{"a"}; r.Notes = []Note{{Setting: "s"}} })
	r := tl.Snapshot()
	tl.Edit(func(r *Record) { r.Tags[0] = "b"; r.Notes[0].Setting = "x"; r.Tenant = "t" })
	tl.EditAttempt(func(a *Attempt) { a.Status = 500 })
	if r.Tags[0] != "a" || r.Notes[0].Setting != "s" || r.Tenant != "" || r.Attempts[0].Status != 0 {
		t.Errorf("the snapshot changed: %+v", r)
	}
	equal(t, "running", r.Running(), true)
	equal(t, "phase", r.Phase, PhaseWaitingFirstToken)
	equal(t, "taken", r.Taken.IsZero(), false)
}
