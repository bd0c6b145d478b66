package trace

import (
	"math/rand/v2"
	"testing"
	"time"
)

func BenchmarkTokens(b *testing.B) {
	tl := NewBook(1).Open(time.Now())
	begin(tl)
	for b.Loop() {
		tl.Tokens(1)
	}
}

// BenchmarkTokensSpread has gaps as streams have them, without the clock's cost.
func BenchmarkTokensSpread(b *testing.B) {
	tl := NewBook(1).Open(time.Now())
	begin(tl)
	var steps [1024]int64
	for i := range steps {
		steps[i] = int64(10*ms) + rand.Int64N(int64(20*ms))
	}
	now := int64(0)
	for i := 0; b.Loop(); i++ {
		now += steps[i&1023]
		tl.tokens(1, now)
	}
}

// BenchmarkTokensGrowing is the strip's worst case: every gap is longer than all before.
func BenchmarkTokensGrowing(b *testing.B) {
	tl := NewBook(1).Open(time.Now())
	begin(tl)
	now := int64(0)
	for i := int64(0); b.Loop(); i++ {
		now += i * 1000 % int64(100*s)
		tl.tokens(1, now)
	}
}

func BenchmarkNow(b *testing.B) {
	base := time.Now()
	for b.Loop() {
		_ = time.Since(base)
	}
}

// BenchmarkFinish is the ring's part of a finish, with its full index.
func BenchmarkFinish(b *testing.B) {
	book := NewBook(20000)
	records := make([]*Record, 60000)
	for i := range records {
		r := NewRecord(noon)
		r.ID, r.ClientID = NewID(), NewID()
		r.UpstreamIDs = []string{r.ID + "-a1", NewID(), NewID()}
		records[i] = r
	}
	for i := 0; b.Loop(); i++ {
		book.Add(records[i%len(records)])
	}
}

func BenchmarkLife(b *testing.B) {
	book := NewBook(20000)
	b.ReportAllocs()
	for b.Loop() {
		tl := book.Open(time.Now())
		begin(tl)
		for range 10 {
			tl.Tokens(1)
		}
		tl.EndAttempt(ResultOK, "", 200)
		tl.Finish(OK, nil)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	tl := NewBook(1).Open(time.Now())
	begin(tl)
	for range 100 {
		tl.Tokens(1)
	}
	b.ReportAllocs()
	for b.Loop() {
		tl.Snapshot()
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	r := full()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = r.AppendJSON(buf[:0])
	}
}
