package admin

import (
	"net/http"
	"time"

	"tracegate/fallback"
	"tracegate/routing"
)

type gatewayState struct {
	Version   string    `json:"version"`
	StartTime time.Time `json:"start_time"`
	Ready     bool      `json:"ready"`
	Draining  bool      `json:"draining"`
}

type tenantState struct {
	Name     string `json:"name"`
	Inflight int64  `json:"inflight"`
	Blocked  bool   `json:"blocked"`
}

type limiterState struct {
	Mode string `json:"mode"`
}

type fullState struct {
	Gateway   gatewayState         `json:"gateway"`
	Models    []routing.ModelState `json:"models"`
	Fallbacks []fallback.Edge      `json:"fallbacks"`
	Tenants   []tenantState        `json:"tenants"`
	Limiter   limiterState         `json:"limiter"`
}

func (a *api) state(w http.ResponseWriter, _ *http.Request) {
	s := fullState{
		Gateway:   gatewayState{Version: a.Version, StartTime: a.Started.UTC(), Ready: a.Ready(), Draining: a.Draining()},
		Models:    a.Table().State(),
		Fallbacks: a.Edges.All(),
		Tenants:   []tenantState{},
		Limiter:   limiterState{Mode: "local"},
	}
	for _, t := range a.Tenants().Tenants() {
		s.Tenants = append(s.Tenants, tenantState{Name: t.Name, Inflight: t.Inflight()})
	}
	reply(w, http.StatusOK, s)
}
