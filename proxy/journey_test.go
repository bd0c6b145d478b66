package proxy

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tracegate/bench/fakeengine"
)

// TestNoJourneyIsEndless: on random graphs of models, cycles among them, with
// engines that fail at random and clients that leave, no request makes more
// attempts than it may, none takes longer than its limit, and every place is
// given back (the rig checks that at its end).
func TestNoJourneyIsEndless(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomJourneys(t, rand.New(rand.NewPCG(7, seed))) })
		})
	}
}

const journeyEngines = 4

func randomJourneys(t *testing.T, random *rand.Rand) {
	most, total := 1+random.IntN(6), time.Duration(1+random.IntN(60))*time.Second
	policy := []string{"fail", "probe_soonest", "wait"}[random.IntN(3)]
	r := newRig(t, setup{memory: true, engines: journeyEngines, models: randomModels(random), config: fmt.Sprintf(
		"keepalive: %ds\nretry: {max_attempts: %d, budget_ratio: %d}\ntimeouts: {first_token: 7s, total: %s}\ncooldown: {allowed_fails: 2, when_all_cooling: %s}\n",
		random.IntN(3)*5, most, random.IntN(3), total, policy)})
	for _, e := range r.engines {
		e.Script(randomFaults(random)...)
	}
	const requests = 30
	for i := range requests {
		d := dialects[random.IntN(len(dialects))]
		body := strings.Replace(d.body(random.IntN(2) == 0, "FAKE-TOKENS-3"), "public", fmt.Sprintf("m%d", random.IntN(journeyEngines)), 1)
		c := r.send(d.path, body)
		go io.Copy(io.Discard, c)
		if i%7 == 3 {
			time.AfterFunc(time.Duration(random.IntN(9000))*time.Millisecond, func() { _ = c.Close() })
		}
		<-time.After(time.Duration(random.IntN(2000)) * time.Millisecond)
	}
	<-time.After(total + farewell)
	for range requests {
		rec := r.record()
		if len(rec.Attempts) > most {
			t.Errorf("%d attempts of at most %d", len(rec.Attempts), most)
		}
		if took, ok := rec.Duration(); ok && took > total+farewell {
			t.Errorf("took %v of at most %v", took, total)
		}
	}
	<-time.After(time.Minute) // whoever an engine still counts has been let go
	for i, e := range r.engines {
		equal(t, fmt.Sprint("running at engine ", i+1), e.Running(), 0)
	}
}

// randomModels are m0 to m3, each with one to three deployments and any edges between them.
func randomModels(random *rand.Rand) string {
	var b strings.Builder
	for i := range journeyEngines {
		fmt.Fprintf(&b, "\n  - name: m%d\n    queue: {max_waiting: %d, max_wait: 3s}\n", i, random.IntN(4))
		for _, key := range []string{"fallbacks", "context_fallbacks"} {
			var to []string
			for j := range journeyEngines {
				if j != i && random.IntN(2) == 0 {
					to = append(to, fmt.Sprint("m", j))
				}
			}
			fmt.Fprintf(&b, "    %s: [%s]\n", key, strings.Join(to, ", "))
		}
		b.WriteString("    deployments:\n")
		for n := range 1 + random.IntN(3) {
			fmt.Fprintf(&b, "      - {name: m%dd%d, base_url: \"{e%d}\", model: served, max_inflight: %d}\n", i, n, 1+random.IntN(journeyEngines), 1+random.IntN(3))
		}
	}
	return b.String()
}

// randomFaults make an engine fail now and then.
func randomFaults(random *rand.Rand) []fakeengine.Fault {
	kinds := []fakeengine.Fault{
		{Kind: fakeengine.FIN, Before: true}, {Kind: fakeengine.RST}, {Kind: fakeengine.FIN, After: 1}, {Kind: fakeengine.Hang},
		{Kind: fakeengine.Hang, Before: true}, {Kind: fakeengine.Status, Status: 500}, {Kind: fakeengine.Admission}, {Kind: fakeengine.Draining},
		{Kind: fakeengine.Status, Status: 429, Header: map[string]string{"Retry-After": "2"}}, {Kind: fakeengine.EarlyEnd},
		{Kind: fakeengine.Status, Status: 400, Body: `{"error":{"message":"maximum context length is 5 tokens"}}`},
		{Kind: fakeengine.Status, Status: 400, Body: `{"error":{"message":"bad"}}`},
	}
	var script []fakeengine.Fault
	for range random.IntN(8) {
		f := kinds[random.IntN(len(kinds))]
		f.Skip, f.Times = random.IntN(6), 1+random.IntN(4)
		script = append(script, f)
	}
	return script
}
