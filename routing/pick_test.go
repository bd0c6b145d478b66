package routing

import (
	"fmt"
	"strings"
	"testing"

	"tracegate/trace"
)

// picks takes n places, one after the other, and writes where they went; with keep they stay taken.
func picks(m *Model, n int, keep bool) string {
	var names []string
	for range n {
		c := m.Pick(&Ask{Dialect: "chat"})
		if c.Deployment == nil {
			names = append(names, "-")
			continue
		}
		names = append(names, c.Deployment.Name())
		permit := place(c.Deployment)
		if !keep {
			end(&permit, trace.ResultOK, 1)
		}
	}
	return strings.Join(names, " ")
}

func TestTheLeastLoadedPerWeightIsPicked(t *testing.T) {
	for _, c := range []struct {
		name        string
		deployments []string
		inflight    []int
		want        string
	}{
		{"fewest in flight", []string{"", "", ""}, []int{2, 1, 3}, "d1"},
		{"twice the weight bears twice the load", []string{"weight: 1", "weight: 2"}, []int{1, 2}, "d1"},
		{"but not more", []string{"weight: 1", "weight: 2"}, []int{1, 4}, "d0"},
		{"idle, the heavier first", []string{"weight: 1", "weight: 3"}, []int{0, 0}, "d1"},
		{"one is left", []string{"weight: 0", "dialects: [messages]", "max_inflight: 1", ""}, []int{0, 0, 1, 50}, "d3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := model(t, table(t, nil, c.deployments...))
			for i, n := range c.inflight {
				load(m.Deployments[i], n)
			}
			for range 5 { // whoever's turn it is
				equal(t, "picked", m.Pick(&Ask{Dialect: "chat"}).Deployment.Name(), c.want)
			}
		})
	}
}

func TestLoadSpreadsByWeight(t *testing.T) {
	m := model(t, table(t, nil, "weight: 1", "weight: 2", "weight: 5"))
	picks(m, 80, true)
	for i, want := range []int64{10, 20, 50} {
		equal(t, fmt.Sprint("in flight at d", i), m.Deployments[i].Live.Inflight(), want)
	}
}

func TestTiesGoInTurn(t *testing.T) {
	for _, c := range []struct {
		name        string
		deployments []string
		want        map[string]int
	}{
		{"all alike", []string{"", "", ""}, map[string]int{"d0": 20, "d1": 20, "d2": 20}},
		{"an excluded one leaves its turns to all others", []string{"", "weight: 0", "", ""}, map[string]int{"d0": 20, "d2": 20, "d3": 20}},
		{"so does a lighter one", []string{"weight: 1", "weight: 2", "weight: 2"}, map[string]int{"d1": 30, "d2": 30}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := map[string]int{}
			for name := range strings.FieldsSeq(picks(model(t, table(t, nil, c.deployments...)), 60, false)) {
				got[name]++
			}
			equal(t, "sequential requests", fmt.Sprint(got), fmt.Sprint(c.want))
		})
	}
}

func TestTurnsSurviveRequestsThatHaveNoChoice(t *testing.T) {
	m := model(t, table(t, nil, "dialects: [chat, messages]", "dialects: [chat]"))
	got := map[string]int{}
	for range 20 {
		got[m.Pick(&Ask{Dialect: "chat"}).Deployment.Name()]++
		equal(t, "messages", m.Pick(&Ask{Dialect: "messages"}).Deployment.Name(), "d0")
	}
	equal(t, "chat", fmt.Sprint(got), "map[d0:10 d1:10]")
}

func TestEveryDeploymentIsConsideredInTheOrderOfTheFile(t *testing.T) {
	m := model(t, table(t, nil, "weight: 0", "dialects: [messages]", "max_inflight: 2", "max_inflight: 2", "weight: 4"))
	load(m.Deployments[2], 2)
	load(m.Deployments[3], 1)
	load(m.Deployments[4], 3)
	for range 7 {
		c := m.Pick(&Ask{Dialect: "chat"})
		equal(t, "considered", fmt.Sprint(c.Considered), "[{d0 0 draining} {d1 0 dialect} {d2 0 full} {d3 2 } {d4 1 }]")
		equal(t, "picked", c.Deployment.Name(), "d4")
	}
}

func TestAnEmptyChoiceSaysWhy(t *testing.T) {
	m := model(t, table(t, nil, "weight: 0", "dialects: [messages]", "max_inflight: 1"))
	load(m.Deployments[2], 1)
	c := m.Pick(&Ask{Dialect: "chat"})
	if c.Deployment != nil {
		t.Fatalf("picked %s", c.Deployment.Name())
	}
	equal(t, "reasons", c.WhyNone(), "d0: draining, d1: dialect, d2: full")
}

func TestAPlaceGivenBackIsFreeAgain(t *testing.T) {
	m := model(t, table(t, nil, "max_inflight: 1"))
	permit := place(m.Pick(&Ask{Dialect: "chat"}).Deployment)
	equal(t, "full", picks(m, 1, false), "-")
	end(&permit, trace.ResultOK, 5)
	equal(t, "free", picks(m, 1, false), "d0")
}

func BenchmarkPick(b *testing.B) {
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprint(n, "-deployments"), func(b *testing.B) {
			m := model(b, table(b, nil, make([]string, n)...))
			for i, d := range m.Deployments {
				load(d, i%5)
			}
			b.ReportAllocs()
			for b.Loop() {
				if m.Pick(&Ask{Dialect: "chat"}).Deployment == nil {
					b.Fatal("nothing picked")
				}
			}
		})
	}
}
