package routing

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tracegate/fallback"
	"tracegate/trace"
)

var (
	pressed = fallback.Outcome{Kind: fallback.Pressure, Verdict: fallback.Backpressure, Status: 429, Message: "busy", RetryAfter: 4 * time.Second}
	failed  = fallback.Outcome{Kind: fallback.Status5xx, Verdict: fallback.Fault, Status: 500, Message: "oops"}
	leaving = fallback.Outcome{Kind: fallback.Draining, Verdict: fallback.None, Status: 500, Message: "shutdown"}
)

// fails ends n attempts at a deployment so.
func fails(d *Deployment, n int, o fallback.Outcome) {
	var permits []Permit
	for range n {
		permits = append(permits, place(d))
	}
	for i := range permits {
		permits[i].End(End{Result: ResultOf(o.Kind, o.Verdict), Outcome: o, Prompt: -1, Output: -1})
	}
}

func TestTheFirstReasonIsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := modelBy(t, LeastInflight,
			"weight: 0, dialects: [messages]", "dialects: [messages], max_prompt_tokens: 10", "max_prompt_tokens: 10",
			"", "", "max_inflight: 8", "", "max_inflight: 8", "max_inflight: 1", "")
		d := m.Deployments
		fails(d[2], 4, pressed)
		fails(d[3], 1, pressed)
		fails(d[4], 4, failed)
		fails(d[5], 1, pressed)
		load(d[7], 7)
		fails(d[7], 1, leaving)
		load(d[8], 1)
		d[9].Live.Drain()
		a := &Ask{Dialect: "chat", Prompt: 11, Visited: []*Deployment{d[2], d[3]}}
		want := "draining dialect prompt_too_long visited open cooling - draining full draining "
		got := ""
		for _, k := range m.Pick(a).Considered {
			if k.Excluded == "" {
				k.Excluded = "-"
			}
			got += k.Excluded + " "
		}
		equal(t, "excluded", got, want)
		a.Tried = true
		equal(t, "visited ones count again", m.Pick(a).Considered[3].Excluded, ExcludedCooling)
		time.Sleep(4 * time.Second)
		equal(t, "its patience is over", m.Pick(a).Considered[3].Excluded, "")
	})
}

func TestVisitedOnesAreKnownInANewTable(t *testing.T) {
	before := table(t, nil, "", "")
	after := model(t, table(t, before, "", ""))
	c := after.Pick(&Ask{Dialect: "chat", Visited: model(t, before).Deployments[:1]})
	equal(t, "excluded", c.Considered[0].Excluded, ExcludedVisited)
	equal(t, "picked", c.Deployment.Name(), "d1")
}

func TestAnEmptyChoiceSaysWhatMayChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := modelBy(t, LeastInflight, "cooldown: {time: 7s}", "", "max_inflight: 1", "dialects: [messages]", "")
		d := m.Deployments
		fails(d[0], 4, failed)
		fails(d[1], 1, pressed)
		load(d[2], 1)
		d[4].Live.Drain()
		began := time.Now()
		time.Sleep(1500 * time.Millisecond)
		none := m.Pick(chat(0))
		if none.Deployment != nil {
			t.Fatalf("picked %s", none.Deployment.Name())
		}
		equal(t, "soonest", none.Soonest.Sub(began), 4*time.Second)
		equal(t, "full", none.Full, true)
		equal(t, "visited", none.Visited, false)
		equal(t, "reasons", none.WhyNone(), "d0: open for 6s, d1: cooling for 3s, d2: full, d3: dialect, d4: draining")

		none = m.Pick(&Ask{Dialect: "messages", Visited: d})
		equal(t, "all visited", fmt.Sprint(none.Deployment == nil, none.Visited, none.Full, none.Soonest.IsZero()), "true true false true")
		none = m.Pick(&Ask{Dialect: "embeddings"})
		equal(t, "nothing may change", fmt.Sprint(none.Visited, none.Full, none.Soonest.IsZero()), "false false true")
		equal(t, "with a deployment nothing is said", m.Pick(&Ask{Dialect: "messages"}).Full, false)
	})
}

func TestTheOneDueSoonestIsProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := modelBy(t, LeastInflight, "cooldown: {time: 20s}", "cooldown: {time: 7s}", "", "max_inflight: 1, cooldown: {time: 1s, allowed_fails: 1}", "cooldown: {time: 1s}")
		d := m.Deployments
		fails(d[0], 4, failed)
		fails(d[1], 4, failed)
		d[2].Live.Drain()
		fails(d[3], 1, failed)
		fails(d[4], 4, failed)
		a := &Ask{Dialect: "chat", Visited: d[4:]}
		var probes []Permit
		got := ""
		for range 4 {
			c, p := m.Probe(a)
			if c.Deployment == nil {
				got += "- " + c.WhyNone()
				break
			}
			got += c.Deployment.Name() + " "
			probes = append(probes, p)
		}
		equal(t, "probed", got, "d3 d1 d0 - d0: open, d1: open, d2: draining, d3: open, d4: visited")
		equal(t, "considered as by Pick", fmt.Sprint(m.Pick(a).Considered), "[{d0 0 open} {d1 0 open} {d2 0 draining} {d3 0 open} {d4 0 visited}]")
		for i := range probes {
			probes[i].Content(time.Second)
			end(&probes[i], trace.ResultOK, 1)
		}
		for _, d := range d {
			equal(t, "in flight at "+d.Name(), d.Live.Inflight(), 0)
		}
		equal(t, "they answer again", m.Pick(a).Deployment != nil, true)
	})
}

func TestAProbeNeedsAPlaceToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := modelBy(t, LeastInflight, "max_inflight: 5")
		load(m.Deployments[0], 1)
		fails(m.Deployments[0], 4, failed)
		m.Deployments[0].Live.inflight.Add(4) // begun before it opened
		c, _ := m.Probe(chat(0))
		equal(t, "without room", c.Deployment == nil, true)
		m.Deployments[0].Live.inflight.Add(-4)
		c, p := m.Probe(chat(0))
		equal(t, "with room", c.Deployment != nil, true)
		p.Content(-1)
		end(&p, trace.ResultOK, 1)
	})
}

func TestAHalfOpenGateTakesOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := modelBy(t, LeastInflight, "cooldown: {time: 1s}")
		fails(m.Deployments[0], 4, failed)
		time.Sleep(time.Second)
		c, trial := m.Take(chat(0))
		equal(t, "the trial", c.Deployment.Name(), "d0")
		c, _ = m.Take(chat(0))
		equal(t, "the next", c.WhyNone(), "d0: open")
		trial.Content(0)
		equal(t, "after its content", m.Pick(chat(0)).Deployment != nil, true)
		end(&trial, trace.ResultOK, 1)
	})
}
