package routing

import "tracegate/fallback"

// May says whether a caller may use a model, by its public name. A caller
// reaches no model by another's failure that it may not ask for.
type May func(model string) bool

// Fallbacks are the models that a failed one leaves its requests to, in order.
func (t *Table) Fallbacks(model string, may May) []string {
	if m, ok := t.byName[model]; ok {
		return t.permitted(m.Spec.Fallbacks, may)
	}
	return nil
}

// Longer are the models that take prompts which are too long for this one, in order.
func (t *Table) Longer(model string, may May) []string {
	if m, ok := t.byName[model]; ok {
		return t.permitted(m.Spec.ContextFallbacks, may)
	}
	return nil
}

// permitted are the public names of those models that may be used.
func (t *Table) permitted(names []string, may May) []string {
	var out []string
	for _, name := range names {
		if m, ok := t.byName[name]; ok && may(m.Name()) {
			out = append(out, m.Name())
		}
	}
	return out
}

// Split is the model that takes a prompt of so many tokens in m's place; m
// itself where there is none, or the caller may not use it.
func (t *Table) Split(m *Model, tokens int, may May) *Model {
	l := m.Spec.LongContext
	if l == nil || tokens <= l.OverTokens {
		return m
	}
	if long, ok := t.byName[l.Model]; ok && may(long.Name()) {
		return long
	}
	return m
}

// Route is what would happen to a request now, and why: GET /api/v1/route and
// the explain command show it.
type Route struct {
	Model  string     `json:"model"`  // the one that it would begin with
	Chosen *string    `json:"chosen"` // the deployment; null when none is free
	Chain  []LinkView `json:"chain"`  // the models in the order in which they are tried
}

// LinkView is one model of a chain.
type LinkView struct {
	Model       string          `json:"model"`
	Strategy    string          `json:"strategy"`
	Deployments []CandidateView `json:"deployments"`
}

// CandidateView is one deployment as a request would find it.
type CandidateView struct {
	Deployment string   `json:"deployment"`
	Score      *float64 `json:"score"`    // the lowest is best; null where it is excluded
	Excluded   *string  `json:"excluded"` // why it would get nothing; null where it may
}

// Route looks at the deployments as a request would; it takes no place. ok is
// false where there is no such model.
func (t *Table) Route(model string, a Ask, may May) (r Route, ok bool) {
	m, ok := t.byName[model]
	if !ok {
		return r, false
	}
	m = t.Split(m, a.Prompt, may)
	r.Model = m.Name()
	for _, name := range fallback.Chain(m.Name(), func(n string) []string { return t.Fallbacks(n, may) }) {
		link := t.byName[name]
		c := link.Peek(&a)
		view := LinkView{Model: name, Strategy: link.Strategy(), Deployments: make([]CandidateView, len(c.Considered))}
		for i, k := range c.Considered {
			v := CandidateView{Deployment: k.Deployment}
			if k.Excluded == "" {
				v.Score = &k.Score
			} else {
				v.Excluded = &k.Excluded
			}
			view.Deployments[i] = v
		}
		if c.Deployment != nil && r.Chosen == nil {
			name := c.Deployment.Name()
			r.Chosen = &name
		}
		r.Chain = append(r.Chain, view)
	}
	return r, true
}
