package export

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tracegate/trace"
)

// logLine writes the fields of one log line, as JSON or as key=value text. What is missing is null, or a dash.
type logLine struct {
	b     []byte
	json  bool
	group string // prefix of the names in text
	comma bool
}

// appendLine makes the line of a record. Its names are the timeline's.
func appendLine(dst []byte, r *trace.Record, json bool) []byte {
	l := logLine{b: dst, json: json}
	at := r.At(trace.Finish)
	if at.IsZero() {
		at = r.Opened
	}
	l.begin(at.UTC(), levelOf(r).String())
	l.word("id", r.ID)
	l.word("client_request_id", r.ClientID)
	l.word("tenant", r.Tenant)
	l.word("key_id", r.KeyID)
	l.word("model", r.Model)
	l.word("deployment", r.Deployment())
	l.word("dialect", r.Dialect)
	l.name("stream")
	l.b = strconv.AppendBool(l.b, r.Stream)
	l.word("outcome", string(r.Outcome))
	l.word("phase", string(r.Phase))
	l.number("status", int64(r.Status), r.Status > 0)
	l.stamp("enqueue_time", r.At(trace.Enqueue))
	l.stamp("first_token_time", r.At(trace.FirstToken))
	l.stamp("last_token_time", r.At(trace.LastToken))
	l.stamp("finish_time", r.At(trace.Finish))
	l.figures(r)
	l.word("finish_reason", r.FinishReason)
	l.number("attempts", int64(len(r.Attempts)), true)
	if r.Error != nil {
		l.open("error")
		l.word("kind", r.Error.Kind)
		l.word("message", shorten(r.Error.Message, maxMessage))
		l.close()
	}
	return l.end()
}

func (l *logLine) figures(r *trace.Record) {
	ttft, hasTTFT := r.TTFT()
	total, hasTotal := r.Duration()
	queue, hasQueue := r.Queue()
	l.millis("ttft_ms", ttft, hasTTFT)
	l.millis("duration_ms", total, hasTotal)
	l.millis("queue_ms", queue, hasQueue)
	gaps := r.TBT.Count > 0
	l.open("tbt")
	l.number("count", r.TBT.Count, true)
	l.millis("p50_ms", r.TBT.P50, gaps)
	l.millis("p99_ms", r.TBT.P99, gaps)
	l.millis("max_ms", r.TBT.Max, gaps)
	l.close()
	t := &r.Tokens
	l.open("tokens")
	l.number("input", t.Input, t.Input >= 0)
	l.number("output", t.Output, t.Output >= 0)
	l.number("cache_read", t.CacheRead, t.CacheRead >= 0)
	l.number("cache_write", t.CacheWrite, t.CacheWrite >= 0)
	l.number("reasoning", t.Reasoning, t.Reasoning >= 0)
	l.word("source", t.Source)
	l.close()
}

func (l *logLine) begin(at time.Time, level string) {
	if l.json {
		l.b = append(l.b, '{')
		l.name("time")
		l.b = append(at.AppendFormat(append(l.b, '"'), time.RFC3339Nano), '"')
	} else {
		l.name("time")
		l.b = at.AppendFormat(l.b, "2006-01-02T15:04:05.000Z07:00")
	}
	l.word("level", level)
	l.word("msg", "request")
}

func (l *logLine) end() []byte {
	if l.json {
		l.b = append(l.b, '}')
	}
	return append(l.b, '\n')
}

func (l *logLine) open(group string) {
	if l.json {
		l.name(group)
		l.b = append(l.b, '{')
		l.comma = false
		return
	}
	l.group = group
}

func (l *logLine) close() {
	if l.json {
		l.b = append(l.b, '}')
		l.comma = true
	}
	l.group = ""
}

func (l *logLine) name(name string) {
	switch {
	case l.json:
		if l.comma {
			l.b = append(l.b, ',')
		}
		l.b = append(append(append(l.b, '"'), name...), '"', ':')
	default:
		if l.comma {
			l.b = append(l.b, ' ')
		}
		if l.group != "" {
			l.b = append(append(l.b, l.group...), '.')
		}
		l.b = append(append(l.b, name...), '=')
	}
	l.comma = true
}

func (l *logLine) null() {
	if l.json {
		l.b = append(l.b, "null"...)
		return
	}
	l.b = append(l.b, '-')
}

func (l *logLine) word(name, value string) {
	l.name(name)
	if value == "" {
		l.null()
		return
	}
	value = printable(value)
	if !l.json {
		if strings.ContainsAny(value, " \"=\\") {
			l.b = strconv.AppendQuote(l.b, value)
			return
		}
		l.b = append(l.b, value...)
		return
	}
	l.b = append(l.b, '"')
	for i := range len(value) { // printable: nothing else has to be escaped
		if c := value[i]; c == '"' || c == '\\' {
			l.b = append(l.b, '\\')
		}
		l.b = append(l.b, value[i])
	}
	l.b = append(l.b, '"')
}

func (l *logLine) number(name string, n int64, ok bool) {
	l.name(name)
	if !ok {
		l.null()
		return
	}
	l.b = strconv.AppendInt(l.b, n, 10)
}

func (l *logLine) millis(name string, d time.Duration, ok bool) {
	l.name(name)
	if !ok {
		l.null()
		return
	}
	l.b = strconv.AppendFloat(l.b, float64(d)/1e6, 'f', -1, 64)
}

func (l *logLine) stamp(name string, at time.Time) {
	l.name(name)
	switch {
	case at.IsZero():
		l.null()
	case l.json:
		l.b = append(at.UTC().AppendFormat(append(l.b, '"'), stampFormat), '"')
	default:
		l.b = at.UTC().AppendFormat(l.b, stampFormat)
	}
}

const stampFormat = "2006-01-02T15:04:05.000000000Z07:00"

// printable makes a text from outside harmless in a line of a log or terminal: what is not printable, the line ends
// and the marks that reverse the direction of writing included, is spelled out.
func printable(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) && r != utf8.RuneError {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRuneToASCII(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}

// isPlain: every rune is printable; the ordinary case is ASCII.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f {
			return strings.IndexFunc(s[i:], func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) < 0
		}
	}
	return true
}

// shorten cuts a text to n bytes, between two characters.
func shorten(s string, n int) string {
	s = printable(s)
	if len(s) <= n {
		return s
	}
	n -= len("...")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}
