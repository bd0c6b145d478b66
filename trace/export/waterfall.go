package export

import (
	"fmt"
	"io"
	"strings"
	"time"

	"tracegate/trace"
)

// The columns of a waterfall line beside its bar.
const (
	nameWidth = 28
	timeWidth = 10
	minBar    = 20
)

// Waterfall writes a record for a terminal: a line that names it, its phases as bars on a common time axis with a
// group per attempt, the longest gaps over the same axis, and the numbers. width is the terminal's, in columns; with
// color bars are coloured blocks, else plain ASCII.
func Waterfall(w io.Writer, r *trace.Record, width int, color bool) error {
	p := &picture{r: r, color: color, bar: max(width-nameWidth-timeWidth-6, minBar), total: r.Elapsed()}
	p.header()
	p.phases()
	p.gaps()
	p.numbers()
	_, err := io.WriteString(w, p.out.String())
	return err
}

// picture is one waterfall as it grows. All times are offsets from the record's opening.
type picture struct {
	r     *trace.Record
	out   strings.Builder
	color bool
	bar   int
	total time.Duration
}

func (p *picture) header() {
	r := p.r
	outcome := string(r.Outcome)
	if r.Running() {
		outcome = "running"
	}
	p.line(paint(p.color, tone(outcome), printable(r.ID)+"  "+printable(outcome)) + "  " + p.destination())
	facts := []string{"tenant " + dash(r.Tenant), printable(r.Dialect), "no stream", "phase " + printable(string(r.Phase))}
	if r.Stream {
		facts[2] = "stream"
	}
	if r.Status != 0 {
		facts = append(facts, fmt.Sprintf("status %d", r.Status))
	}
	p.line(strings.Join(facts, "  ") + "  opened " + r.Opened.UTC().Format("2006-01-02 15:04:05.000 UTC"))
	p.line("")
}

func (p *picture) destination() string {
	asked := dash(p.r.Model)
	if p.r.AskedModel != "" && p.r.AskedModel != p.r.Model {
		asked = printable(p.r.AskedModel) + " = " + asked
	}
	if d := p.r.Deployment(); d != "" {
		asked += " -> " + printable(d)
	}
	return asked
}

// phases draws one bar per phase: first those before any attempt, then each attempt's own.
func (p *picture) phases() {
	r := p.r
	end := p.total
	admitted := p.offset(trace.Admit, end)
	p.draw("read, admit", 0, admitted, '=')
	if _, ok := r.Offset(trace.Admit); ok {
		picked := p.offset(trace.Pick, end)
		p.draw("queue", admitted, picked, '.')
	}
	for i := range r.Attempts {
		p.attempt(&r.Attempts[i])
	}
}

func (p *picture) attempt(a *trace.Attempt) {
	result := printable(string(a.Result))
	if a.End < 0 {
		result = "running"
	}
	title := fmt.Sprintf("attempt %d  %s  %s", a.N, printable(a.Deployment), result)
	if a.Fault != "" {
		title += "  " + printable(a.Fault)
	}
	if a.Status != 0 {
		title += fmt.Sprintf("  %d", a.Status)
	}
	p.line(paint(p.color, tone(string(a.Result)), title))

	end := a.End
	if end < 0 {
		end = p.total
	}
	at := func(d, otherwise time.Duration) time.Duration {
		if d < 0 {
			return otherwise
		}
		return min(a.Start+d, end)
	}
	headers := at(a.Headers, end)
	connected := headers
	if a.Connect >= 0 {
		connected = min(at(a.Sent, a.Start)+a.Connect, headers)
	} else if a.Sent >= 0 && a.Headers >= 0 {
		connected = at(a.Sent, a.Start)
	}
	p.draw("  connect", a.Start, connected, '=')
	if a.Connect >= 0 || a.Headers >= 0 {
		p.draw("  waiting headers", connected, headers, '.')
	}
	if a.Headers < 0 {
		return
	}
	if !p.r.Stream {
		p.draw("  reading the answer", headers, end, '#')
		return
	}
	first := at(a.FirstToken, end)
	p.draw("  waiting first token", headers, first, '~')
	if a.FirstToken >= 0 {
		p.draw("  streaming", first, end, '#')
	}
}

// offset is the mark's, or otherwise the given one.
func (p *picture) offset(m trace.Mark, otherwise time.Duration) time.Duration {
	if d, ok := p.r.Offset(m); ok {
		return d
	}
	return otherwise
}

// fills are the bars' characters with their colours: 36 cyan, 90 grey, 33 yellow, 32 green.
var fills = map[rune]int{'=': 36, '.': 90, '~': 33, '#': 32}

func (p *picture) draw(name string, from, to time.Duration, fill rune) {
	a, b := p.column(from), p.column(to)
	if b == a && to > from { // something is seen of everything that took time
		b = a + 1
		if b > p.bar {
			a, b = a-1, b-1
		}
	}
	body := strings.Repeat(string(fill), b-a)
	if p.color {
		body = paint(true, fills[fill], strings.Repeat("█", b-a))
	}
	p.line(pad("  "+name, nameWidth) + "|" + strings.Repeat(" ", a) + body + strings.Repeat(" ", p.bar-b) + "| " +
		padLeft(short(to-from), timeWidth))
}

func (p *picture) column(d time.Duration) int {
	if p.total <= 0 {
		return 0
	}
	return int(min(max(d, 0), p.total) * time.Duration(p.bar) / p.total)
}

// gaps draws the longest gaps over the time axis, each over the columns in which the stream was silent.
func (p *picture) gaps() {
	if len(p.r.Gaps) == 0 || p.r.TBT.Max <= 0 {
		return
	}
	levels := []rune(".:-=+*%#")
	if p.color {
		levels = []rune("▁▂▃▄▅▆▇█")
	}
	origin := p.offset(trace.Enqueue, 0)
	height := make([]int, p.bar)
	for _, g := range p.r.Gaps {
		from := min(p.column(origin+g.Offset()), p.bar-1)
		to := max(p.column(origin+g.Offset()+g.Length()), from+1)
		level := 1 + int(g.Length()*time.Duration(len(levels)-1)/max(p.r.TBT.Max, g.Length()))
		for c := from; c < min(to, p.bar); c++ {
			height[c] = max(height[c], level)
		}
	}
	strip := make([]rune, p.bar)
	for c, h := range height {
		strip[c] = ' '
		if h > 0 {
			strip[c] = levels[h-1]
		}
	}
	p.line(pad("  gaps (longest)", nameWidth) + "|" + string(strip) + "| " + padLeft(short(p.r.TBT.Max), timeWidth))
}

func (p *picture) line(s string) {
	p.out.WriteString(strings.TrimRight(s, " "))
	p.out.WriteByte('\n')
}
