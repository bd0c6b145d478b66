package fallback

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tracegate/configs"
)

// usual are the defaults of the configuration.
var usual = configs.Cooldown{
	AllowedFails: 3, Window: time.Minute, Time: 5 * time.Second, MaxTime: time.Minute,
	MinRequests: 5, ErrorRatio: 0.5,
}

var (
	broken   = Outcome{Kind: Status5xx, Verdict: Fault, Status: 500, Message: "boom"}
	refused  = Outcome{Kind: Connect, Verdict: Fault}
	severed  = Outcome{Kind: Cut, Verdict: Fault}
	full     = Outcome{Kind: Pressure, Verdict: Backpressure, Status: 429}
	leaving  = Outcome{Kind: Draining, Verdict: None, Status: 500, Message: "cannot schedule new futures after shutdown"}
	tooLong  = Outcome{Kind: ContextLength, Verdict: NotTheirs, Status: 400, Message: "the prompt is quoted here"}
	badInput = Outcome{Kind: ClientError, Verdict: NotTheirs, Status: 422}
	gone     = Outcome{Kind: ClientGone, Verdict: NotTheirs}
	answered = Outcome{}
)

func asks(d time.Duration) Outcome {
	o := full
	o.RetryAfter = d
	return o
}

// pass takes a pass that must be given.
func pass(t testing.TB, g *Gate) *Pass {
	t.Helper()
	p, ok := g.Allow()
	if !ok {
		t.Fatalf("refused: %+v", g.Standing())
	}
	return &p
}

func refuses(t testing.TB, g *Gate) {
	t.Helper()
	if _, ok := g.Allow(); ok {
		t.Fatalf("it let a request pass: %+v", g.Standing())
	}
}

// one is a request that ends in o; content is reported first where it was answered.
func one(t testing.TB, g *Gate, o Outcome) {
	t.Helper()
	p := pass(t, g)
	if !o.Failed() {
		p.Content()
	}
	p.End(o)
}

func opened(t testing.TB, g *Gate) {
	t.Helper()
	for range 3 {
		one(t, g, broken)
	}
	equal(t, "state", g.Standing().State, Open)
}

func state(t testing.TB, g *Gate, want State) {
	t.Helper()
	if s := g.Standing(); s.State != want {
		t.Fatalf("state: got %+v, want %s", s, want)
	}
}

func TestOutcomesOpenTheGateByTheContractsRule(t *testing.T) {
	words := map[rune]Outcome{
		'F': broken, 's': answered, 'b': asks(time.Millisecond), '4': badInput, 'L': tooLong, 'g': gone,
		'o': {Kind: OperatorAbort, Verdict: NotTheirs}, 'T': {Kind: TimeoutTotal, Verdict: NotTheirs},
		't': {Kind: TimeoutFirstToken, Verdict: Fault}, 'c': {Kind: Credential, Verdict: Fault, Status: 401},
	}
	high := usual
	high.ErrorRatio, high.AllowedFails, high.MinRequests = 1, 2, 10
	single := usual
	single.AllowedFails = 1
	for _, c := range []struct {
		name     string
		rules    configs.Cooldown
		outcomes string
		want     State
	}{
		{"one fault of a fresh deployment", usual, "F", Ready},
		{"one fault, then ten good ones", usual, "Fssssssssss", Ready},
		{"allowed_fails in a row", usual, "FFF", Open},
		{"allowed_fails in a row after many good ones", usual, "ssssssssssssssssssssFFF", Open},
		{"of any kind", usual, "Ftc", Open},
		{"allowed_fails not in a row and under the ratio", usual, "FsFsssF", Ready},
		{"the ratio before min_requests", usual, "FFsF", Ready},
		{"the ratio from min_requests on", usual, "FFssF", Open},
		{"the ratio without allowed_fails", usual, "sFsF", Ready},
		{"a success that completes min_requests opens nothing", usual, "FFsFs", Ready},
		{"the fault after it does", usual, "FFsFsF", Open},
		{"what is no outcome stands in no row", usual, "F4FLgoTF", Open},
		{"what is no outcome dilutes no ratio", usual, "FFss44444LLLLLgggggF", Open},
		{"what is no outcome does not complete min_requests", usual, "FFs4LgF", Ready},
		{"backpressure is no outcome", usual, "bbbbbbbbbbbbbbbbbbbb", Ready},
		{"backpressure between faults", usual, "FbFbF", Open},
		{"fifty prompts that are too long", usual, "LLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLL", Ready},
		{"fifty bad requests", usual, "44444444444444444444444444444444444444444444444444", Ready},
		{"fifty clients that leave", usual, "gggggggggggggggggggggggggggggggggggggggggggggggggg", Ready},
		{"a ratio of 1 needs all to fail", high, "sFsFsFsFsFsFsFsF", Ready},
		{"a ratio of 1, in a row", high, "sFF", Open},
		{"allowed_fails of one", single, "F", Open},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewGate(c.rules)
				for _, w := range c.outcomes {
					one(t, g, words[w])
					if words[w].Verdict == Backpressure {
						time.Sleep(time.Millisecond)
					}
				}
				state(t, g, c.want)
			})
		})
	}
}

func TestOnlyOutcomesThatAreKnownCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		for range 100 { // in flight, nothing known
			defer pass(t, g).End(gone)
		}
		for _, o := range []Outcome{broken, broken, answered, answered, broken} {
			one(t, g, o)
		}
		state(t, g, Open)
	})
}

func TestTheWindowRolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		one(t, g, broken)
		one(t, g, broken)
		time.Sleep(57*time.Second - 1) // the finest slot is 3 s
		one(t, g, broken)
		state(t, g, Open)

		g = NewGate(usual)
		one(t, g, broken)
		one(t, g, broken)
		time.Sleep(time.Minute)
		one(t, g, broken)
		state(t, g, Ready)
		one(t, g, broken)
		time.Sleep(30 * time.Second)
		state(t, g, Ready)
		one(t, g, broken)
		state(t, g, Open)
	})
}

// A deployment that accepts and says nothing is found out however long the
// first-token limit is: an outcome counts from when it is known.
func TestASilenceLongerThanTheWindowCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		passes := []*Pass{pass(t, g), pass(t, g), pass(t, g)}
		time.Sleep(5 * time.Minute)
		for _, p := range passes {
			p.End(Outcome{Kind: TimeoutFirstToken, Verdict: Fault})
		}
		state(t, g, Open)
		equal(t, "reason", g.Standing().Reason, "3 faults of 3 outcomes within 1m0s, the last: timeout_first_token")
	})
}

func TestAFaultAfterContentIsOneMoreOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		for range 2 {
			p := pass(t, g)
			p.Content()
			p.End(severed)
			state(t, g, Ready)
		}
		p := pass(t, g)
		p.Content()
		p.Content() // has no second effect
		state(t, g, Ready)
		p.End(severed)
		s := g.Standing()
		equal(t, "state", s.State, Open)
		equal(t, "reason", s.Reason, "3 faults of 6 outcomes within 1m0s, the last: cut")
	})
}

func TestAnAnswerWithoutContentIsASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		one(t, g, broken)
		one(t, g, broken)
		pass(t, g).End(answered)
		one(t, g, broken)
		state(t, g, Ready)
	})
}

func TestNewRulesHoldFromNowOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		one(t, g, broken)
		rules := usual
		rules.AllowedFails, rules.Time = 2, time.Second
		g.Configure(rules) // the fault stays counted
		one(t, g, broken)
		s := g.Standing()
		equal(t, "state", s.State, Open)
		equal(t, "until", s.Until.Sub(s.Since), time.Second)

		rules.Time, rules.Window = 9*time.Second, 10*time.Second
		g.Configure(rules) // a cooldown that runs keeps its end
		equal(t, "standing", g.Standing(), s)
		time.Sleep(time.Second)
		p := pass(t, g)
		rules.Window = 20 * time.Second
		g.Configure(rules) // and a trial goes on
		refuses(t, g)
		p.Content()
		state(t, g, Ready)
		p.End(answered)
		equal(t, "window", g.breaker.window, 20*time.Second)

		rules.Window = 30 * time.Second
		g.Configure(rules)
		equal(t, "window", g.breaker.window, 30*time.Second)
	})
}

func TestExtremeRulesAreHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, window := range []time.Duration{1, 19, 21, 39, time.Microsecond, 1<<63 - 1} {
			rules := usual
			rules.Window, rules.Time, rules.MaxTime = window, 1<<62, 1<<63-1
			g := NewGate(rules)
			opened(t, g)
			if until := g.Standing().Until; !until.After(time.Now()) {
				t.Errorf("window %s: until %s", window, until)
			}
		}
	})
}

func TestDoublingStopsAtTheMost(t *testing.T) {
	for _, c := range []struct {
		first time.Duration
		n     int
		most  time.Duration
		want  time.Duration
	}{
		{time.Second, 0, time.Minute, time.Second},
		{time.Second, -1, time.Minute, time.Second},
		{time.Second, 3, time.Minute, 8 * time.Second},
		{time.Second, 6, time.Minute, time.Minute},
		{time.Second, 1 << 30, 1<<63 - 1, 1<<63 - 1},
		{time.Minute, 2, time.Second, time.Second},
	} {
		equal(t, fmt.Sprintf("%+v", c), doubled(c.first, c.n, c.most), c.want)
	}
}
