package trace

import (
	"testing"
	"time"
)

func TestFinishOnce(t *testing.T) {
	var got []*Record
	b := NewBook(2, func(r *Record) { got = append(got, r) }, func(r *Record) { got = append(got, r) })
	tl := b.Open(noon)
	equal(t, "running", b.Running(), 1)
	r := tl.Finish(OK, nil)
	equal(t, "running", b.Running(), 0)
	equal(t, "sinks", len(got), 2)
	equal(t, "the sink's record", got[0], r)
	equal(t, "snapshot", tl.Snapshot(), r)

	mustPanic(t, "BUG: timeline: finish twice id="+r.ID, func() { tl.Finish(ClientAbort, nil) })
	mustPanic(t, "BUG: timeline: edit after finish", func() { tl.Edit(func(*Record) {}) })
	loose(t)
	equal(t, "second finish", tl.Finish(ClientAbort, nil), r)
	tl.Edit(func(r *Record) { r.Tenant = "late" })
	tl.EditAttempt(func(a *Attempt) { a.Status = 1 })
	tl.BeginAttempt("late")
	tl.AbortSent(AbortOperator)
	equal(t, "outcome", r.Outcome, OK)
	equal(t, "tenant", r.Tenant, "")
	equal(t, "attempts", len(r.Attempts), 0)
	equal(t, "sinks", len(got), 2)
	equal(t, "misuse", b.Misuse() > 0, true)
}

func TestOpenAttemptEndsWithTheRequest(t *testing.T) {
	for outcome, want := range map[Outcome]Result{OK: ResultOK, ClientAbort: ResultClientAbort, ClientError: ResultNotTheirs,
		WriteStall: ResultNotTheirs, TimeoutIdle: ResultFault, StreamInterrupted: ResultFault} {
		tl := NewBook(1).Open(time.Now())
		begin(tl)
		tl.AbortSent(AbortClientGone)
		tl.AbortSent(AbortOperator)
		a := tl.Finish(outcome, nil).Attempts[0]
		equal(t, string(outcome), a.Result, want)
		equal(t, "end", a.End >= a.Start, true)
		equal(t, "abort", a.AbortReason, AbortClientGone)
	}
}

func TestEndedAttemptKeepsItsVerdict(t *testing.T) {
	tl := NewBook(1).Open(time.Now())
	begin(tl)
	tl.EndAttempt(ResultBackpressure, "backpressure", 429)
	tl.AbortSent(AbortClientGone) // too late: that connection is no longer ours
	r := tl.Finish(ClientAbort, nil)
	equal(t, "result", r.Attempts[0].Result, ResultBackpressure)
	equal(t, "abort", r.Attempts[0].AbortReason, "")
	equal(t, "status", r.Attempts[0].Status, 429)
}

func TestInterruption(t *testing.T) {
	for _, c := range []struct {
		name    string
		marks   []Mark
		outcome Outcome
		side    Side
		whole   bool
		want    Side
	}{
		{name: "cut", marks: []Mark{Send, FirstToken}, outcome: StreamInterrupted, want: SideUpstream},
		{name: "cut by the network", marks: []Mark{Send, FirstToken}, outcome: StreamInterrupted, side: SideNetwork, want: SideNetwork},
		{name: "client left", marks: []Mark{Send}, outcome: ClientAbort, want: SideClient},
		{name: "client left the queue", outcome: ClientAbort},
		{name: "client left the queue after a keep-alive", marks: []Mark{Commit}, outcome: ClientAbort, want: SideClient},
		{name: "idle", marks: []Mark{Send, FirstToken}, outcome: TimeoutIdle, want: SideGateway},
		{name: "total before content", marks: []Mark{Send}, outcome: TimeoutTotal},
		{name: "stall", marks: []Mark{Send, FirstToken}, outcome: WriteStall, want: SideClient},
		{name: "fine", marks: []Mark{Send, FirstToken}, outcome: OK, side: SideNetwork},
		{name: "no stream", marks: []Mark{Send}, outcome: ClientAbort, whole: true},
	} {
		r := NewRecord(noon)
		r.Stream, r.Outcome, r.Side = !c.whole, c.outcome, c.side
		for _, m := range c.marks {
			r.Stamp(m, noon)
		}
		got, ok := r.Interruption()
		if !ok {
			got = ""
		}
		equal(t, c.name, got, c.want)
	}
}
