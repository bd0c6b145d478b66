package export

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"tracegate/trace"
)

// numbers writes what the bars cannot show.
func (p *picture) numbers() {
	r := p.r
	p.line("")
	total, _ := r.Duration()
	parts := []string{"ttft " + dashed(r.TTFT()), "total " + short(total)}
	if r.Running() {
		parts[1] = "running for " + short(p.total)
	}
	if r.TBT.Count > 0 {
		parts = append(parts, fmt.Sprintf("tbt p50 %s p99 %s max %s (%d gaps, %d stalls)", short(r.TBT.P50), short(r.TBT.P99),
			short(r.TBT.Max), r.TBT.Count, r.TBT.Stalls))
	}
	if d, ok := r.TPOT(); ok {
		parts = append(parts, "tpot "+short(d))
	}
	p.fact("latency", strings.Join(parts, "  "))
	p.fact("tokens", tokens(r.Tokens))
	p.fact("finish reason", printable(r.FinishReason))
	if r.Cost >= 0 {
		p.fact("cost", strconv.FormatFloat(r.Cost, 'f', -1, 64))
	}
	if r.Limiter.Decision != "" && r.Limiter.Decision != "allow" {
		p.fact("limiter", strings.TrimSpace(printable(r.Limiter.Decision+" "+r.Limiter.Dimension)))
	}
	p.fact("limit", printable(r.Limit))
	if r.Error != nil {
		p.fact("error", printable(r.Error.Kind)+": "+shorten(r.Error.Message, maxMessage))
	}
	if side, ok := r.Interruption(); ok {
		p.fact("broken by", printable(string(side)))
	}
	for i := range r.Attempts {
		if a := &r.Attempts[i]; a.AbortSent >= 0 {
			p.fact("aborted", fmt.Sprintf("attempt %d at +%s: %s", a.N, short(a.AbortSent), printable(string(a.AbortReason))))
		}
	}
	if r.WriteStall > 0 {
		p.fact("write stall", short(r.WriteStall))
	}
	for _, c := range r.Route.Considered {
		if c.Excluded != "" {
			p.fact("left out", printable(c.Deployment)+": "+printable(c.Excluded))
		}
	}
	for _, n := range r.Notes {
		p.fact("note", fmt.Sprintf("%s %s: %s", printable(n.Setting), printable(n.Action), printable(n.Reason)))
	}
	for _, id := range r.Findings {
		p.fact("finding", printable(id))
	}
}

func (p *picture) fact(name, value string) {
	if value != "" {
		p.line("  " + pad(name, 15) + value)
	}
}

func tokens(t trace.Tokens) string {
	var parts []string
	for _, c := range []struct {
		name string
		n    int64
	}{{"in", t.Input}, {"out", t.Output}, {"cached", t.CacheRead}, {"cache written", t.CacheWrite}, {"reasoning", t.Reasoning}} {
		if c.n >= 0 {
			parts = append(parts, fmt.Sprintf("%s %d", c.name, c.n))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	if t.Source != "" {
		parts = append(parts, "("+printable(t.Source)+")")
	}
	return strings.Join(parts, "  ")
}

// short renders a duration for people: three digits and a unit.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.0f us", float64(d)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	case d < 10*time.Minute:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

func dashed(d time.Duration, ok bool) string {
	if !ok {
		return "-"
	}
	return short(d)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return printable(s)
}

// tone is the colour of a result: green, yellow where the client or a limit of ours decided, red.
func tone(word string) int {
	switch word {
	case "ok":
		return 32
	case "running":
		return 36
	case "client_abort", "refused", "client_error", "backpressure", "not_theirs", "queue_timeout":
		return 33
	}
	return 31
}

func paint(color bool, tone int, s string) string {
	if !color || s == "" {
		return s
	}
	return "\x1b[" + strconv.Itoa(tone) + "m" + s + "\x1b[0m"
}

// pad fills s with blanks to the given number of terminal columns; a longer one is cut.
func pad(s string, columns int) string {
	used := 0
	for i, r := range s {
		w := cells(r)
		if used+w > columns {
			return s[:i] + strings.Repeat(" ", columns-used)
		}
		used += w
	}
	return s + strings.Repeat(" ", columns-used)
}

func padLeft(s string, columns int) string {
	return strings.Repeat(" ", max(columns-len(s), 0)) + s
}

// cells is the number of terminal columns that a character takes: none for a combining one, two for the wide ones of
// East Asia and for pictures.
func cells(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r) || unicode.Is(unicode.Cf, r):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0x303e, r >= 0x3041 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}
