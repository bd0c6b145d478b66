package load

import (
	"math"
	"slices"
)

// Dist describes samples by exact order statistics. The unit is that of the samples; in a Result it is microseconds.
type Dist struct {
	N    int     `json:"n"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

// describe sorts samples (nanoseconds) in place and describes them in microseconds. No samples give the zero Dist.
func describe(samples []int64) Dist {
	if len(samples) == 0 {
		return Dist{}
	}
	slices.Sort(samples)
	at := func(p float64) float64 { return float64(rank(samples, p)) / 1e3 }
	return Dist{N: len(samples), P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: at(100)}
}

// rank is the nearest-rank percentile: the least sample that at least p percent of the samples do not exceed. sorted is not empty.
func rank(sorted []int64, p float64) int64 {
	// The product is rounded before Ceil because 99.9/100*1000 is a hair above 999.
	n := int(math.Ceil(math.Round(p*float64(len(sorted))*1e6) / 1e8))
	return sorted[min(max(n, 1), len(sorted))-1]
}
