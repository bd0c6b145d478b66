package export

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"tracegate/trace"
)

func okStream() story {
	s := tell("01KBADQZ3BZTQ0A4M2Q8Y3W5XN", trace.OK, trace.PhaseFinished).at(trace.Enqueue, 4).at(trace.Admit, 6).
		at(trace.Pick, 210).at(trace.Send, 211).at(trace.Headers, 260).at(trace.FirstByte, 260).at(trace.FirstToken, 812).
		at(trace.Commit, 812).at(trace.LastToken, 5000).at(trace.Finish, 5010).
		try("vllm-a", 211, 12, 49, 601, 5010, trace.ResultOK, "", 200)
	s.Status, s.FinishReason, s.AskedModel = 200, "stop", "gpt-4o"
	s.Tokens = trace.Tokens{Input: 1200, Output: 300, CacheRead: 800, CacheWrite: trace.Unknown, Reasoning: trace.Unknown,
		Source: trace.SourceUpstream}
	s.TBT = trace.TBT{Count: 299, P50: 12 * ms, P90: 20 * ms, P99: 40 * ms, Max: 900 * ms}
	s.Gaps = []trace.Gap{trace.NewGap(1000*ms, 60*ms), trace.NewGap(2000*ms, 900*ms), trace.NewGap(4000*ms, 300*ms)}
	s.Notes = []trace.Note{{Setting: "seed", Action: trace.NoteDropped, Reason: "the upstream has none"}}
	s.Cost = 0.0042
	return s
}

func stories() map[string]story {
	whole := tell("whole", trace.OK, trace.PhaseFinished).at(trace.Enqueue, 1).at(trace.Admit, 1.1).at(trace.Pick, 1.2).
		at(trace.Send, 1.3).at(trace.Finish, 900).try("vllm-a", 1.2, 0, 880, -1, 900, trace.ResultOK, "", 200)
	whole.Stream, whole.Status = false, 200

	queue := tell("left-the-queue", trace.ClientAbort, trace.PhaseQueue).at(trace.Enqueue, 2).at(trace.Admit, 3).at(trace.Finish, 1500)
	queue.Status = 499

	left := tell("left", trace.ClientAbort, trace.PhaseStreaming).at(trace.Enqueue, 1).at(trace.Admit, 2).at(trace.Pick, 3).
		at(trace.Send, 3).at(trace.FirstToken, 400).at(trace.LastToken, 900).at(trace.Finish, 1000).
		try("vllm-b", 3, 5, 30, 397, 1000, trace.ResultClientAbort, "", 200)
	left.Attempts[0].AbortSent, left.Attempts[0].AbortReason = 999*ms, trace.AbortClientGone

	slow := tell("slow", trace.TimeoutFirstToken, trace.PhaseWaitingFirstToken).at(trace.Enqueue, 1).at(trace.Admit, 2).
		at(trace.Pick, 3).at(trace.Send, 3).at(trace.Finish, 60100).
		try("down", 3, -1, -1, -1, 50, trace.ResultFault, "connect", 0).
		try("vllm-a", 60, 5, 30, -1, 60100, trace.ResultFault, "timeout_first_token", 200)
	slow.Limit = "timeouts.first_token=60s"
	slow.Error = &trace.ErrorInfo{Kind: "timeout_first_token", Message: "no content from vllm-a within timeouts.first_token=60s"}
	slow.Attempts[1].AbortSent, slow.Attempts[1].AbortReason = 60060*ms, trace.AbortTimeoutFirstToken
	slow.Status = 504
	slow.Route.Considered = []trace.Considered{{Deployment: "vllm-c", Excluded: "cooling"}, {Deployment: "vllm-a", Score: 1}}

	cut := tell("cut", trace.StreamInterrupted, trace.PhaseStreaming).at(trace.Enqueue, 1).at(trace.Admit, 2).at(trace.Pick, 3).
		at(trace.Send, 3).at(trace.FirstToken, 300).at(trace.LastToken, 2000).at(trace.Finish, 2100).
		try("部署甲", 3, 5, 30, 297, 2100, trace.ResultFault, "cut", 200)
	cut.Model, cut.AskedModel, cut.Tenant = "通义千问", "通义千问", "搜索"
	cut.Error = &trace.ErrorInfo{Kind: "cut", Message: "the upstream closed the connection"}

	refused := tell("refused", trace.Refused, trace.PhaseAdmit).at(trace.Enqueue, 1).at(trace.Finish, 1.2)
	refused.Status, refused.Limiter.Decision, refused.Limiter.Dimension = 429, "deny", "rpm"
	refused.Limit = "tenants[search].limits.rpm=600"
	refused.Error = &trace.ErrorInfo{Kind: "rate_limited", Message: "over 600 requests per minute"}

	running := tell("running", "", trace.PhaseStreaming).at(trace.Enqueue, 1).at(trace.Admit, 2).at(trace.Pick, 3).
		at(trace.Send, 3).at(trace.FirstToken, 300).at(trace.LastToken, 2000).
		try("vllm-a", 3, 0, 30, 297, -1, "", "", 200)
	running.Taken = noon.Add(3000 * ms)
	return map[string]story{"ok": okStream(), "whole": whole, "client_abort_queue": queue, "client_abort_streaming": left,
		"timeout_first_token": slow, "interrupted": cut, "refused": refused, "running": running}
}

