package routing

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tracegate/trace"
)

// simulation sends requests to a model's deployments in virtual time.
type simulation struct {
	m       *Model
	mu      sync.Mutex
	began   time.Time
	arrived []arrival
	all     sync.WaitGroup
	random  *rand.Rand // of the arrivals
}

type arrival struct {
	at         time.Duration
	deployment int
}

func simulate(m *Model) *simulation {
	return &simulation{m: m, began: time.Now(), random: rand.New(rand.NewPCG(3, 4))}
}

func (s *simulation) now() time.Duration { return time.Since(s.began) }

// request is one with 100 tokens; ttft and rest are asked when it begins.
func (s *simulation) request(a Ask, ttft, rest func(deployment int) time.Duration) {
	s.mu.Lock()
	c, permit := s.m.Take(&a)
	at := -1
	for i, d := range s.m.Deployments {
		if d == c.Deployment {
			at = i
		}
	}
	s.arrived = append(s.arrived, arrival{s.now(), at})
	s.mu.Unlock()
	first, decode := ttft(at), rest(at)
	time.Sleep(first)
	permit.Content(first)
	time.Sleep(decode)
	permit.End(End{Result: trace.ResultOK, Prompt: -1, Output: 100, Decode: decode})
}

// arrive lets requests come at a mean rate per second, until a time.
func (s *simulation) arrive(until time.Duration, rate float64, f func(n int)) {
	for n := 0; s.now() < until; n++ {
		s.all.Go(func() { f(n) })
		time.Sleep(time.Duration(s.random.ExpFloat64() / rate * float64(time.Second)))
	}
}

// share is the part of the requests in a time that a deployment got.
func (s *simulation) share(deployment int, from, to time.Duration) float64 {
	mine, all := 0, 0
	for _, a := range s.arrived {
		if a.at >= from && a.at < to {
			all++
			if a.deployment == deployment {
				mine++
			}
		}
	}
	return float64(mine) / float64(max(all, 1))
}

func inflight(m *Model) (all, most float64) {
	for _, d := range m.Deployments {
		n := float64(d.Live.Inflight())
		all, most = all+n, max(most, n)
	}
	return all, most
}

func always(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// Every second request takes 60 times as long: in turn, all long ones would meet at one engine.
func TestLongStreamsSpreadOverTheEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := modelBy(t, LeastInflight, "", "")
		s := simulate(m)
		skew, samples := 0.0, 0.0
		s.all.Go(func() {
			for range 4000 {
				time.Sleep(100 * time.Millisecond)
				if all, most := inflight(m); all >= 40 {
					skew += most / (all / 2)
					samples++
				}
			}
		})
		s.arrive(400*time.Second, 2, func(n int) {
			if n%2 == 0 {
				s.request(Ask{Dialect: "chat", Prompt: 200}, always(100*time.Millisecond), always(time.Second))
			} else {
				s.request(Ask{Dialect: "chat", Prompt: 12000}, always(2*time.Second), always(60*time.Second))
			}
		})
		s.all.Wait()
		if samples < 3000 {
			t.Fatalf("at least 40 were in flight in only %v of 4000 samples", samples)
		}
		if mean := skew / samples; mean > 1.3 {
			t.Errorf("the fuller engine had %.2f times the mean", mean)
		}
		for _, d := range m.Deployments {
			equal(t, "load in the end", d.Live.load.Load(), 0)
		}
	})
}

// Sessions stay where their prefixes are cached, unless that one has its share.
func TestSessionsStayWithinTheBoundOfLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions, each = 1000, 20
		m := modelBy(t, PrefixAffinity, "", "", "", "")
		s := simulate(m)
		var places [sessions]map[string]int
		for id := range sessions {
			places[id] = map[string]int{}
			s.all.Go(func() {
				r := rand.New(rand.NewPCG(5, uint64(id)))
				for range each {
					time.Sleep(time.Duration(r.Int64N(int64(2 * time.Second))))
					s.mu.Lock()
					c, permit := m.Take(&Ask{Dialect: "chat", Affinity: uint64(id) + 1})
					all, _ := inflight(m)
					if n := float64(c.Deployment.Live.Inflight()); n > math.Ceil(boundedLoad*all/4) {
						t.Errorf("%s has %v of %v in flight", c.Deployment.Name(), n, all)
					}
					s.mu.Unlock()
					places[id][c.Deployment.Name()]++
					time.Sleep(time.Duration(r.Int64N(int64(2 * time.Second))))
					end(&permit, trace.ResultOK, 10)
				}
			})
		}
		s.all.Wait()
		kept := 0
		for _, p := range places {
			most := 0
			for _, n := range p {
				most = max(most, n)
			}
			kept += most
		}
		if share := float64(kept) / (sessions * each); share < 0.9 {
			t.Errorf("%.1f %% of a session stay on one deployment", 100*share)
		}
	})
}

