package configs

import (
	"fmt"
	"slices"
	"strings"
)

// names checks that no two models, aliases or deployments have the same name.
func (v *validator) names() {
	seen := map[string]string{}
	claim := func(path, name string) {
		if name != "" {
			v.claim(seen, path, name, "model, alias or deployment")
		}
	}
	for i := range v.cfg.Models {
		m := &v.cfg.Models[i]
		path := fmt.Sprintf("models[%d]", i)
		claim(path+".name", m.Name)
		for j, alias := range m.Aliases {
			claim(fmt.Sprintf("%s.aliases[%d]", path, j), alias)
		}
		for j := range m.Deployments {
			claim(fmt.Sprintf("%s.deployments[%d].name", path, j), m.Deployments[j].Name)
		}
	}
}

// claim takes the name for the path. seen has who took the others.
func (v *validator) claim(seen map[string]string, path, name, what string) {
	if first, ok := seen[name]; ok {
		v.errorf(path, "the name %q is taken by %s, allowed is one %s of a name", name, first, what)
		return
	}
	seen[name] = path
}

func (v *validator) model(m *Model, path string) {
	v.required(path+".name", m.Name)
	if len(m.Deployments) == 0 {
		v.errorf(path+".deployments", "the model has no deployment, at least one is needed")
	}
	if len(m.Aliases) > 0 && len(m.Deployments) == 1 && m.Deployments[0].Name != "" {
		v.warnf(path+".aliases", "an alias to a single deployment: nothing takes over when %s fails", m.Deployments[0].Name)
	}
	v.weights(m, path)
	for j := range m.Deployments {
		v.upstream(&m.Deployments[j], fmt.Sprintf("%s.deployments[%d]", path, j))
	}
	v.references(path+".fallbacks", m.Fallbacks)
	v.references(path+".context_fallbacks", m.ContextFallbacks)
	if l := m.LongContext; l != nil {
		if v.required(path+".long_context.model", l.Model) {
			v.reference(path+".long_context.model", l.Model)
			if v.cfg.Model(l.Model) == m {
				v.errorf(path+".long_context.model", "%q is this model itself, allowed is another one", l.Model)
			}
		}
		if l.OverTokens == 0 {
			v.missing(path + ".long_context.over_tokens")
		}
	}
	v.canary(m, path)
	if s := m.SLO; s != nil && s.TTFT == 0 && s.TBT == 0 {
		v.warnf(path+".slo", "it has no effect without ttft or tbt")
	}
}

func (v *validator) weights(m *Model, path string) {
	sum := 0
	for j := range m.Deployments {
		at := fmt.Sprintf("%s.deployments[%d].weight", path, j)
		if v.d.bad[at] {
			return
		}
		sum += m.Deployments[j].Weight
		if m.Deployments[j].Weight == 0 && len(m.Deployments) > 1 {
			v.warnf(at, "weight 0: %s gets no requests", m.Deployments[j].Name)
		}
	}
	if sum == 0 && len(m.Deployments) > 0 {
		v.errorf(path+".deployments", "every weight is 0, at least one deployment needs a weight of 1 or more")
	}
}

func (v *validator) canary(m *Model, path string) {
	tracks := map[string]int{}
	for j := range m.Deployments {
		tracks[m.Deployments[j].Track]++
	}
	switch {
	case len(m.Deployments) == 0:
	case m.Canary != nil && tracks["canary"] == 0:
		v.warnf(path+".canary", "it has no effect: no deployment has track canary")
	case m.Canary != nil && tracks["stable"] == 0:
		v.warnf(path+".canary", "it has no effect: no deployment has track stable to compare with")
	}
}

func (v *validator) upstream(d *Deployment, path string) {
	v.required(path+".name", d.Name)
	v.required(path+".base_url", d.BaseURL)
	v.timeouts(path, d.Timeouts)
	v.cooldown(path, d.Cooldown)
	if d.URL != nil {
		v.baseURL(d, path)
	}
	v.credential(d, path)
	if r := d.Replicas; r != nil && r.Min > r.Max {
		v.errorf(path+".replicas", "min=%d is more than max=%d, allowed is min up to max", r.Min, r.Max)
	}
	if v.written(path+".dialects") && len(d.Dialects) == 0 {
		v.errorf(path+".dialects", "the list is empty, allowed are chat, completions, messages, responses, embeddings, other")
	}
	if d.TLS != nil {
		v.roots(path+".tls.ca", d.TLS.CA)
		if d.TLS.Insecure && d.TLS.CA != "" {
			v.warnf(path+".tls.ca", "it has no effect with insecure")
		}
	}
	v.httpURL(path+".metrics_url", d.MetricsURL)
	v.httpURL(path+".proxy_url", d.ProxyURL)
	if g := d.GPUs; g != nil {
		if v.required(path+".gpus.dcgm_url", g.DCGMURL.Reveal()) {
			v.httpURL(path+".gpus.dcgm_url", g.DCGMURL)
		}
	}
}

func (v *validator) baseURL(d *Deployment, path string) {
	if d.URL.Scheme == "http" && d.TLS != nil {
		v.warnf(path+".tls", "it has no effect: base_url is not https")
	}
	for _, route := range []string{"/chat/completions", "/completions", "/messages", "/responses", "/embeddings"} {
		if strings.HasSuffix(d.URL.Path, route) {
			v.warnf(path+".base_url", "it ends in %s; the gateway appends that itself, write the URL up to there", route)
			return
		}
	}
}

func (v *validator) credential(d *Deployment, path string) {
	switch {
	case d.APIKey != "" && (d.Auth == "none" || d.Auth == "passthrough"):
		v.warnf(path+".api_key", "it has no effect with auth: %s", d.Auth)
	case d.APIKey == "" && v.written(path+".api_key"):
		v.warnf(path+".api_key", "it is empty: no credential is sent")
	case d.APIKey == "" && d.Profile.Hosted && (d.Auth == "bearer" || d.Auth == "x-api-key"):
		v.warnf(path+".api_key", "it is missing, and engine %s wants a credential", d.Engine)
	}
}

// references checks a list of model names.
func (v *validator) references(path string, names []string) {
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", path, i)
		v.reference(at, name)
		if slices.Contains(names[:i], name) {
			v.warnf(at, "%q is in the list already", name)
		}
	}
}

func (v *validator) reference(path, name string) {
	if _, ok := v.byName[name]; ok {
		return
	}
	if len(name) <= 128 && len(v.known) <= 200 {
		if best, distance := nearest(name, v.known); distance < len(name)/3+2 {
			v.errorf(path, "there is no model %q, did you mean %q?", clip(name), best)
			return
		}
	}
	v.errorf(path, "there is no model %q, allowed are the names and aliases of models", clip(name))
}
