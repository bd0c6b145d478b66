//go:build !race && linux

package sse

import (
	"bytes"
	"strings"
	"syscall"
	"testing"
)

func chunk(text string, ends string) []byte {
	line := `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1796075362,"model":"tiny","choices":[{"index":0,"delta":{"content":"` +
		text + `"},"logprobs":null,"finish_reason":null}]}`
	return []byte(line + strings.Repeat(ends, 2))
}

func readAll(p *Parser, b []byte) (events int) {
	for len(b) > 0 {
		_, n, ok := p.Next(b)
		if ok {
			events++
		}
		b = b[n:]
	}
	return events
}

func TestEventsDoNotAllocate(t *testing.T) {
	named := []byte("event: content_block_delta\nid: 1\n: c\ndata: {\"a\":1}\ndata: x\n\n")
	for name, b := range map[string][]byte{"LF": chunk("a", "\n"), "CRLF": chunk("a", "\r\n"), "CR": chunk("a", "\r"), "named": named} {
		var p Parser
		whole := func() { readAll(&p, b) }
		halves := func() { readAll(&p, b[:len(b)/2]); readAll(&p, b[len(b)/2:]) }
		bytewise := func() {
			for i := range b {
				readAll(&p, b[i:i+1])
			}
		}
		for how, f := range map[string]func(){"whole": whole, "halves": halves, "bytewise": bytewise} {
			f()
			f()
			if n := testing.AllocsPerRun(100, f); n != 0 {
				t.Errorf("%s, %s: %v allocations, want none", name, how, n)
			}
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for name, event := range map[string][]byte{
		"LF":       chunk(" hello", "\n"),
		"CRLF":     chunk(" hello", "\r\n"),
		"named":    append([]byte("event: content_block_delta\n"), chunk(" hello", "\n")...),
		"LFx100":   bytes.Repeat(chunk(" hello", "\n"), 100),
		"CRLFx100": bytes.Repeat(chunk(" hello", "\r\n"), 100),
		"CRx100":   bytes.Repeat(chunk(" hello", "\r"), 100),
	} {
		b.Run(name, func(b *testing.B) {
			var p Parser
			b.ReportAllocs()
			b.SetBytes(int64(len(event)))
			events := 0
			begin := cpuTime()
			for b.Loop() {
				events += readAll(&p, event)
			}
			b.ReportMetric(float64(cpuTime()-begin)/float64(events), "cpu-ns/event")
		})
	}
}

// cpuTime is the CPU time used so far: on a busy machine it can be compared, wall time cannot.
func cpuTime() int64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return r.Utime.Nano() + r.Stime.Nano()
}
