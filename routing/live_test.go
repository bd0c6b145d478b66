package routing

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"tracegate/fallback"
	"tracegate/trace"
)

func TestLongPromptsCountMoreUntilTheirFirstToken(t *testing.T) {
	m := modelBy(t, LeastInflight, "")
	live := m.Deployments[0].Live
	loads := func() float64 { return float64(live.load.Load()) / loadUnit }
	_, long := m.Take(&Ask{Dialect: "chat", Prompt: 3 * prefillScale})
	_, short := m.Take(&Ask{Dialect: "chat"})
	equal(t, "both wait", loads(), 1+3+1)
	long.Content(time.Second)
	long.Content(time.Second)
	equal(t, "the long one streams", loads(), 1+3.0/16+1)
	end(&short, trace.ResultOK, 1)
	end(&long, trace.ResultFault, -1)
	equal(t, "in the end", loads(), 0)
}

func TestTokensAreForgottenAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := model(t, table(t, nil, "")).Deployments[0].Live
		add := func(n int64) { live.mu.Lock(); live.tokens60.add(n, clock()); live.mu.Unlock() }
		now := func() int64 { return live.tokensPerMinute(clock() / int64(time.Second)) }
		equal(t, "at first", now(), 0)
		add(5)
		time.Sleep(30 * time.Second)
		add(7)
		equal(t, "after 30 s", now(), 12)
		time.Sleep(29 * time.Second)
		equal(t, "after 59 s", now(), 12)
		time.Sleep(time.Second)
		equal(t, "after 60 s", now(), 7)
		time.Sleep(time.Hour)
		equal(t, "after an hour", now(), 0)
		add(-3) // an estimate that is corrected after it was forgotten
		equal(t, "never negative", now(), 0)
	})
}

func TestAnEndCorrectsWhatWasEstimated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := modelBy(t, LeastUsage, "")
		live := m.Deployments[0].Live
		now := func() int64 { return live.tokensPerMinute(clock() / int64(time.Second)) }
		_, p := m.Take(&Ask{Dialect: "chat", Prompt: 100})
		equal(t, "begun", now(), 100)
		p.End(End{Result: trace.ResultOK, Prompt: 130, Guess: 100, Output: 50})
		equal(t, "ended", now(), 180)
		_, p = m.Take(&Ask{Dialect: "chat", Prompt: 10})
		end(&p, trace.ResultFault, -1)
		equal(t, "nothing was reported", now(), 190)
	})
}

func TestOldMeasurementsFade(t *testing.T) {
	var a timed
	second := int64(time.Second)
	now := 1000 * second
	equal(t, "before any", a.value(), 0)
	a.add(1000, now)
	equal(t, "the first", a.value(), 1000)
	a.add(0, now)
	equal(t, "at once after it", a.value(), 950)
	for range 100 {
		now += second / 10
		a.add(200, now)
	}
	if math.Abs(a.value()-200) > 50 {
		t.Errorf("10 s later it is still %v", a.value())
	}
	a.add(0, now)
	now += stale
	a.add(3000, now)
	equal(t, "in place of a stale one", a.value(), 3000)
	equal(t, "that is news", a.renewed.Load(), now)
	now += stale / 2
	a.add(3000, now)
	equal(t, "the same again is not", a.renewed.Load(), now-stale/2)
	for range 20 {
		now += second
		a.add(100, now)
	}
	if a.renewed.Load() < now-20*second {
		t.Error("that it became fast is no news")
	}
}

func TestTheRatioOfTokensIsLearned(t *testing.T) {
	for _, c := range []struct {
		name            string
		samples         int
		reported, guess int64
		want            int
	}{
		{"too few", ratioSamples - 1, 200, 100, 1000},
		{"enough", ratioSamples, 200, 100, 2000},
		{"less", 50, 50, 100, 500},
		{"nonsense above", 50, 100_000, 100, 4000},
		{"nonsense below", 50, 1, 100, 250},
		{"nothing reported", 50, 0, 100, 1000},
		{"unknown", 50, -1, 100, 1000},
		{"nothing estimated", 50, 100, 0, 1000},
	} {
		d := model(t, table(t, nil, "max_prompt_tokens: 999")).Deployments[0]
		for range c.samples {
			p := place(d)
			p.End(End{Result: trace.ResultOK, Prompt: c.reported, Guess: int(c.guess), Output: 1})
		}
		equal(t, c.name, d.Estimate(1000), c.want)
		excluded := d.model.Pick(&Ask{Dialect: "chat", Prompt: 1000}).Considered[0].Excluded
		equal(t, c.name+" decides", excluded == ExcludedTooLong, c.want > 999)
	}
}