// One that was slow is left alone, yet a probe finds it when it has recovered;
// what it is then given grows, and is never everything.
func TestARecoveredEngineIsFoundAndNotFlooded(t *testing.T) {
	for _, rate := range []float64{1, 3, 30} {
		synctest.Test(t, func(t *testing.T) {
			const recovers = 120 * time.Second
			m := modelBy(t, LowestLatency, "", "", "")
			s := simulate(m)
			ttft := func(i int) time.Duration {
				switch {
				case i > 0:
					return 400 * time.Millisecond
				case s.now() < recovers:
					return 10 * time.Second
				default:
					return 100 * time.Millisecond
				}
			}
			s.arrive(200*time.Second, rate, func(int) { s.request(Ask{Dialect: "chat"}, ttft, always(500*time.Millisecond)) })
			s.all.Wait()
			if share := s.share(0, 40*time.Second, recovers); share > 0.1 {
				t.Errorf("rate %v: while slow it gets %.2f", rate, share)
			}
			if share := s.share(0, 150*time.Second, 200*time.Second); share < 0.4 {
				t.Errorf("rate %v: 30 s after it has recovered it gets %.2f", rate, share)
			}
			for from := recovers; rate > 10 && from < 200*time.Second; from += 2 * time.Second {
				if share := s.share(0, from, from+2*time.Second); share > 0.8 {
					t.Errorf("rate %v: at %v it gets %.2f", rate, from, share)
				}
			}
		})
	}
}

func TestAnEngineThatBecomesFastDoesNotGetEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const turns = 60 * time.Second
		m := modelBy(t, LowestLatency, "", "", "", "")
		s := simulate(m)
		factor := func(i int) time.Duration {
			if i == 0 && s.now() >= turns {
				return 1
			}
			return 10
		}
		s.arrive(150*time.Second, 30, func(int) {
			s.request(Ask{Dialect: "chat"},
				func(i int) time.Duration { return factor(i) * 100 * time.Millisecond },
				func(i int) time.Duration { return factor(i) * 200 * time.Millisecond })
		})
		s.all.Wait()
		for i := range m.Deployments {
			if share := s.share(i, 20*time.Second, turns); math.Abs(share-0.25) > 0.07 {
				t.Errorf("alike, yet d%d gets %.2f", i, share)
			}
		}
		for from := turns; from < turns+10*time.Second; from += 2 * time.Second {
			if share := s.share(0, from, from+2*time.Second); share > 0.8 {
				t.Errorf("at %v it gets %.2f", from, share)
			}
		}
		for from := turns; from < 150*time.Second; from += 10 * time.Second {
			if share := s.share(0, from, from+10*time.Second); share > 0.97 {
				t.Errorf("for 10 s from %v it gets %.2f", from, share)
			}
		}
		if share := s.share(0, 90*time.Second, 150*time.Second); share < 0.5 {
			t.Errorf("30 s after it became fast it gets %.2f", share)
		}
	})
}

// Engines that differ by less than the buffer share the traffic.
func TestASmallDifferenceOfLatencyDecidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(modelBy(t, LowestLatency, "", ""))
		s.arrive(100*time.Second, 2, func(int) {
			s.request(Ask{Dialect: "chat"}, func(i int) time.Duration { return time.Duration(100+10*i) * time.Millisecond }, always(10*time.Millisecond))
		})
		s.all.Wait()
		if share := s.share(1, 10*time.Second, 100*time.Second); share < 0.35 {
			t.Errorf("the one that is 10 %% slower gets %.2f", share)
		}
	})
}

// One that hangs sends no first token; that it was waited for in vain is what says so.
func TestAnEngineThatHangsIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := modelBy(t, LowestLatency, "", "")
		s := simulate(m)
		hang := func(i int) time.Duration { return []time.Duration{time.Hour, 200 * time.Millisecond}[i] }
		s.arrive(100*time.Second, 10, func(int) { s.request(Ask{Dialect: "chat"}, hang, always(100*time.Millisecond)) })
		s.all.Wait()
		if share := s.share(0, 10*time.Second, 100*time.Second); share > 0.1 {
			t.Errorf("the one that hangs gets %.2f", share)
		}
	})
}
