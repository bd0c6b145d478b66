package export

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"tracegate/trace"
)

// The formats of NewLog.
const (
	FormatJSON = "json"
	FormatText = "text"
)

// logQueue is how many lines may wait for the writer before lines are dropped.
const logQueue = 4096

// maxMessage is the length in bytes to which an error message is cut in a line.
const maxMessage = 300

// Log writes one line per finished request. It is a prometheus.Collector of the lines it had to drop.
type Log struct {
	handler slog.Handler
	dropped prometheus.Counter
	idle    chan struct{} // closed when the writer is done

	mu     sync.RWMutex // taken for writing by Close alone
	closed bool
	queue  chan *trace.Record
}

// NewLog starts a log that writes to w in the given format (FormatJSON; anything else is text) the lines from level on:
// what went well or was the client's doing is info, the rest a warning. Close ends its goroutine.
func NewLog(w io.Writer, format string, level slog.Leveler) *Log {
	l := &Log{
		dropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "llm_gateway_log_lines_dropped_total",
			Help: "Log lines of requests that were dropped because the log's writer was too slow."}),
		idle: make(chan struct{}), queue: make(chan *trace.Record, logQueue),
	}
	options := &slog.HandlerOptions{Level: level}
	if format == FormatJSON {
		l.handler = slog.NewJSONHandler(w, options)
	} else {
		options.ReplaceAttr = dashForNull
		l.handler = slog.NewTextHandler(w, options)
	}
	go l.write() // until Close
	return l
}

// Finished queues the record's line, or drops and counts it when the queue is full or the log is closed. It is a sink.
func (l *Log) Finished(r *trace.Record) {
	if !l.handler.Enabled(context.Background(), levelOf(r)) {
		return
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		l.dropped.Inc()
		return
	}
	select {
	case l.queue <- r:
	default:
		l.dropped.Inc()
	}
}

// Close writes what is queued and ends the log. It waits for the writer.
func (l *Log) Close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.queue)
	}
	l.mu.Unlock()
	<-l.idle
}

// Describe implements prometheus.Collector.
func (l *Log) Describe(ch chan<- *prometheus.Desc) { l.dropped.Describe(ch) }

// Collect implements prometheus.Collector.
func (l *Log) Collect(ch chan<- prometheus.Metric) { l.dropped.Collect(ch) }

func (l *Log) write() {
	defer close(l.idle)
	for r := range l.queue {
		if l.handler.Handle(context.Background(), lineOf(r)) != nil {
			l.dropped.Inc()
		}
	}
}

func levelOf(r *trace.Record) slog.Level {
	switch r.Outcome {
	case trace.OK, trace.ClientAbort, trace.Refused, trace.ClientError:
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// lineOf makes the line. Its names are the timeline's.
func lineOf(r *trace.Record) slog.Record {
	at := r.At(trace.Finish)
	if at.IsZero() {
		at = r.Opened
	}
	line := slog.NewRecord(at.UTC(), levelOf(r), "request", 0)
	line.AddAttrs(
		word("id", r.ID), word("client_request_id", r.ClientID), word("tenant", r.Tenant), word("key_id", r.KeyID),
		word("model", r.Model), word("deployment", r.Deployment()), word("dialect", r.Dialect), slog.Bool("stream", r.Stream),
		word("outcome", string(r.Outcome)), word("phase", string(r.Phase)), positive("status", int64(r.Status), r.Status > 0),
		stamp("enqueue_time", r.At(trace.Enqueue)), stamp("first_token_time", r.At(trace.FirstToken)),
		stamp("last_token_time", r.At(trace.LastToken)), stamp("finish_time", r.At(trace.Finish)),
	)
	ttft, hasTTFT := r.TTFT()
	total, hasTotal := r.Duration()
	queue, hasQueue := r.Queue()
	gaps := r.TBT.Count > 0
	line.AddAttrs(
		millis("ttft_ms", ttft, hasTTFT), millis("duration_ms", total, hasTotal), millis("queue_ms", queue, hasQueue),
		slog.Group("tbt", slog.Int64("count", r.TBT.Count), millis("p50_ms", r.TBT.P50, gaps),
			millis("p99_ms", r.TBT.P99, gaps), millis("max_ms", r.TBT.Max, gaps)),
		slog.Group("tokens", counted("input", r.Tokens.Input), counted("output", r.Tokens.Output),
			counted("cache_read", r.Tokens.CacheRead), counted("cache_write", r.Tokens.CacheWrite),
			counted("reasoning", r.Tokens.Reasoning), word("source", r.Tokens.Source)),
		word("finish_reason", r.FinishReason), slog.Int("attempts", len(r.Attempts)),
	)
	if r.Error != nil {
		line.AddAttrs(slog.Group("error", word("kind", r.Error.Kind), word("message", shorten(r.Error.Message, maxMessage))))
	}
	return line
}

// dashForNull shows what is missing as the text format's readers expect it.
func dashForNull(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindAny && a.Value.Any() == nil {
		a.Value = slog.StringValue("-")
	}
	return a
}

func word(name, value string) slog.Attr {
	if value == "" {
		return slog.Any(name, nil)
	}
	return slog.String(name, printable(value))
}

func positive(name string, n int64, ok bool) slog.Attr {
	if !ok {
		return slog.Any(name, nil)
	}
	return slog.Int64(name, n)
}

func counted(name string, n int64) slog.Attr { return positive(name, n, n >= 0) }

func millis(name string, d time.Duration, ok bool) slog.Attr {
	if !ok {
		return slog.Any(name, nil)
	}
	return slog.Float64(name, float64(d)/1e6)
}

func stamp(name string, at time.Time) slog.Attr {
	if at.IsZero() {
		return slog.Any(name, nil)
	}
	return slog.String(name, at.UTC().Format("2006-01-02T15:04:05.000000000Z07:00"))
}

// printable makes a text from outside harmless in a line of a log or terminal: what is not printable, the line ends
// and the marks that reverse the direction of writing included, is spelled out.
func printable(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRuneToASCII(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
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
