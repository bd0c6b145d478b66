package routing

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tracegate/trace"
)

// fields lists the paths of all fields of a JSON value, objects in arrays by their first element.
func fields(prefix string, v any) (out []string) {
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			out = append(out, prefix+name)
			out = append(out, fields(prefix+name+".", x)...)
		}
	case []any:
		if len(v) > 0 {
			out = fields(prefix, v[0])
		}
	}
	slices.Sort(out)
	return out
}

// TestStateHasThePublicFields: these names are an interface. Add one here when the state gets one.
func TestStateHasThePublicFields(t *testing.T) {
	all := table(t, nil, "")
	model(t, all).Deployments[0].Live.Remember("cut", 502, "gone")
	text, err := json.Marshal(all.State())
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(`name strategy queue queue.waiting queue.max_waiting deployments`)
	for _, f := range strings.Fields(`name model track state since until reason
		cooldown_story last_faults last_faults.time last_faults.kind last_faults.status last_faults.message
		inflight queue weight share share.requests share.tokens
		counts counts.ok counts.fault counts.backpressure counts.client_error counts.client_abort
		ttft_ms ttft_ms.p50 ttft_ms.p99 tbt_ms tbt_ms.p50 tbt_ms.p99
		engine engine.fresh engine.running engine.waiting engine.kv_used engine.prefix_hit engine.version
		capabilities capabilities.dialects capabilities.headers_first capabilities.abort capabilities.cached_tokens`) {
		want = append(want, "deployments."+f)
	}
	slices.Sort(want)
	equal(t, "fields", strings.Join(fields("", v), "\n"), strings.Join(want, "\n"))
}

func TestStateOfAFreshDeployment(t *testing.T) {
	all := table(t, nil, "track: canary, weight: 3, dialects: [chat, messages]")
	s := all.State()[0]
	equal(t, "model", s.Name, "m")
	equal(t, "strategy", s.Strategy, "least_inflight")
	d := s.Deployments[0]
	equal(t, "name and model", d.Name+" "+d.Model, "d0 m")
	equal(t, "track", d.Track, "canary")
	equal(t, "state", d.State, "ready")
	equal(t, "weight", d.Weight, 3)
	for _, dialect := range []string{"chat", "messages"} {
		equal(t, "speaks "+dialect, slices.Contains(d.Capabilities.Dialects, dialect), true)
	}
	equal(t, "since is UTC", d.Since.Location(), time.UTC)

	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"until":null`, `"reason":null`, `"last_faults":[]`, `"share":{"requests":null,"tokens":null}`,
		`"ttft_ms":{"p50":null,"p99":null}`, `"engine":{"fresh":false,"running":null,"waiting":null`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("what nobody measured must be null, never 0: %s is not in %s", part, text)
		}
	}
}

func TestSharesAreOfTheModelsTraffic(t *testing.T) {
	all := table(t, nil, "", "", "")
	m := model(t, all)
	for i, tokens := range []int64{30, 10, 10, 50} {
		permit := place(m.Deployments[i%2])
		end(&permit, trace.ResultOK, tokens)
	}
	s := all.State()[0].Deployments
	for i, want := range [][2]float64{{0.5, 0.4}, {0.5, 0.6}, {0, 0}} {
		equal(t, s[i].Name+" requests", *s[i].Share.Requests, want[0])
		equal(t, s[i].Name+" tokens", *s[i].Share.Tokens, want[1])
	}
}

func TestSharesOfTokensCountKnownUsageOnly(t *testing.T) {
	all := table(t, nil, "", "", "")
	m := model(t, all)
	end := func(i int, tokens int64) {
		permit := place(m.Deployments[i])
		end(&permit, trace.ResultOK, tokens)
	}
	tokens := func() string {
		got := ""
		for _, d := range all.State()[0].Deployments {
			if d.Share.Tokens == nil {
				got += "null "
				continue
			}
			got += fmt.Sprint(*d.Share.Tokens, " ")
		}
		return got
	}
	end(0, -1)
	equal(t, "nobody told any", tokens(), "null null null ")
	end(1, 30)
	equal(t, "the second told its own", tokens(), "null 1 0 ")
	end(0, 10)
	end(0, -1)
	equal(t, "the first told some", tokens(), "0.25 0.75 0 ")
}

func TestADeploymentWithoutWeightDrains(t *testing.T) {
	d := table(t, nil, "weight: 0", "").State()[0].Deployments
	equal(t, "weight 0", d[0].State, "draining")
	equal(t, "weight 1", d[1].State, "ready")
}

func TestCollectorShowsTheTableInForce(t *testing.T) {
	current := table(t, nil, "", "")
	load(model(t, current).Deployments[1], 3)
	fails(model(t, current).Deployments[1], 1, pressed)
	c := NewCollector(func() *Table { return current })
	problems, err := testutil.CollectAndLint(c)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	expect := func(series ...string) {
		t.Helper()
		all, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, family := range all {
			for _, m := range family.GetMetric() {
				s := family.GetName()
				for _, l := range m.GetLabel() {
					s += " " + l.GetValue()
				}
				if v := m.GetGauge().GetValue() + m.GetCounter().GetValue(); v != 0 || family.GetName() == "llm_queue_depth" {
					got = append(got, fmt.Sprint(s, " ", v))
				}
			}
		}
		equal(t, "series", strings.Join(got, "\n"), strings.Join(series, "\n"))
	}
	expect("llm_cooldowns_total d1 backpressure 1",
		"llm_deployment_state d0 ready 1", "llm_deployment_state d1 cooling 1",
		"llm_inflight_requests d1 m 3", "llm_queue_depth m 0")
	equal(t, "series with zeros", testutil.CollectAndCount(c), 2*3+2*7+2+1)
	current = table(t, current, "")
	expect("llm_deployment_state d0 ready 1", "llm_queue_depth m 0")
	equal(t, "series with zeros", testutil.CollectAndCount(c), 3+7+1+1)
}