func draw(t *testing.T, r *trace.Record, width int, color bool) string {
	t.Helper()
	var out bytes.Buffer
	if err := Waterfall(&out, r, width, color); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWaterfalls(t *testing.T) {
	for name, s := range stories() {
		got := draw(t, s.Record, 100, false)
		golden(t, "waterfall_"+name+".txt", []byte(got))

		b, err := json.Marshal(s.Record)
		if err != nil {
			t.Fatal(err)
		}
		var back trace.Record
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		equal(t, name+" drawn from its JSON", draw(t, &back, 100, false), got)
	}
}

var ansi = regexp.MustCompile("\x1b\\[[0-9]*m")

func TestBarsAlignInEveryWidth(t *testing.T) {
	for name, s := range stories() {
		for _, width := range []int{0, 40, 80, 133, 250} {
			for _, color := range []bool{false, true} {
				for line := range strings.Lines(draw(t, s.Record, width, color)) {
					plain := ansi.ReplaceAllString(line, "")
					if strings.Count(plain, "|") != 2 {
						continue
					}
					before, rest, _ := strings.Cut(plain, "|")
					bar, _, _ := strings.Cut(rest, "|")
					if columns(before) != nameWidth || utf8.RuneCountInString(bar) != max(width-nameWidth-timeWidth-6, minBar) {
						t.Errorf("%s at %d: bar from column %d, %d long: %q", name, width, columns(before), utf8.RuneCountInString(bar), plain)
					}
				}
			}
		}
	}
}

func columns(s string) (n int) {
	for _, r := range s {
		n += cells(r)
	}
	return n
}

func TestPlainIsASCIIAndColourIsReset(t *testing.T) {
	plain := draw(t, okStream().Record, 100, false)
	for _, r := range plain {
		if r > 126 {
			t.Fatalf("character %q in the plain form", r)
		}
	}
	colored := draw(t, okStream().Record, 100, true)
	on := len(ansi.FindAllString(colored, -1)) - strings.Count(colored, "\x1b[0m")
	equal(t, "colours switched on and off", on, strings.Count(colored, "\x1b[0m"))
}

func TestTerminalStaysIntactWhateverClientsSend(t *testing.T) {
	const evil = "\x1b]0;pwned\a\x1b[2J\u202e"
	s := okStream()
	s.ID, s.AskedModel, s.Tenant, s.FinishReason, s.Attempts[0].Deployment = evil, evil, evil, evil, evil
	s.Error = &trace.ErrorInfo{Kind: evil, Message: evil}
	s.Notes[0] = trace.Note{Setting: evil, Action: evil, Reason: evil}
	s.Dialect, s.Limit, s.Findings = evil, evil, []string{evil}
	s.Outcome, s.Phase, s.Side, s.Tokens.Source = evil, evil, evil, evil
	s.Limiter.Decision, s.Limiter.Dimension = evil, evil
	s.Attempts[0].Result, s.Attempts[0].Fault, s.Attempts[0].AbortSent, s.Attempts[0].AbortReason = evil, evil, 1, evil
	s.Route.Considered = []trace.Considered{{Deployment: evil, Excluded: evil}}
	got := draw(t, s.Record, 100, false)
	if strings.ContainsAny(got, "\x1b\a\u202e") {
		t.Errorf("control characters reach the terminal: %q", got)
	}
}

func TestCellsOfWideAndCombiningCharacters(t *testing.T) {
	for s, want := range map[string]int{"abc": 3, "部署": 4, "e\u0301": 1, "한글": 4, "ｱ": 1, "！": 2, "🙂": 2} {
		equal(t, s, columns(s), want)
	}
	equal(t, "cut before a wide one", pad("a部署", 4), "a部 ")
}
