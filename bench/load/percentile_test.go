package load

import (
	"math/rand/v2"
	"testing"
)

// TestRankIsExact compares with the definition: the least sample that at least p percent do not exceed.
func TestRankIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 2200; n += 1 + n/7 {
		samples := make([]int64, n)
		for i := range samples {
			samples[i] = rng.Int64N(500)
		}
		d := describe(samples) // sorts
		for _, p := range []struct {
			tenths int // per mille, so that the definition is in whole numbers
			got    float64
		}{{500, d.P50}, {900, d.P90}, {990, d.P99}, {999, d.P999}, {1000, d.Max}} {
			i := 0
			for (i+1)*1000 < p.tenths*n {
				i++
			}
			if want := float64(samples[i]) / 1e3; p.got != want {
				t.Fatalf("n=%d p=%d/1000: got %v, want %v", n, p.tenths, p.got, want)
			}
		}
	}
	if d := describe(nil); d != (Dist{}) {
		t.Errorf("no samples: %+v", d)
	}
}
