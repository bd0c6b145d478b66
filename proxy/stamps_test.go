package proxy

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// The gateway's stamps of a request lie behind the engine's own, in order, and
// mean the same events. By how much they lie behind is printed, not asserted:
// TRACEGATE_STAMPS sets how many requests are measured (make stamps).
func TestStampsAgreeWithTheEngine(t *testing.T) {
	total := measurements("TRACEGATE_STAMPS", 40)
	r := newRig(t, setup{engine: fakeengine.Options{MaxNumSeqs: 16, StepBase: 5 * time.Millisecond, KeepTokenStamps: true}})
	r.engine.Script(
		fakeengine.Fault{Kind: fakeengine.EarlyRole, Contains: "EARLY"}, // role chunk or message_start before the prefill
		fakeengine.Fault{Kind: fakeengine.Ping, Delay: 2 * time.Millisecond, Text: "event", API: "messages", Contains: "EARLY"},
	)
	lags := map[string][]time.Duration{}
	var mu sync.Mutex
	var group sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range total {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			l := r.stampsOf(t, i)
			mu.Lock()
			defer mu.Unlock()
			for name, d := range l {
				lags[name] = append(lags[name], d)
			}
		})
	}
	group.Wait()
	for _, name := range []string{"first token", "last token", "finish", "ttft", "longest gap"} {
		figures(t, name, lags[name])
	}
}

// prompts lead to answers that begin in different ways.
var prompts = []string{"Hello", "EARLY hello", "FAKE-REASON-5 think first", "FAKE-USE-TOOL please"}

func (r *rig) stampsOf(t *testing.T, i int) map[string]time.Duration {
	t.Helper()
	d := dialects[i%len(dialects)]
	prompt := fmt.Sprintf("%s MARK-%08x", prompts[(i/len(dialects))%len(prompts)], i+1)
	id := fmt.Sprintf("stamps-%06d", i)
	a := r.post(d.path, withTool(d.name, d.body(true, prompt)), "X-Request-Id: "+id)
	equal(t, d.name+" status", a.StatusCode, 200)
	recs := r.book.Get(a.Header.Get("X-Request-Id"))
	if len(recs) != 1 {
		t.Errorf("%d timelines of %s", len(recs), id)
		return nil
	}
	rec := recs[0]
	marker := prompt[strings.Index(prompt, "MARK-"):]
	own, err := r.logged(func(l fakeengine.RequestLog) bool { return l.Marker == marker && !l.Finished.IsZero() })
	if err != nil {
		t.Errorf("%s %q: the engine knows nothing of it: %v", d.name, prompt, err)
		return nil
	}
	begun := own.FirstToken
	if strings.Contains(prompt, "TOOL") && (d.name == "messages" || d.name == "responses") {
		begun = own.TokenStamps[1] // the first is the call's name: only arguments are content there
	}
	first, last, finish := rec.At(trace.FirstToken), rec.At(trace.LastToken), rec.At(trace.Finish)
	ttft, _ := rec.TTFT()
	lags := map[string]time.Duration{
		"first token": first.Sub(begun),
		"last token":  last.Sub(own.LastToken),
		"finish":      finish.Sub(own.Terminal),
		"ttft":        ttft - begun.Sub(own.Arrived),
		"longest gap": (rec.TBT.Max - longest(own.TokenStamps)).Abs(),
	}
	for _, name := range []string{"first token", "last token", "finish"} {
		if lags[name] < 0 {
			t.Errorf("%s %q: %s lies %s before the engine's own", d.name, prompt, name, -lags[name])
		}
	}
	if n := int64(len(own.TokenStamps)); rec.TBT.Count != n-1 && !strings.Contains(prompt, "TOOL") { // the engine stamps a call's name where only Chat counts it
		t.Errorf("%s %q: %d gaps between %d content events", d.name, prompt, rec.TBT.Count, n)
	}
	if rec.At(trace.Enqueue).After(own.Arrived) {
		t.Errorf("%s %q: enqueue lies behind the engine's arrival", d.name, prompt)
	}
	return lags
}

// withTool adds a tool, so that the engine can be asked to call one.
func withTool(dialect, body string) string {
	tools := map[string]string{
		"chat":      `,"tools":[{"type":"function","function":{"name":"echo","parameters":{"type":"object","properties":{"word":{"type":"string"}}}}}]}`,
		"messages":  `,"tools":[{"name":"echo","input_schema":{"type":"object","properties":{"word":{"type":"string"}}}}]}`,
		"responses": `,"tools":[{"type":"function","name":"echo","parameters":{"type":"object","properties":{"word":{"type":"string"}}}}]}`,
	}
	if tool, ok := tools[dialect]; ok {
		return strings.TrimSuffix(body, "}") + tool
	}
	return body
}

func longest(stamps []time.Time) (d time.Duration) {
	for i := 1; i < len(stamps); i++ {
		d = max(d, stamps[i].Sub(stamps[i-1]))
	}
	return d
}
