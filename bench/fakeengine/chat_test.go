package fakeengine

import (
	"strings"
	"testing"
)

func TestChatStreamEndsWithFinishUsageAndDone(t *testing.T) {
	e, url := started(t, Options{})
	resp := post(t, client(t), url+"/v1/chat/completions",
		`{"model":"fake-model","stream":true,"stream_options":{"include_usage":true},"max_tokens":12,"messages":[{"role":"user","content":"hi MARK-ab12"}]}`,
		"X-Request-Id", "r1")
	body := readAll(t, resp.Body)
	if got := strings.Count(body, "data: "); got != 1+12+1+1 {
		t.Errorf("%d events, want role, 12 tokens, usage, [DONE]:\n%s", got, body)
	}
	if got := strings.Count(body, "MARK-ab12"); got != 2 {
		t.Errorf("the marker is echoed %d times, want 2", got)
	}
	if !strings.Contains(body, `"id":"chatcmpl-r1"`) || !strings.Contains(body, `"finish_reason":"length","stop_reason":null`) {
		t.Errorf("no id or finish reason:\n%s", body)
	}
	l := waitFor(t, e, func(l RequestLog) bool { return l.Outcome != OutcomeRunning })
	if l.Outcome != OutcomeFinished || l.OutputTokens != 12 || l.Marker != "MARK-ab12" || l.Freed.IsZero() {
		t.Errorf("log %+v", l)
	}
	stamps := []bool{l.Arrived.Before(l.Headers), !l.FirstToken.Before(l.Headers), l.FirstToken.Before(l.LastToken), !l.Terminal.Before(l.LastToken), !l.Finished.Before(l.Terminal)}
	for i, ok := range stamps {
		if !ok {
			t.Errorf("stamps are out of order at %d: %+v", i, l)
		}
	}
}
