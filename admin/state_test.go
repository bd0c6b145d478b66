package admin

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tracegate/routing"
)

// names lists the field names of a JSON object.
func names(v any) string {
	var out []string
	for name := range v.(map[string]any) {
		out = append(out, name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestStateHasThePublicFields(t *testing.T) {
	r := newRig(t, nil)
	v := r.get("/api/v1/state").object()
	equal(t, "state", names(v), "fallbacks gateway limiter models tenants")
	equal(t, "gateway", names(v["gateway"]), "draining ready start_time version")
	model := v["models"].([]any)[0]
	equal(t, "model", names(model), "deployments name queue strategy")
	equal(t, "queue", names(model.(map[string]any)["queue"]), "max_waiting waiting")
	equal(t, "deployment", names(model.(map[string]any)["deployments"].([]any)[0]),
		"capabilities cooldown_story counts engine inflight last_faults model name queue reason share since state tbt_ms track ttft_ms until weight")
	equal(t, "tenant", names(v["tenants"].([]any)[0]), "blocked inflight name")
	equal(t, "limiter", names(v["limiter"]), "mode")
	equal(t, "fallbacks", len(v["fallbacks"].([]any)), 0)
}

func TestStateIsThatOfTheMoment(t *testing.T) {
	r := newRig(t, nil)
	m, _ := r.table.Model("public")
	permit, _ := m.Deployments[1].Begin()
	r.tenants.Tenants()[0].Begin()
	r.draining.Store(true)
	r.ready.Store(false)

	var s struct {
		Gateway struct {
			Version         string
			StartTime       string `json:"start_time"`
			Ready, Draining bool
		}
		Models []struct {
			Name, Strategy string
			Deployments    []struct {
				Name, State      string
				Inflight, Weight int
			}
		}
		Tenants []struct {
			Name     string
			Inflight int
			Blocked  bool
		}
		Limiter struct{ Mode string }
	}
	a := r.get("/api/v1/state").is(http.StatusOK)
	if err := json.Unmarshal([]byte(a.body), &s); err != nil {
		t.Fatal(err)
	}
	equal(t, "version", s.Gateway.Version, "v1.2.3")
	equal(t, "start", s.Gateway.StartTime, "2026-11-30T12:00:00Z")
	equal(t, "ready", s.Gateway.Ready, false)
	equal(t, "draining", s.Gateway.Draining, true)
	equal(t, "model", s.Models[0].Name+" "+s.Models[0].Strategy, "public least_inflight")
	equal(t, "weight of d1", s.Models[0].Deployments[0].Weight, 3)
	equal(t, "in flight at d2", s.Models[0].Deployments[1].Inflight, 1)
	equal(t, "state of d2", s.Models[0].Deployments[1].State, "ready")
	equal(t, "tenants", s.Tenants[0].Name+" "+s.Tenants[1].Name, "team anonymous")
	equal(t, "in flight of team", s.Tenants[0].Inflight, 1)
	equal(t, "mode", s.Limiter.Mode, "local")

	permit.End(routing.End{Result: "ok", Prompt: -1, Output: 1})
	r.tenants.Tenants()[0].End()
	a = r.get("/api/v1/state")
	if strings.Contains(a.body, `"inflight":1`) {
		t.Errorf("still in flight: %s", a.body)
	}
}
