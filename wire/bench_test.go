//go:build !race && linux

package wire

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// measure runs f as a benchmark and also reports the CPU time of one run, which on a busy machine is the figure that
// can be compared.
func measure(b *testing.B, f func()) {
	b.ReportAllocs()
	begin := cpuTime()
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(cpuTime()-begin)/float64(b.N), "cpu-ns/op")
}

func cpuTime() int64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return r.Utime.Nano() + r.Stime.Nano()
}

func BenchmarkObserve(b *testing.B) {
	for _, tt := range templates {
		fast := named(tt.event, render(tt.format, " hello", 10, "pad"))
		quoted := named(tt.event, render(tt.format, ` \"hello\"`, 10, "pad"))
		b.Run(tt.name+"/fast", func(b *testing.B) {
			var o Observation
			measure(b, func() { tt.dialect.Observe(&o, fast) })
		})
		b.Run(tt.name+"/quoted", func(b *testing.B) {
			var o Observation
			measure(b, func() { tt.dialect.Observe(&o, quoted) })
		})
		b.Run(tt.name+"/scanned", func(b *testing.B) {
			var o Observation
			measure(b, func() {
				o.shapes.of[0].n, o.shapes.of[1].n = 0, 0
				tt.dialect.Observe(&o, quoted)
			})
		})
	}
}

func BenchmarkReadHead(b *testing.B) {
	prose := []byte(`{"model":"m","messages":[{"role":"user","content":"` +
		strings.Repeat(`The quick brown fox\njumps over the lazy dog, and more of that. `, 200<<10/65) + `"}]}`)
	bodies := map[string][]byte{"prose 200KB": prose}
	for _, size := range []int{2, 60, 200} {
		bodies[fmt.Sprintf("agent %dKB", size)] = agentBody(size << 10)
	}
	for name, body := range bodies {
		b.Run(name, func(b *testing.B) {
			var h Head
			b.SetBytes(int64(len(body)))
			measure(b, func() {
				if err := ReadHead(Messages, body, &h); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}
