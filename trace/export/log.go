package export

import (
	"io"
	"log/slog"
	"sync"

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

// logBatch is how many bytes of lines are collected before they are written, while more lines are waiting.
const logBatch = 64 << 10

// Log writes one line per finished request. It is a prometheus.Collector of the lines it had to drop.
type Log struct {
	w       io.Writer
	json    bool
	level   slog.Leveler
	dropped prometheus.Counter
	idle    chan struct{} // closed when the writer is done

	mu     sync.RWMutex // taken for writing by Close alone
	closed bool
	queue  chan *trace.Record
}

// NewLog starts a log that writes to w in the given format (FormatJSON; anything else is text) the lines from level on:
// what went well or was the client's doing is info, the rest a warning. The lines look like log/slog's, but are made
// without it: its attributes cost more than the rest of a finished request. Close ends its goroutine.
func NewLog(w io.Writer, format string, level slog.Leveler) *Log {
	l := &Log{
		w: w, json: format == FormatJSON, level: level,
		dropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "llm_gateway_log_lines_dropped_total",
			Help: "Log lines of requests that were dropped because the log's writer was too slow."}),
		idle: make(chan struct{}), queue: make(chan *trace.Record, logQueue),
	}
	go l.write() // until Close
	return l
}

// Finished queues the record's line, or drops and counts it when the queue is full or the log is closed. It is a sink.
func (l *Log) Finished(r *trace.Record) {
	if levelOf(r) < l.level.Level() {
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

// write collects lines while more are waiting, so that a busy gateway does not pay a system call for each.
func (l *Log) write() {
	defer close(l.idle)
	var batch []byte
	lines := 0
	for r := range l.queue {
		batch = appendLine(batch, r, l.json)
		lines++
		if len(l.queue) > 0 && len(batch) < logBatch {
			continue
		}
		if _, err := l.w.Write(batch); err != nil {
			l.dropped.Add(float64(lines))
		}
		batch, lines = batch[:0], 0
	}
}

func levelOf(r *trace.Record) slog.Level {
	switch r.Outcome {
	case trace.OK, trace.ClientAbort, trace.Refused, trace.ClientError:
		return slog.LevelInfo
	}
	return slog.LevelWarn
}
