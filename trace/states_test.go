package trace

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLegalPathsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewBook(4)
		tl := b.Open(noon)
		tl.Edit(func(r *Record) { r.Stream = true; r.Tokens.Output = 5 })
		now, state, committed := noon, opened, false
		var reached []Mark
		for state != Finish {
			legal := slices.DeleteFunc(slices.Clone(next[state]), func(m Mark) bool {
				return m == Finish || m == Commit && committed
			})
			if len(legal) == 0 || len(reached) > 40 || rapid.IntRange(0, 9).Draw(t, "end") == 0 {
				break
			}
			m := rapid.SampledFrom(legal).Draw(t, "mark")
			now = now.Add(time.Duration(rapid.IntRange(-1000, 1e9).Draw(t, "step")))
			if m == Pick {
				if n := len(tl.rec.Attempts); n > 0 {
					tl.EndAttempt(ResultFault, "cut", 0)
				}
				tl.MarkAt(Pick, now)
				tl.BeginAttempt("d")
			} else {
				tl.MarkAt(m, now)
			}
			reached = append(reached, m)
			if m == Commit {
				committed = true
			} else {
				state = m
			}
		}
		r := tl.Finish(UpstreamError, nil)
		if got := b.Misuse(); got != 0 {
			t.Fatalf("misuse = %d", got)
		}
		checkDurations(t, r, reached)
	})
}

// checkDurations: no duration is negative, first stamps rise in the order they were made, the parts are the whole.
func checkDurations(t *rapid.T, r *Record, reached []Mark) {
	last := time.Duration(0)
	seen := map[Mark]bool{}
	for _, m := range append(reached, Finish) {
		if seen[m] || m == LastToken {
			continue
		}
		seen[m] = true
		d, ok := r.Offset(m)
		if !ok || d < last {
			t.Fatalf("%v at %v (%v) after %v", m, d, ok, last)
		}
		last = d
	}
	for name, f := range map[string]func() (time.Duration, bool){"ttft": r.TTFT, "duration": r.Duration,
		"queue": r.Queue, "tpot": r.TPOT} {
		if d, ok := f(); ok && d < 0 {
			t.Fatalf("%s = %v", name, d)
		}
	}
	if total, ok := r.Duration(); seen[FirstToken] && ok {
		ttft, _ := r.TTFT()
		rest, _ := r.between(FirstToken, Finish)
		if ttft+rest != total {
			t.Fatalf("ttft %v + streaming %v != total %v", ttft, rest, total)
		}
	}
	for _, a := range r.Attempts {
		if a.End < a.Start || a.Sent > a.End-a.Start && a.Headers < 0 && a.N == len(r.Attempts) {
			t.Fatalf("attempt %+v", a)
		}
		order := slices.DeleteFunc([]time.Duration{a.Sent, a.Headers, a.FirstByte, a.FirstToken},
			func(d time.Duration) bool { return d < 0 })
		if !slices.IsSorted(order) {
			t.Fatalf("attempt runs backwards: %v", order)
		}
	}
}

func TestEveryForbiddenStepIsCaught(t *testing.T) {
	for from := range numMarks + 1 {
		for to := range numMarks {
			if from == to || from == Commit || slices.Contains(next[from], to) {
				continue
			}
			b := NewBook(1)
			tl := b.Open(noon)
			tl.state = from
			mustPanic(t, "BUG: timeline: mark "+to.String()+" after "+from.String(), func() { tl.Mark(to) })
		}
	}
}

func TestForbiddenStepInProductionIsCountedAndChangesNothing(t *testing.T) {
	loose(t)
	b := NewBook(1)
	tl := b.Open(noon)
	tl.Mark(Headers)
	tl.Mark(Enqueue)
	tl.Tokens(3)
	r := tl.Finish(OK, nil)
	equal(t, "misuse", b.Misuse(), 2)
	equal(t, "headers", r.At(Headers).IsZero(), true)
	equal(t, "first token", r.At(FirstToken).IsZero(), true)
	equal(t, "gaps", r.TBT.Count, 0)
}

func TestFirstStampWinsAndAttemptsKeepTheirOwn(t *testing.T) {
	b := NewBook(1)
	tl := b.Open(noon)
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	tl.MarkAt(Enqueue, at(1))
	tl.MarkAt(Enqueue, at(2))
	tl.MarkAt(Admit, at(3))
	tl.MarkAt(Pick, at(4))
	tl.BeginAttempt("a")
	tl.MarkAt(Send, at(5))
	tl.MarkAt(Headers, at(6))
	tl.EndAttempt(ResultFault, "status_5xx", 503)
	tl.MarkAt(Commit, at(7)) // a keep-alive began the answer between two attempts
	tl.MarkAt(Pick, at(8))
	tl.BeginAttempt("b")
	tl.MarkAt(Send, at(9))
	tl.MarkAt(Commit, at(10))
	tl.MarkAt(Headers, at(11))
	tl.EndAttempt(ResultOK, "", 200)
	r := tl.Finish(OK, nil)
	equal(t, "enqueue", r.At(Enqueue), at(1))
	equal(t, "dispatch", r.At(Send), at(5))
	equal(t, "headers", r.At(Headers), at(6))
	equal(t, "commit", r.At(Commit), at(7))
	equal(t, "attempts", len(r.Attempts), 2)
	a, c := r.Attempts[0], r.Attempts[1]
	equal(t, "first attempt's headers", noon.Add(a.Start+a.Headers), noon.Add(max(a.Start, 6*time.Millisecond)))
	equal(t, "second attempt has its own headers", c.Headers >= 0, true)
	equal(t, "status", a.Status, 503)
	equal(t, "deployment", r.Deployment(), "b")
}

func TestPhaseFollowsTheMarks(t *testing.T) {
	tl := NewBook(1).Open(time.Now())
	want := func(p Phase) { t.Helper(); equal(t, "phase", tl.Phase(), p) }
	want(PhaseAdmit)
	tl.Mark(Enqueue)
	want(PhaseAdmit)
	tl.Mark(Admit)
	want(PhaseQueue)
	tl.BeginAttempt("a")
	want(PhaseConnect)
	tl.Mark(Send)
	want(PhaseConnect)
	tl.SetPhase(PhaseWaitingHeaders)
	want(PhaseWaitingHeaders)
	tl.Mark(Headers)
	want(PhaseWaitingFirstToken)
	tl.Mark(FirstByte)
	tl.Tokens(1)
	want(PhaseStreaming)
	r := tl.Finish(StreamInterrupted, &ErrorInfo{Kind: "cut"})
	equal(t, "phase at the end", r.Phase, PhaseStreaming)
	equal(t, "result of the open attempt", r.Attempts[0].Result, ResultFault)
}

func TestPictureNamesEveryMark(t *testing.T) {
	got := Mermaid()
	for m := range numMarks {
		if !strings.Contains(got, "--> "+m.String()+"\n") {
			t.Errorf("picture lacks %v:\n%s", m, got)
		}
	}
}
