package load

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Result is what a run measured. Latencies are in microseconds.
type Result struct {
	Requests  int64 `json:"requests"`  // begun
	Completed int64 `json:"completed"` // whole answers, right or wrong
	Abandoned int64 `json:"abandoned"` // still under way when the run ended; no fault
	Cancelled int64 `json:"cancelled"` // given up by the client as the plan asked
	Redialled int64 `json:"redialled"` // sent again, because the idle connection had been closed
	Missed    int64 `json:"missed"`    // arrivals of the open loop that found no connection before the end

	// Answers that were not right; Faults holds how often each thing was wrong.
	Errors    int64            `json:"errors"` // no or not a whole answer: refused, cut, a status other than 200
	Changed   int64            `json:"changed"`
	Tokens    int64            `json:"wrong_tokens"`
	CrossTalk int64            `json:"cross_talk"`
	NoEnd     int64            `json:"no_end"`
	Faults    map[string]int64 `json:"faults,omitempty"`

	// Within the window.
	WindowSeconds   float64 `json:"window_s"`
	WindowCompleted int64   `json:"window_completed"`
	WindowTokens    int64   `json:"window_tokens"`
	AddedTTFT       Dist    `json:"added_ttft_us"`  // scheduled arrival to first token, less the upstream's own time
	TokenDelay      Dist    `json:"token_delay_us"` // write at the upstream to read here
	Total           Dist    `json:"total_us"`       // scheduled arrival to the end of the answer
	SendLag         Dist    `json:"send_lag_us"`    // scheduled arrival to the first write: the load's own lateness
	Usage           *Usage  `json:"usage,omitempty"`

	Cancels []Cancel `json:"-"`
}

// Cancel is a request that the client gave up.
type Cancel struct {
	ID int64
	At int64 // CLOCK_MONOTONIC ns
}

// Usage is what the watched process used in the window.
type Usage struct {
	CPU   time.Duration `json:"cpu_ns"`
	RSSKB int64         `json:"rss_kb"` // at the end
}

// Wrong is the number of faults of all kinds.
func (r *Result) Wrong() int64 { return r.Errors + r.Changed + r.Tokens + r.CrossTalk + r.NoEnd }

// CPUPer is the watched process's CPU in microseconds for each of n; 0 if unknown.
func (r *Result) CPUPer(n int64) float64 {
	if r.Usage == nil || n == 0 {
		return 0
	}
	return float64(r.Usage.CPU.Nanoseconds()) / 1e3 / float64(n)
}

// Lost matches cancels with the aborts that the upstream saw: how long each took (microseconds), and how many never got there.
func Lost(cancels []Cancel, aborts []Abort) (latency Dist, lost int) {
	at := make(map[int64]int64, len(aborts))
	for _, a := range aborts {
		at[a.ID] = a.At
	}
	var samples []int64
	for _, c := range cancels {
		if t, ok := at[c.ID]; ok {
			samples = append(samples, t-c.At)
		} else {
			lost++
		}
	}
	return describe(samples), lost
}

// Print writes the result for a person.
func (r *Result) Print(w io.Writer) {
	fmt.Fprintf(w, "requests %d  completed %d  abandoned %d  cancelled %d  redialled %d  missed %d\n",
		r.Requests, r.Completed, r.Abandoned, r.Cancelled, r.Redialled, r.Missed)
	fmt.Fprintf(w, "wrong    %d: errors %d  changed %d  tokens %d  cross-talk %d  no end %d\n", r.Wrong(), r.Errors, r.Changed, r.Tokens, r.CrossTalk, r.NoEnd)
	for _, k := range slices.Sorted(maps.Keys(r.Faults)) {
		fmt.Fprintf(w, "         %d x %s\n", r.Faults[k], k)
	}
	if r.WindowSeconds > 0 {
		fmt.Fprintf(w, "window   %.2f s  %.0f requests/s  %.0f tokens/s\n", r.WindowSeconds, float64(r.WindowCompleted)/r.WindowSeconds, float64(r.WindowTokens)/r.WindowSeconds)
	}
	fmt.Fprintf(w, "%-14s %9s %9s %9s %9s %9s %9s\n", "milliseconds", "n", "p50", "p90", "p99", "p99.9", "max")
	for _, d := range []struct {
		name string
		Dist
	}{{"added TTFT", r.AddedTTFT}, {"token delay", r.TokenDelay}, {"total", r.Total}, {"send lag", r.SendLag}} {
		if d.N > 0 {
			fmt.Fprintf(w, "%-14s %9d %9.3f %9.3f %9.3f %9.3f %9.3f\n", d.name, d.N, d.P50/1e3, d.P90/1e3, d.P99/1e3, d.P999/1e3, d.Max/1e3)
		}
	}
	if u := r.Usage; u != nil {
		fmt.Fprintf(w, "process  CPU %.1f ms  %.1f us/request  %.1f us/token  RSS %d KB\n",
			float64(u.CPU.Microseconds())/1e3, r.CPUPer(r.WindowCompleted), r.CPUPer(r.WindowTokens), u.RSSKB)
	}
}
