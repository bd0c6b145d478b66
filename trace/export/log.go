package export

import (
	"io"
	"log/slog"
	"sync"
	"time"

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

// logPause is how long a line waits for others to be written with it.
const logPause = 10 * time.Millisecond

// closeLimit is how long Close waits for a writer that takes nothing.
const closeLimit = time.Second

// maxMessage is the length in bytes to which an error message is cut in a line.
const maxMessage = 300

// Log writes one line per finished request. It is a prometheus.Collector of the lines it had to drop.
type Log struct {
	w       io.Writer
	json    bool
	level   slog.Leveler
	dropped prometheus.Counter
	wake    chan struct{} // tells the writer that there is something to do
	idle    chan struct{} // closed when the writer is done

	mu     sync.Mutex
	closed bool            // guarded by mu
	queue  []*trace.Record // guarded by mu
}

// NewLog starts a log that writes to w in the given format (FormatJSON; anything else is text) the lines from level on:
// what went well or was the client's doing is info, the rest a warning. The lines look like log/slog's, but are made
// without it: its attributes cost more than the rest of a finished request. Close ends its goroutine.
func NewLog(w io.Writer, format string, level slog.Leveler) *Log {
	l := &Log{
		w: w, json: format == FormatJSON, level: level,
		dropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "llm_gateway_log_lines_dropped_total",
			Help: "Log lines of requests that were dropped because the log's writer was too slow."}),
		wake: make(chan struct{}, 1), idle: make(chan struct{}),
	}
	go l.write() // until Close
	return l
}

// Finished queues the record's line, or drops and counts it when the queue is full or the log is closed. It is a sink.
func (l *Log) Finished(r *trace.Record) {
	if levelOf(r) < l.level.Level() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.queue) == logQueue {
		l.dropped.Inc()
		return
	}
	l.queue = append(l.queue, r)
	if len(l.queue) == 1 {
		l.tell()
	}
}

// tell wakes the writer, once for all lines that it has not yet seen.
func (l *Log) tell() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Close writes what is queued and ends the log. It may be called more than once; later lines count as dropped. It waits
// for a second at most: behind a writer that takes nothing, such as a full pipe, the lines stay unwritten, and the log's
// goroutine until that Write returns.
func (l *Log) Close() {
	l.mu.Lock()
	l.closed = true
	l.tell()
	l.mu.Unlock()
	limit := time.NewTimer(closeLimit)
	defer limit.Stop()
	select {
	case <-l.idle:
	case <-limit.C:
	}
}

// Describe implements prometheus.Collector.
func (l *Log) Describe(ch chan<- *prometheus.Desc) { l.dropped.Describe(ch) }

// Collect implements prometheus.Collector.
func (l *Log) Collect(ch chan<- prometheus.Metric) { l.dropped.Collect(ch) }

// write makes and writes the lines in batches, so that a busy gateway pays neither a wake-up nor a system call for
// each. A line of an idle one waits logPause.
func (l *Log) write() {
	defer close(l.idle)
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	var batch []byte
	var lines []*trace.Record
	for range l.wake {
		pause.Reset(logPause)
		<-pause.C
		l.mu.Lock()
		lines, l.queue = l.queue, lines[:0]
		closed := l.closed
		l.mu.Unlock()
		batch = batch[:0]
		for _, r := range lines {
			batch = appendLine(batch, r, l.json)
		}
		if len(lines) > 0 {
			if _, err := l.w.Write(batch); err != nil {
				l.dropped.Add(float64(len(lines)))
			}
		}
		clear(lines)
		if closed {
			return
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