func TestAFirstTokenWaitedForInVainIsAMeasurement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := model(t, table(t, nil, "")).Deployments[0]
		p := place(d)
		p.Content(100 * time.Millisecond)
		end(&p, trace.ResultOK, 1)
		for _, kind := range []fallback.Kind{fallback.TimeoutFirstToken, fallback.Connect} {
			p = place(d)
			time.Sleep(30 * time.Second)
			p.End(End{Result: trace.ResultFault, Outcome: fallback.Outcome{Kind: kind, Verdict: fallback.Fault}, Prompt: -1, Output: -1})
			equal(t, string(kind), d.Live.ttft.value(), 30000)
		}
		equal(t, "not a stream", d.Live.tpot.value(), 0)
		p = place(d)
		p.Content(-1)
		p.End(End{Result: trace.ResultOK, Prompt: -1, Output: 101, Decode: 2 * time.Second})
		equal(t, "no time to a first token", d.Live.ttft.value(), 30000)
		equal(t, "per token", d.Live.tpot.value(), 20)
	})
}

func TestAnAnswersLengthIsExpected(t *testing.T) {
	live := &ModelLive{}
	equal(t, "unknown", live.expect(&Ask{}), guessedOutput)
	equal(t, "unknown, but capped", live.expect(&Ask{Output: 20}), 20)
	for range 5 {
		live.answered(100)
	}
	equal(t, "the mean", live.expect(&Ask{Output: 1000}), 100)
}

func TestWhatAnOperatorDidSurvivesAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := table(t, nil, "weight: 3", "weight: 2", "")
		d, ok := before.Find("d0")
		equal(t, "found", ok, true)
		_, ok = before.Find("m")
		equal(t, "a model is no deployment", ok, false)
		seven := 7
		time.Sleep(time.Minute)
		model(t, before).Deployments[1].Live.SetWeight(&seven)
		d.Live.Drain()
		equal(t, "picked", picks(model(t, before), 1, false), "d1")
		time.Sleep(time.Minute)

		all := table(t, before, "weight: 5", "weight: 5", "")
		s := all.State()[0].Deployments
		equal(t, "drained", s[0].State, "draining")
		equal(t, "why", *s[0].Reason, "drained by an operator")
		equal(t, "since", time.Since(s[0].Since), time.Minute)
		equal(t, "its weight is kept", s[1].Weight, 7)
		equal(t, "the others' is the file's", s[2].Weight, 1)

		d, _ = all.Find("d0")
		d.Live.Enable()
		equal(t, "enabled", d.State().State, "ready")
		equal(t, "since now", time.Since(d.State().Since), 0)
		equal(t, "nothing to say", d.State().Reason == nil, true)
		zero, low := 0, -4
		for _, n := range []*int{&zero, &low} {
			d.Live.SetWeight(n)
			equal(t, "weight", d.Weight(), 0)
			equal(t, "drains", *d.State().Reason, "weight 0")
		}
		d.Live.SetWeight(nil)
		equal(t, "the file's again", d.Weight(), 5)
		equal(t, "ready again", d.State().State, "ready")

		time.Sleep(time.Minute)
		all = table(t, all, "weight: 0", "weight: 5", "")
		equal(t, "the new file drains it", time.Since(all.State()[0].Deployments[0].Since), 0)
	})
}

func TestMeasurementsSurviveAReload(t *testing.T) {
	before := tableBy(t, nil, LowestLatency, "", "")
	for i, d := range model(t, before).Deployments {
		for range ratioSamples {
			p := place(d)
			p.Content(time.Duration(i+1) * time.Second)
			p.End(End{Result: trace.ResultOK, Prompt: 200, Guess: 100, Output: 11, Decode: time.Second})
		}
	}
	running := place(model(t, before).Deployments[0])
	after := model(t, tableBy(t, before, LowestLatency, "", ""))
	equal(t, "what is expected", after.Peek(chat(0)).Considered[0].Score, (1000+11*100)*2)
	equal(t, "of the other", after.Peek(chat(0)).Considered[1].Score, 2000+11*100)
	equal(t, "the ratio", after.Deployments[0].Estimate(10), 20)
	end(&running, trace.ResultOK, 11)
	equal(t, "its load", after.Deployments[0].Live.load.Load(), 0)
	equal(t, "the model's own", after.Live == model(t, before).Live, true)
}

func TestTheStateIsTheGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := model(t, table(t, nil, "cooldown: {time: 5s}", "", "", ""))
		fails(m.Deployments[0], 4, failed)
		fails(m.Deployments[1], 1, pressed)
		fails(m.Deployments[2], 1, leaving)
		began := time.Now()
		time.Sleep(time.Second)
		for i, want := range []string{"open", "cooling", "draining", "ready"} {
			s := m.Deployments[i].State()
			equal(t, s.Name, s.State, want)
			if blocked := want != "ready"; (s.Reason != nil) != blocked || (s.Until != nil) != blocked || (len(s.Story) > 0) != blocked {
				t.Errorf("%s: reason %v, until %v, story %v", s.Name, s.Reason, s.Until, s.Story)
			}
		}
		equal(t, "open until", m.Deployments[0].State().Until.Sub(began), 5*time.Second)
		time.Sleep(4 * time.Second)
		equal(t, "later", m.Deployments[0].State().State, "half_open")
	})
}
