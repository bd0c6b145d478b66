//go:build !race

package trace

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

func TestTokensDoNotAllocate(t *testing.T) {
	tl := NewBook(1).Open(time.Now())
	begin(tl)
	tl.Tokens(2)
	if n := testing.AllocsPerRun(1000, func() { tl.Tokens(3); tl.LastToken() }); n != 0 {
		t.Errorf("allocations per token: %v", n)
	}
}

// A gateway holds many thousands of streams: a running one must stay within 2.5 KiB.
func TestMemoryOfARunningStream(t *testing.T) {
	const streams, most = 10000, 2560
	names := make([]string, 16) // configured names are shared by all records
	for i := range names {
		names[i] = fmt.Sprint("deployment-", i)
	}
	b := NewBook(1)
	before := heap()
	for i := range streams {
		tl := b.Open(time.Now())
		tl.Edit(func(r *Record) {
			r.Stream, r.Tenant, r.Model, r.Dialect = true, "tenant", "model", "chat"
			r.UpstreamIDs = append(r.UpstreamIDs, tl.ID()+"-a1")
		})
		begin(tl)
		tl.EditAttempt(func(a *Attempt) { a.Deployment = names[i%len(names)] })
		for range 70 {
			tl.Tokens(1)
		}
	}
	per := (heap() - before) / streams
	t.Logf("%d bytes per running stream", per)
	if per > most {
		t.Errorf("a running stream takes %d bytes, at most %d are allowed", per, most)
	}
	runtime.KeepAlive(b)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
