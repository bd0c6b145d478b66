package admin

import (
	"net/http"
	"strconv"
	"time"

	"tracegate/configs"
	"tracegate/routing"
)

// Explanation is what would happen to a request of a tenant, and by which
// limits. GET /api/v1/route and the explain command show it.
type Explanation struct {
	routing.Route
	Limits   LimitsView   `json:"limits"`
	Timeouts TimeoutsView `json:"timeouts"`
}

// LimitsView are a tenant's limits; null is none.
type LimitsView struct {
	RPM             *int64      `json:"rpm"`
	TPM             *int64      `json:"tpm"`
	Inflight        *int64      `json:"inflight"`
	Budget          *BudgetView `json:"budget"`
	MaxTokens       *int64      `json:"max_tokens"`
	MaxPromptTokens *int64      `json:"max_prompt_tokens"`
}

// BudgetView is spending per calendar time.
type BudgetView struct {
	Amount float64 `json:"amount"`
	Per    string  `json:"per"`
}

// TimeoutsView are the limits of the deployment that would be chosen, else the
// global ones, in milliseconds; 0 is no limit. FirstToken is that of the prompt.
type TimeoutsView struct {
	Connect    int64 `json:"connect_ms"`
	FirstToken int64 `json:"first_token_ms"`
	Idle       int64 `json:"idle_ms"`
	Total      int64 `json:"total_ms"`
	WriteStall int64 `json:"write_stall_ms"`
}

// Question is a request that does not exist.
type Question struct {
	Model        string
	Tenant       string // "" = one that may use every model and has no limit
	Dialect      string // "" = any
	PromptTokens int
}

// Explain answers a question by a configuration and the table made of it. The
// error says what there is none of.
func Explain(cfg *configs.Config, table *routing.Table, q Question) (e Explanation, err error) {
	may := func(string) bool { return true }
	if q.Tenant != "" {
		g := grantsOf(cfg, q.Tenant)
		if g == nil {
			return e, unknownName("tenant", q.Tenant)
		}
		may = func(model string) bool { return g.Allows(cfg, model) }
		e.Limits = limitsView(g)
	}
	route, ok := table.Route(q.Model, routing.Ask{Dialect: q.Dialect, Prompt: q.PromptTokens}, may)
	if !ok {
		return e, unknownName("model", q.Model)
	}
	if m, _ := table.Model(q.Model); !may(m.Name()) {
		return e, forbiddenModel{tenant: q.Tenant, model: m.Name()}
	}
	e.Route = route
	timeouts := cfg.Timeouts
	if route.Chosen != nil {
		if d, ok := table.Find(*route.Chosen); ok {
			timeouts = d.Spec.Timeouts
		}
	}
	e.Timeouts = timeoutsView(timeouts, q.PromptTokens)
	return e, nil
}

type unknown struct{ what, name string }

func unknownName(what, name string) error { return unknown{what, name} }

func (u unknown) Error() string {
	return "there is no " + u.what + " " + u.what + "=" + strconv.Quote(u.name)
}

type forbiddenModel struct{ tenant, model string }

func (f forbiddenModel) Error() string {
	return "tenant=" + f.tenant + " may not use model=" + f.model
}

func grantsOf(cfg *configs.Config, tenant string) *configs.Grants {
	for i := range cfg.Tenants {
		if cfg.Tenants[i].Name == tenant {
			return &cfg.Tenants[i].Grants
		}
	}
	if tenant == anonymousTenant && cfg.Anonymous.Allow {
		return &cfg.Anonymous.Grants
	}
	return nil
}

const anonymousTenant = "anonymous"

func limitsView(g *configs.Grants) LimitsView {
	v := LimitsView{RPM: some(g.Limits.RPM), TPM: some(g.Limits.TPM), Inflight: some(int64(g.Limits.Inflight)),
		MaxTokens: some(g.MaxTokens), MaxPromptTokens: some(int64(g.MaxPromptTokens))}
	if b := g.Limits.Budget; b != nil {
		v.Budget = &BudgetView{Amount: b.Amount, Per: b.Per}
	}
	return v
}

// some is nil for 0, which is no limit.
func some(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

func timeoutsView(t configs.Timeouts, prompt int) TimeoutsView {
	ms := func(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
	return TimeoutsView{Connect: ms(t.Connect), FirstToken: ms(t.FirstTokenFor(prompt)), Idle: ms(t.Idle), Total: ms(t.Total), WriteStall: ms(t.WriteStall)}
}

func (a *api) route(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	for name := range q {
		switch name {
		case "model", "tenant", "prompt_tokens", "dialect":
		default:
			refuse(w, http.StatusBadRequest, "unknown parameter "+strconv.Quote(name)+", allowed are model, tenant, prompt_tokens, dialect")
			return
		}
	}
	ask := Question{Model: q.Get("model"), Tenant: q.Get("tenant"), Dialect: q.Get("dialect")}
	if ask.Model == "" {
		refuse(w, http.StatusBadRequest, "model is missing, it is needed here")
		return
	}
	if text := q.Get("prompt_tokens"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			refuse(w, http.StatusBadRequest, "prompt_tokens="+strconv.Quote(text)+" is not a number, allowed are 0 and more")
			return
		}
		ask.PromptTokens = n
	}
	e, err := Explain(a.Config(), a.Table(), ask)
	switch err.(type) {
	case nil:
		reply(w, http.StatusOK, e)
	case forbiddenModel:
		refuse(w, http.StatusForbidden, err.Error())
	default:
		refuse(w, http.StatusNotFound, err.Error())
	}
}
