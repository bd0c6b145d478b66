package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"tracegate/bench/load"
)

// table collects one value a round for each line and column.
type table struct {
	Columns []string                        `json:"columns"`
	Values  map[string]map[string][]float64 `json:"values"` // line, column
	Answers map[string]int64                `json:"answers"`
	Wrong   map[string]int64                `json:"wrong"`
	Faults  map[string]map[string]int64     `json:"faults,omitempty"`
	Failed  []string                        `json:"failed,omitempty"`
	Notes   []string                        `json:"notes,omitempty"`
	Foreign []float64                       `json:"foreign_cpus"`
}

func (t *table) add(row, column string, v float64) {
	if t.Values == nil {
		t.Values = map[string]map[string][]float64{}
	}
	if t.Values[row] == nil {
		t.Values[row] = map[string][]float64{}
	}
	t.Values[row][column] = append(t.Values[row][column], v)
}

func (t *table) count(column string, r *load.Result) {
	if t.Answers == nil {
		t.Answers, t.Wrong, t.Faults = map[string]int64{}, map[string]int64{}, map[string]map[string]int64{}
	}
	t.Answers[column] += r.Completed + r.Abandoned
	t.Wrong[column] += r.Wrong()
	for k, n := range r.Faults {
		if t.Faults[column] == nil {
			t.Faults[column] = map[string]int64{}
		}
		t.Faults[column][k] += n
	}
}

func (t *table) fail(format string, args ...any) {
	t.Failed = append(t.Failed, fmt.Sprintf(format, args...))
}

func (t *table) note(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(t.Notes, s) {
		t.Notes = append(t.Notes, s)
	}
}

// verdict is an error if a line could not be measured or an answer was wrong.
func (t *table) verdict() error {
	if len(t.Failed) > 0 {
		return fmt.Errorf("%d lines could not be measured", len(t.Failed))
	}
	for _, c := range t.Columns {
		if n := t.Wrong[c]; n > 0 {
			return fmt.Errorf("%s: %d answers were wrong", c, n)
		}
	}
	if len(t.Values) == 0 {
		return errors.New("nothing was measured")
	}
	return nil
}

func (t *table) print(w io.Writer) {
	fmt.Fprintf(w, "%s, %s/%s, %d CPUs, %s\n", time.Now().UTC().Format("2006-01-02 15:04"), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	lines := [][]string{append(append([]string{"median of the rounds (least-greatest)"}, t.Columns...), "tracegate/fasthttp")}
	for _, row := range rows() {
		if line := t.line(row); line != nil {
			lines = append(lines, line)
		}
	}
	align(w, lines)
	for _, c := range t.Columns {
		for _, k := range slices.Sorted(maps.Keys(t.Faults[c])) {
			fmt.Fprintf(w, "WRONG %s: %d x %s\n", c, t.Faults[c][k], k)
		}
	}
	for _, f := range t.Failed {
		fmt.Fprintln(w, "FAILED", f)
	}
	for _, n := range t.Notes {
		fmt.Fprintln(w, "note:", n)
	}
	if len(t.Foreign) > 0 {
		fmt.Fprintf(w, "note: other programs used %.2f CPUs (at most %.2f); above 0.2 only the ratios mean something, and little\n", median(t.Foreign), slices.Max(t.Foreign))
	}
}

func (t *table) line(row string) []string {
	if row == rowAnswers || row == rowWrong {
		counts := t.Answers
		if row == rowWrong {
			counts = t.Wrong
		}
		line := []string{row}
		for _, c := range t.Columns {
			line = append(line, fmt.Sprint(counts[c]))
		}
		return append(line, "")
	}
	values := t.Values[row]
	if len(values) == 0 {
		return nil
	}
	memoryOrCPU := strings.Contains(row, "CPU") || strings.Contains(row, "RSS")
	line := []string{row}
	for _, c := range t.Columns {
		v := values[c]
		switch {
		case len(v) == 0 || c == "direct" && memoryOrCPU:
			line = append(line, "-")
		case len(v) == 1:
			line = append(line, number(v[0]))
		default:
			line = append(line, fmt.Sprintf("%s (%s-%s)", number(median(v)), number(slices.Min(v)), number(slices.Max(v))))
		}
	}
	ratio := "-"
	if ours, base := median(values["tracegate"]), median(values["fasthttp"]); ours > 0 && base > 0 {
		ratio = fmt.Sprintf("%.2f", ours/base)
	}
	return append(line, ratio)
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

func align(w io.Writer, lines [][]string) {
	width := make([]int, len(lines[0]))
	for _, l := range lines {
		for i, cell := range l {
			width[i] = max(width[i], len(cell))
		}
	}
	for n, l := range lines {
		for i, cell := range l {
			if i == 0 {
				fmt.Fprintf(w, "| %-*s ", width[i], cell)
			} else {
				fmt.Fprintf(w, "| %*s ", width[i], cell)
			}
		}
		fmt.Fprintln(w, "|")
		if n == 0 {
			for _, n := range width {
				fmt.Fprint(w, "|", strings.Repeat("-", n+2))
			}
			fmt.Fprintln(w, "|")
		}
	}
}
