package export

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"tracegate/trace"
)

// logged returns what a log writes for the records.
func logged(format string, level slog.Level, records ...*trace.Record) string {
	var out bytes.Buffer
	l := NewLog(&out, format, level)
	for _, r := range records {
		l.Finished(r)
	}
	l.Close()
	return out.String()
}

func TestLogLines(t *testing.T) {
	ok := okStream().Record
	ok.ClientID, ok.KeyID = "client-0001", "k1"
	refused := tell("01KBADQZ3BZTQ0A4M2Q8Y3W5XR", trace.Refused, trace.PhaseAdmit).at(trace.Finish, 1).Record
	refused.Model, refused.Tenant, refused.Status = "", "", 401
	refused.Error = &trace.ErrorInfo{Kind: "unknown_key", Message: "no tenant has this key"}
	golden(t, "log.json.txt", []byte(logged(FormatJSON, slog.LevelInfo, ok, refused)))
	golden(t, "log.text.txt", []byte(logged(FormatText, slog.LevelInfo, ok, refused)))
}

func TestOneLineWhateverClientsSend(t *testing.T) {
	const evil = "x\r\n{\"outcome\":\"forged\"}\x1b[2J\u2028\u202e\x00\xff\u0085tenant=\"root\""
	r := tell(evil, trace.OK, trace.PhaseFinished).at(trace.Finish, 1).try(evil, 0, 0, 0, 0, 1, trace.ResultOK, evil, 200)
	r.ClientID, r.Tenant, r.KeyID, r.Model, r.Dialect, r.FinishReason = evil, evil, evil, evil, evil, evil
	r.Error = &trace.ErrorInfo{Kind: evil, Message: strings.Repeat("长", 200) + evil}
	for _, format := range []string{FormatJSON, FormatText} {
		got := logged(format, slog.LevelInfo, r.Record)
		equal(t, format+" lines", strings.Count(got, "\n"), 1)
		if i := strings.IndexAny(strings.TrimSuffix(got, "\n"), "\r\x1b\x00\u2028\u202e\u0085"); i >= 0 {
			t.Errorf("%s: control character at %d of %q", format, i, got)
		}
	}
	var line struct {
		ID    string `json:"id"`
		Error struct{ Message string }
	}
	if err := json.Unmarshal([]byte(logged(FormatJSON, slog.LevelInfo, r.Record)), &line); err != nil {
		t.Fatal(err)
	}
	equal(t, "id", strings.HasPrefix(line.ID, `x\r\n{"outcome"`), true)
	if n := len(line.Error.Message); n > maxMessage || n < maxMessage-4 || !utf8.ValidString(line.Error.Message) {
		t.Errorf("message of %d bytes: %q", n, line.Error.Message)
	}
}

func TestLevelSelects(t *testing.T) {
	fine, bad := okStream().Record, tell("bad", trace.TimeoutIdle, trace.PhaseStreaming).at(trace.Finish, 1).Record
	equal(t, "info", strings.Count(logged(FormatJSON, slog.LevelInfo, fine, bad), "\n"), 2)
	equal(t, "warn", strings.Count(logged(FormatJSON, slog.LevelWarn, fine, bad), "\n"), 1)
	equal(t, "error", logged(FormatJSON, slog.LevelError, fine, bad), "")
}

func TestSlowWriterDropsAndCountsButNeverBlocks(t *testing.T) {
	in, out := io.Pipe()
	l := NewLog(out, FormatJSON, slog.LevelInfo)
	r := okStream().Record
	const extra, batched = 2 * logQueue, logQueue // what the writer has taken is no longer in the queue
	for range logQueue + extra {
		l.Finished(r) // nobody reads: the writer holds one batch at most, the queue the next ones
	}
	dropped := testutil.ToFloat64(l)
	if dropped < extra-batched || dropped > extra {
		t.Errorf("dropped = %g, want %d or at most %d less", dropped, extra, batched)
	}
	lines := make(chan int)
	go func() { // until the pipe is closed
		b, _ := io.ReadAll(in)
		lines <- bytes.Count(b, []byte("\n"))
	}()
	l.Close()
	l.Close()
	l.Finished(r)
	out.Close()
	equal(t, "written", float64(<-lines), logQueue+extra-dropped)
	equal(t, "dropped after the close", testutil.ToFloat64(l), dropped+1)
}

func TestFailingWriterIsCounted(t *testing.T) {
	in, out := io.Pipe()
	in.Close()
	l := NewLog(out, FormatText, slog.LevelInfo)
	l.Finished(okStream().Record)
	l.Close()
	equal(t, "dropped", testutil.ToFloat64(l), 1)
}

func TestCloseDoesNotWaitForABlockedWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe() // nobody reads
		l := NewLog(out, FormatJSON, slog.LevelInfo)
		l.Finished(okStream().Record)
		began := time.Now()
		time.AfterFunc(time.Hour, func() { in.Close() }) // ends the test where Close waits
		l.Close()
		equal(t, "time of Close", time.Since(began), time.Second)
		in.Close()
		l.Close()
		equal(t, "time of Close with a writer that fails", time.Since(began), time.Second)
	})
}
