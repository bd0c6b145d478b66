package routing

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tracegate/configs"
	"tracegate/trace"
)

var strategies = []string{WeightedRandom, RoundRobin, LeastInflight, LeastUsage, LowestLatency, LowestCost, PrefixAffinity}

// pickedBy sends n requests, one after the other, and counts where they went.
func pickedBy(m *Model, n int, ask func(n int) *Ask) map[string]int {
	got := map[string]int{}
	for i := range n {
		c, permit := m.Take(ask(i))
		got[c.Deployment.Name()]++
		end(&permit, trace.ResultOK, 10)
	}
	return got
}

func chat(int) *Ask { return &Ask{Dialect: "chat"} }

func TestEveryStrategyOfTheConfigurationIsKnown(t *testing.T) {
	for _, s := range strategies {
		equal(t, "strategy", modelBy(t, s, "").Strategy(), s)
	}
	equal(t, "by default", (&Model{Spec: &configs.Model{}}).Strategy(), LeastInflight)
	equal(t, "that of a file without one", model(t, parse(t, nil, `{models: [{name: m, deployments: [{name: d, base_url: "http://127.0.0.1:1"}]}]}`)).Strategy(), LeastInflight)
}

func TestWeightsAreMet(t *testing.T) {
	const n = 20000
	weights := []string{"weight: 1", "weight: 0", "weight: 2", "weight: 7"}
	for strategy, slack := range map[string]float64{WeightedRandom: 4, RoundRobin: 0} {
		t.Run(strategy, func(t *testing.T) {
			got := pickedBy(modelBy(t, strategy, weights...), n, chat)
			for name, p := range map[string]float64{"d0": 0.1, "d1": 0, "d2": 0.2, "d3": 0.7} {
				// Four standard deviations of a binomial; in turn there is nothing to deviate.
				if off := math.Abs(float64(got[name]) - p*n); off > slack*math.Sqrt(n*p*(1-p)) {
					t.Errorf("%s got %d of %d, want %v", name, got[name], n, p*n)
				}
			}
		})
	}
	m := modelBy(t, PrefixAffinity, weights...)
	got := pickedBy(m, n, func(i int) *Ask { return &Ask{Dialect: "chat", Affinity: uint64(i + 1)} })
	for name, p := range map[string]float64{"d0": 0.1, "d1": 0, "d2": 0.2, "d3": 0.7} {
		if off := math.Abs(float64(got[name]) - p*n); off > 4*math.Sqrt(n*p*(1-p)) {
			t.Errorf("%s got %d of %d sessions, want %v", name, got[name], n, p*n)
		}
	}
}

func TestTurnsAreSmooth(t *testing.T) {
	m := modelBy(t, RoundRobin, "weight: 5", "", "")
	equal(t, "picks", picks(m, 14, false), "d0 d0 d1 d0 d2 d0 d0 d0 d0 d1 d0 d2 d0 d0")
	one := 1
	m.Deployments[0].Live.SetWeight(&one)
	got := strings.Fields(picks(m, 6, false))
	slices.Sort(got)
	equal(t, "alike from now on", fmt.Sprint(got), "[d0 d0 d1 d1 d2 d2]")
}

func TestADebtOfALargeWeightIsForgotten(t *testing.T) {
	m := modelBy(t, RoundRobin, "weight: 1000", "")
	for picks(m, 1, false) != "d1" { // it owes 1000 rounds now
	}
	one := 1
	m.Deployments[0].Live.SetWeight(&one)
	if got := picks(m, 8, false); strings.Count(got, "d1") < 3 {
		t.Errorf("d1 pays for what the other's weight was: %s", got)
	}
}

func TestTheScoreOfEachStrategy(t *testing.T) {
	price := func(in, out float64) string { return fmt.Sprintf("price: {input: %v, output: %v}", in, out) }
	for _, c := range []struct {
		strategy    string
		deployments []string
		ask         Ask
		want        string
	}{
		{WeightedRandom, []string{"weight: 3", ""}, Ask{}, "[{d0 0.25 } {d1 0.75 }]"},
		{RoundRobin, []string{"weight: 3", ""}, Ask{}, "[{d0 0.25 } {d1 0.75 }]"},
		{LeastInflight, []string{"weight: 2", ""}, Ask{Prompt: 2048}, "[{d0 1 } {d1 2 }]"},
		{LeastInflight, []string{""}, Ask{Prompt: 10_000_000}, "[{d0 8 }]"},
		{LeastUsage, []string{"weight: 2", ""}, Ask{Prompt: 100, Output: 20}, "[{d0 60 } {d1 120 }]"},
		{LeastUsage, []string{""}, Ask{Prompt: 100}, "[{d0 600 }]"},
		{LowestCost, []string{price(1, 2), "", price(3, 0)}, Ask{Prompt: 1000, Output: 500}, "[{d0 0.002 } {d1 1e+09 } {d2 0.003 }]"},
		{LowestLatency, []string{"", "weight: 4"}, Ask{}, "[{d0 1 } {d1 0.25 }]"},
		{PrefixAffinity, []string{"", "weight: 4"}, Ask{}, "[{d0 1 } {d1 0.25 }]"},
	} {
		t.Run(c.strategy, func(t *testing.T) {
			c.ask.Dialect = "chat"
			equal(t, "considered", fmt.Sprint(modelBy(t, c.strategy, c.deployments...).Peek(&c.ask).Considered), c.want)
		})
	}
}

func TestUsageIsEvenedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := modelBy(t, LeastUsage, "", "weight: 3")
		var used [2]int
		for i := range 400 {
			c, permit := m.Take(&Ask{Dialect: "chat", Prompt: 10})
			tokens := 10 + 500*(i%2)
			used[slices.Index(m.Deployments, c.Deployment)] += 10 + tokens
			permit.End(End{Result: trace.ResultOK, Prompt: 10, Output: int64(tokens)})
			time.Sleep(50 * time.Millisecond)
		}
		if ratio := float64(used[1]) / float64(used[0]); ratio < 2.7 || ratio > 3.3 {
			t.Errorf("tokens %v, want 1 to 3", used)
		}
	})
}

// Usage is told at the end of an answer, so many that begin together must not all go to one.
func TestUsageUnderWayCounts(t *testing.T) {
	m := modelBy(t, LeastUsage, "", "")
	p := place(m.Deployments[0])
	end(&p, trace.ResultOK, 100)
	picks(m, 20, true)
	for _, d := range m.Deployments {
		equal(t, d.Name(), d.Live.Inflight(), 10)
	}
}

// Each request that looks whether a slow one has recovered is somebody's.
func TestASlowOneIsProbedOnceInTheTimeThatMakesItStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := modelBy(t, LowestLatency, "", "")
		for i, d := range m.Deployments {
			p := place(d)
			p.Content([]time.Duration{100 * time.Millisecond, 30 * time.Second}[i])
			end(&p, trace.ResultOK, 1)
		}
		probes := 0
		for range 4500 {
			c, p := m.Take(chat(0))
			if c.Deployment == m.Deployments[1] {
				probes++ // it hangs
			} else {
				p.Content(100 * time.Millisecond)
				end(&p, trace.ResultOK, 1)
			}
			time.Sleep(10 * time.Millisecond)
		}
		equal(t, "probes in 45 s", probes, 4)
	})
}

func TestTheCheapestWithRoomIsTaken(t *testing.T) {
	m := modelBy(t, LowestCost, "", "price: {input: 2, output: 2}, max_inflight: 2", "price: {input: 2, output: 2}, max_inflight: 2", "price: {input: 3, output: 3}, max_inflight: 1")
	equal(t, "equal prices by load, then the dear one, then the unpriced", picks(m, 7, true), "d1 d2 d2 d1 d3 d0 d0")
}

func TestASessionStaysAndOthersMoveNot(t *testing.T) {
	place := func(m *Model, id int) string {
		return m.Pick(&Ask{Dialect: "chat", Affinity: uint64(id + 1)}).Deployment.Name()
	}
	before := modelBy(t, PrefixAffinity, "", "", "", "")
	after := modelBy(t, PrefixAffinity, "", "", "weight: 0", "")
	moved := 0
	for id := range 1000 {
		was, is := place(before, id), place(after, id)
		equal(t, "asked again", place(before, id), was)
		if was == "d2" {
			moved++
		} else {
			equal(t, "without d2", is, was)
		}
	}
	if moved < 200 || moved > 300 {
		t.Errorf("%d of 1000 sessions were at one of four", moved)
	}
	// Other replicas and later versions must agree.
	equal(t, "session 1", place(before, 0)+place(before, 1)+place(before, 2)+place(before, 3), affinityOfTheFirst)
}

const affinityOfTheFirst = "d0d0d1d3"

func TestPeekChangesNothing(t *testing.T) {
	for _, strategy := range strategies {
		for _, deployments := range [][]string{{"", "", ""}, {"weight: 5", "weight: 2", ""}} {
			with, without := modelBy(t, strategy, deployments...), modelBy(t, strategy, deployments...)
			for range 30 {
				if strategy != WeightedRandom { // its chances are spent
					with.Peek(chat(0))
				}
				equal(t, strategy, with.Pick(chat(0)).Deployment.Name(), without.Pick(chat(0)).Deployment.Name())
			}
		}
	}
}

func manyDeployments(t testing.TB, strategy string) (*Model, *Ask) {
	keys := make([]string, 64)
	for i := range keys {
		keys[i] = "max_inflight: 100, max_prompt_tokens: 100000, price: {input: 1, output: 2}"
	}
	m := modelBy(t, strategy, keys...)
	for i, d := range m.Deployments {
		load(d, i%5)
		p := place(d)
		p.Content(time.Duration(100+i) * time.Millisecond)
		p.End(End{Result: trace.ResultOK, Prompt: 100, Guess: 90, Output: 100, Decode: time.Second})
	}
	return m, &Ask{Dialect: "chat", Prompt: 1000, Affinity: 77}
}

func TestPickAllocatesOnlyWhatIsConsidered(t *testing.T) {
	for _, strategy := range strategies {
		m, ask := manyDeployments(t, strategy)
		var c Choice
		equal(t, strategy, testing.AllocsPerRun(100, func() { c = m.Pick(&Ask{Dialect: ask.Dialect, Prompt: ask.Prompt, Affinity: ask.Affinity}) }), 1)
		equal(t, "considered", len(c.Considered), 64)
		considered := make([]trace.Considered, 64)
		equal(t, "the decision", testing.AllocsPerRun(100, func() { decide(m, ask, considered) }), 0)
		// The one is the gate's.
		equal(t, "a permit's life", testing.AllocsPerRun(100, func() {
			p := place(m.Deployments[0])
			p.Content(time.Second)
			p.End(End{Result: trace.ResultOK, Prompt: 100, Guess: 90, Output: 100, Decode: time.Second})
		}), 1)
	}
}

// decide is Pick without the allocation of what is considered.
func decide(m *Model, ask *Ask, considered []trace.Considered) int {
	p := picking{m: m, a: *ask, considered: considered}
	p.exclude()
	return p.best()
}

func BenchmarkDecide(b *testing.B) {
	for _, strategy := range strategies {
		b.Run(strategy, func(b *testing.B) {
			m, ask := manyDeployments(b, strategy)
			considered := make([]trace.Considered, 64)
			for b.Loop() {
				decide(m, ask, considered)
			}
		})
	}
}
