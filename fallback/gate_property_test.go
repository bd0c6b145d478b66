package fallback

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
	"pgregory.net/rapid"
)

// step is one thing that happens to a gate: what, to which pass in flight, for how long.
type step struct {
	what  string
	which int
	end   Outcome
	wait  time.Duration
}

var ends = []Outcome{
	answered, broken, refused, severed, leaving, tooLong, badInput, gone, full, asks(time.Second), asks(40 * time.Second),
	{Kind: TimeoutTotal, Verdict: NotTheirs},
}

func drawSteps(t *rapid.T) []step {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			what:  rapid.SampledFrom([]string{"allow", "allow", "allow", "probe", "content", "end", "end", "end", "sleep", "sleep", "configure", "reset"}).Draw(t, "what"),
			which: rapid.IntRange(0, 9).Draw(t, "which"),
			end:   rapid.SampledFrom(ends).Draw(t, "end"),
			wait:  rapid.SampledFrom([]time.Duration{0, 1, 2, time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second, 2 * time.Minute}).Draw(t, "wait"),
		}
	}), 30, 200).Draw(t, "steps")
}

// flight is a gate under random steps, and what must be true of it.
type flight struct {
	gate    *Gate
	passes  []*Pass
	trial   *Pass // the one that may be trying it out
	before  Standing
	until   time.Time // the end of its cooldown, half-open or not
	success bool      // something in this step may end a cooldown
	problem string
}

func (f *flight) fails(format string, args ...any) {
	if f.problem == "" {
		f.problem = fmt.Sprintf(format, args...)
	}
}

func (f *flight) step(s step) {
	f.before, f.until, f.success = f.gate.Standing(), f.gate.until, false
	_, refused := f.gate.Blocked()
	switch s.what {
	case "allow", "probe":
		enter := f.gate.Allow
		if s.what == "probe" {
			enter = f.gate.Probe
		}
		p, ok := enter()
		if s.what == "allow" && ok == refused {
			f.fails("blocked %v, but allow %v", refused, ok)
		}
		if ok && f.before.State != Ready {
			if f.trial != nil {
				f.fails("a second trial in %+v", f.before)
			}
			f.trial = &p
		}
		if ok {
			f.passes = append(f.passes, &p)
		}
	case "content":
		if p := f.pick(s.which); p != nil {
			f.success = true
			p.Content()
		}
	case "end":
		if p := f.pick(s.which); p != nil {
			f.passes = append(f.passes[:s.which%len(f.passes)], f.passes[s.which%len(f.passes)+1:]...)
			p.End(s.end)
			f.success = !s.end.Failed() || s.end.Kind == ClientError || s.end.Kind == ContextLength
			if p == f.trial {
				f.trial = nil
			}
		}
	case "sleep":
		time.Sleep(s.wait)
	case "configure":
		rules := usual
		rules.Window += s.wait
		rules.AllowedFails = 1 + s.which%4
		f.gate.Configure(rules)
	case "reset":
		f.success = true
		f.gate.Reset()
	}
	f.check(s)
}

func (f *flight) pick(n int) *Pass {
	if len(f.passes) == 0 {
		return nil
	}
	return f.passes[n%len(f.passes)]
}

func (f *flight) check(s step) {
	now := f.gate.Standing()
	if f.trial != nil && f.trial.trial != f.gate.trial {
		f.trial = nil // its content came, or nobody waits for it any more
	}
	if closed := f.gate.breaker.steps.State() == gobreaker.StateClosed; closed != f.gate.breakerClosed() {
		f.fails("%s: the breaker's closed is %v in %+v", s.what, closed, now)
	}
	// Every permit of gobreaker is the trial's or has come back.
	c := f.gate.breaker.steps.Counts()
	if f.gate.trial == nil && c.Requests > c.TotalSuccesses+c.TotalFailures+c.TotalExclusions {
		f.fails("a permit is missing: %+v", c)
	}
	if !f.success && f.until.After(time.Now()) && f.gate.until.Before(f.until) {
		f.fails("%s %s: the end went from %s to %s", s.what, s.end.Kind, f.until, f.gate.until)
	}
	if (now.State == Ready) != (now.Reason == "") {
		f.fails("%+v", now)
	}
	if n := len(f.gate.Story()); n > keptEvents {
		f.fails("%d events", n)
	}
}

// settle ends what is in flight: after the last end of a cooldown a request must pass.
func (f *flight) settle() {
	for _, p := range f.passes {
		p.End(gone)
	}
	time.Sleep(max(0, time.Until(f.gate.Standing().Until)))
	p, ok := f.gate.Allow()
	if !ok {
		f.fails("blocked for ever: %+v", f.gate.Standing())
		return
	}
	p.Content()
	p.End(answered)
	if s := f.gate.Standing(); s.State != Ready {
		f.fails("a success left it %+v", s)
	}
}

func TestAGateUnderRandomRequests(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := drawSteps(rt)
		var problem string
		synctest.Test(t, func(*testing.T) {
			f := &flight{gate: NewGate(usual)}
			for _, s := range steps {
				f.step(s)
			}
			f.settle()
			problem = f.problem
		})
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}
