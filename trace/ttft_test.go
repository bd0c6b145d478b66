package trace

import (
	"testing"
	"testing/synctest"
	"time"
)

// begin walks a stream to its answer's head.
func begin(tl *Timeline) {
	for _, m := range []Mark{Enqueue, Admit, Pick} {
		tl.Mark(m)
	}
	tl.BeginAttempt("vllm-a")
	tl.Mark(Send)
	tl.Mark(Headers)
	tl.Mark(FirstByte)
}

func TestFirstTokenIsSetOnceAndNotTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := NewBook(1).Open(time.Now())
		tl.Edit(func(r *Record) { r.Stream = true; r.Tokens.Output = 11 })
		begin(tl)
		pass(200 * time.Millisecond)
		tl.Tokens(1)
		for range 10 {
			pass(200 * time.Millisecond)
			tl.Tokens(1)
		}
		pass(time.Second) // the terminal event comes later: no token
		r := tl.Finish(OK, nil)
		ttft, _ := r.TTFT()
		equal(t, "ttft", ttft, 200*time.Millisecond)
		total, _ := r.Duration()
		equal(t, "duration", total, 3200*time.Millisecond)
		tpot, _ := r.TPOT()
		equal(t, "tpot", tpot, 200*time.Millisecond)
		equal(t, "last token", r.At(LastToken).Sub(r.At(FirstToken)), 2*time.Second)
		equal(t, "gaps", r.TBT.Count, 10)
		equal(t, "ttft of the attempt", r.Attempts[0].FirstToken, 200*time.Millisecond)
	})
}

func TestZeroIsAValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := NewBook(1).Open(time.Now())
		tl.Edit(func(r *Record) { r.Stream = true })
		begin(tl)
		tl.Tokens(1)
		r := tl.Finish(OK, nil)
		ttft, ok := r.TTFT()
		equal(t, "ttft known", ok, true)
		equal(t, "ttft", ttft, 0)
		if doc := decode(t, r); doc["ttft_ms"] != 0.0 || doc["first_token_time"] == nil || doc["queue_ms"] != 0.0 {
			t.Errorf("zero was rendered as missing: %v %v", doc["ttft_ms"], doc["first_token_time"])
		}
	})
}

func TestTTFTCountsFromEnqueueOverAllAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := NewBook(1).Open(time.Now())
		tl.Edit(func(r *Record) { r.Stream = true })
		pass(time.Second) // reading the request is not waiting for a token
		begin(tl)
		pass(2 * time.Second)
		tl.EndAttempt(ResultFault, "timeout_first_token", 0)
		tl.BeginAttempt("vllm-b")
		tl.Mark(Send)
		pass(300 * time.Millisecond)
		tl.Mark(Headers)
		tl.Mark(FirstByte)
		tl.Tokens(1)
		r := tl.Finish(OK, nil)
		ttft, _ := r.TTFT()
		equal(t, "ttft", ttft, 2300*time.Millisecond)
		equal(t, "ttft of the attempt", r.Attempts[1].FirstToken, 300*time.Millisecond)
		equal(t, "start of the attempt", r.Attempts[1].Start, 3*time.Second)
		equal(t, "end of the first", r.Attempts[0].End, 3*time.Second)
	})
}

func TestAnAnswerInOnePieceHasNoTTFTUnlessReported(t *testing.T) {
	for _, reported := range []time.Duration{Unknown, 0, 40 * time.Millisecond} {
		tl := NewBook(1).Open(time.Now())
		tl.Edit(func(r *Record) { r.ReportedTTFT = reported })
		begin(tl)
		r := tl.Finish(OK, nil)
		got, ok := r.TTFT()
		equal(t, "ttft known", ok, reported >= 0)
		equal(t, "ttft", got, reported)
		equal(t, "known in JSON", decode(t, r)["ttft_ms"] != nil, reported >= 0)
	}
}

func TestRefusedBeforeItWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := NewBook(1).Open(time.Now())
		pass(3 * time.Millisecond)
		r := tl.Finish(Refused, &ErrorInfo{Kind: "unknown_key", Message: "no such key"})
		doc := decode(t, r)
		equal(t, "enqueue_time", doc["enqueue_time"], nil)
		equal(t, "duration", doc["duration_ms"], any(3.0))
		equal(t, "phase", doc["phase"], any("admit"))
		equal(t, "queue", doc["queue_ms"], nil)
	})
}

func TestQueueIsTheWaitForADeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBook(2)
		tl := b.Open(time.Now())
		tl.Mark(Enqueue)
		pass(5 * time.Millisecond) // the limiter
		tl.Mark(Admit)
		pass(7 * time.Millisecond)
		tl.Mark(Pick)
		d, _ := tl.Finish(OK, nil).Queue()
		equal(t, "queue", d, 7*time.Millisecond)

		tl = b.Open(time.Now())
		tl.Mark(Enqueue)
		tl.Mark(Admit)
		pass(30 * time.Second)
		d, _ = tl.Finish(QueueTimeout, nil).Queue()
		equal(t, "queue without a pick", d, 30*time.Second)
	})
}
