package fallback

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// The clock of a synctest bubble begins at midnight UTC 2000-01-01.
const wholeStory = `[
 {"time":"2000-01-01T00:00:00Z","what":"opened","reason":"3 faults of 4 outcomes within 1m0s, the last: status_5xx 500 \"boom\"","until":"2000-01-01T00:00:05Z","faults":[
  {"time":"2000-01-01T00:00:00Z","kind":"connect"},
  {"time":"2000-01-01T00:00:00Z","kind":"cut"},
  {"time":"2000-01-01T00:00:00Z","kind":"status_5xx","status":500,"message":"boom"}]},
 {"time":"2000-01-01T00:00:05Z","what":"trial","until":"2000-01-01T00:00:15.25Z","result":"fault","duration_ms":250,"kind":"status_5xx","status":500,"message":"boom"},
 {"time":"2000-01-01T00:00:15.25Z","what":"trial","result":"inconclusive","duration_ms":1.5,"kind":"client_gone"},
 {"time":"2000-01-01T00:00:15.2515Z","what":"trial","until":"2000-01-01T00:00:25.2515Z","result":"draining","kind":"draining","status":500,"message":"cannot schedule new futures after shutdown"},
 {"time":"2000-01-01T00:00:35.2515Z","what":"trial","until":"2000-01-01T00:00:36.2515Z","result":"backpressure","kind":"backpressure","status":429},
 {"time":"2000-01-01T00:00:35.2515Z","what":"closed"},
 {"time":"2000-01-01T00:00:35.2515Z","what":"cooling","reason":"asked for 1s by status 429","until":"2000-01-01T00:00:36.2515Z","count":1},
 {"time":"2000-01-01T00:00:36.2515Z","what":"draining","reason":"it is shutting down: draining 500 \"cannot schedule new futures after shutdown\"","until":"2000-01-01T00:01:16.2515Z"},
 {"time":"2000-01-01T00:00:36.2515Z","what":"reset"},
 {"time":"2000-01-01T00:00:36.2515Z","what":"draining","reason":"it is shutting down: draining 500 \"cannot schedule new futures after shutdown\"","until":"2000-01-01T00:00:41.2515Z"},
 {"time":"2000-01-01T00:00:41.2515Z","what":"trial","result":"ok","kind":"context_length","status":400},
 {"time":"2000-01-01T00:00:41.2515Z","what":"closed"}
]`

func TestTheStoryTellsWhatOpenedTheGateAndHowItsTrialsWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		for _, o := range []Outcome{answered, refused, severed, broken} {
			one(t, g, o)
		}
		trial := func(wait, took time.Duration, o Outcome) {
			t.Helper()
			time.Sleep(wait)
			p := pass(t, g)
			time.Sleep(took)
			p.End(o)
		}
		trial(5*time.Second, 250*time.Millisecond, broken)
		trial(10*time.Second, 1500*time.Microsecond, gone)
		trial(0, 0, leaving)
		trial(20*time.Second, 0, asks(time.Second))
		trial(time.Second, 0, leaving)
		g.Reset()
		trial(0, 0, leaving)
		trial(5*time.Second, 0, tooLong)
		var want []Event
		if err := json.Unmarshal([]byte(strings.ReplaceAll(wholeStory, "00:00:25.2515", "00:00:35.2515")), &want); err != nil {
			t.Fatal(err)
		}
		got := g.Story()
		equal(t, "events", len(got), len(want))
		for i := range min(len(got), len(want)) {
			equal(t, fmt.Sprint("event ", i), inJSON(t, got[i]), inJSON(t, want[i]))
		}
	})
}

func inJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A long outage has many trials: what began it is kept beside the newest.
func TestTheStoryIsBoundedAndKeepsItsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		for range 10 {
			g.Reset()
		}
		opened(t, g)
		for i := range 100 {
			time.Sleep(time.Until(g.Standing().Until))
			o := broken
			o.Status = 500 + i
			one(t, g, o)
		}
		s := g.Story()
		equal(t, "events", len(s), 16)
		equal(t, "first", s[0].What, EventOpened)
		equal(t, "its faults", len(s[0].Faults), 3)
		for i, e := range s[1:] {
			equal(t, "status", e.Status, 500+100-15+i)
		}
		time.Sleep(time.Until(g.Standing().Until))
		one(t, g, answered) // now it is an old story
		for range 20 {
			g.Reset()
		}
		equal(t, "first", g.Story()[0].What, EventReset)
		equal(t, "events", len(g.Story()), 16)
	})
}

func TestCooldownsInARowAreOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		g.Reset()
		for range 100 {
			one(t, g, full)
			time.Sleep(time.Until(g.Standing().Until))
			one(t, g, answered)
		}
		s := g.Story()
		equal(t, "events", len(s), 2)
		equal(t, "count", s[1].Count, 100)
		equal(t, "until", s[1].Until.Equal(time.Now()), true)
	})
}

func TestFaultsThatTheBreakerForgotOpenedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := usual
		rules.AllowedFails = 10
		g := NewGate(rules)
		one(t, g, severed)
		time.Sleep(2 * time.Minute)
		for range 10 {
			one(t, g, refused)
		}
		s := g.Story()
		equal(t, "faults are the last ones", len(s[0].Faults), 8)
		for _, f := range s[0].Faults {
			equal(t, "kind", f.Kind, Connect)
		}
		g.Reset()
		g.Configure(usual)
		opened(t, g)
		s = g.Story()
		equal(t, "faults", len(s[len(s)-1].Faults), 3)
	})
}

func TestAForeignMessageIsBoundedAtACharacter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		o := broken
		o.Message = "x" + strings.Repeat("汉", 1000) + "\n"
		for range 3 {
			one(t, g, o)
		}
		m := g.Story()[0].Faults[0].Message
		equal(t, "length", len(m), 199)
		equal(t, "valid", utf8.ValidString(m), true)
		if r := g.Standing().Reason; len(r) > 300 || strings.Contains(r, "\n") || !strings.Contains(r, "汉") {
			t.Errorf("reason: %q", r)
		}
	})
}

// The words of a refusal that is the client's doing may quote its prompt.
func TestTheStoryKeepsNoWordsAboutTheClientsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		opened(t, g)
		time.Sleep(5 * time.Second)
		one(t, g, tooLong)
		if s := inJSON(t, g.Story()); strings.Contains(s, tooLong.Message) {
			t.Error(s)
		}
	})
}
