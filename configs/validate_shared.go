package configs

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func (v *validator) tenants() {
	names, digests, ids := map[string]string{}, map[string]string{}, map[string]string{}
	usable := v.cfg.Anonymous.Allow
	for i := range v.cfg.Tenants {
		t := &v.cfg.Tenants[i]
		path := fmt.Sprintf("tenants[%d]", i)
		v.tenantName(path+".name", t.Name, names)
		if v.keys(t, path, digests, ids) {
			usable = true
		} else if len(t.Keys) == 0 {
			v.warnf(path+".keys", "tenant %s has no key and can never be used", t.Name)
		}
		v.grants(&t.Grants, path)
	}
	v.grants(&v.cfg.Anonymous.Grants, "anonymous")
	if !usable && !v.d.bad["tenants"] && !v.d.bad["anonymous"] {
		v.warnf("tenants", "no tenant has a valid key and anonymous.allow is false: every request is refused")
	}
	if len(v.cfg.Models) == 0 {
		v.warnf("models", "there is no model: every request is refused")
	}
	if !v.cfg.Anonymous.Allow && v.anyWritten("anonymous", "models", "limits", "max_tokens", "max_prompt_tokens", "priority", "trust_request_id") {
		v.warnf("anonymous.allow", "it is false, so the other keys of anonymous have no effect")
	}
}

func (v *validator) tenantName(path, name string, seen map[string]string) {
	if !v.required(path, name) {
		return
	}
	if name == "anonymous" {
		v.errorf(path, "the name \"anonymous\" is kept for requests without a key, allowed is another one")
	}
	v.claim(seen, path, name, "tenant")
}

// keys reports whether one of the tenant's keys can be used now.
func (v *validator) keys(t *Tenant, path string, digests, ids map[string]string) bool {
	usable := false
	for j, k := range t.Keys {
		at := fmt.Sprintf("%s.keys[%d]", path, j)
		before := len(digests)
		v.digest(at+".sha256", k.SHA256, digests)
		if first, ok := ids[k.ID]; ok && len(digests) > before {
			v.errorf(at+".id", "the id %q is taken by %s, allowed is one key of an id", k.ID, first)
		} else if k.ID != "" && !ok {
			ids[k.ID] = at
		}
		if expired(k, time.Now()) {
			v.warnf(at+".expires", "the key expired at %s and is refused", k.Expires.Format(time.RFC3339))
			continue
		}
		usable = true
	}
	return usable
}

func (v *validator) grants(g *Grants, path string) {
	v.references(path+".models", g.Models)
	at := path + ".models"
	switch {
	case g.Models == nil && v.written(at) && !v.d.bad[at]:
		v.warnf(at, "the list is not there, so every model is allowed; write [] to allow none")
	case g.Models != nil && len(g.Models) == 0:
		v.warnf(at, "the list is empty: no model can be used")
	}
	b := g.Limits.Budget
	if b == nil {
		return
	}
	if b.Amount == 0 {
		v.missing(path + ".limits.budget.amount")
	}
	if !v.priced() {
		v.warnf(path+".limits.budget", "it has no effect: no deployment has a price")
	}
}

func (v *validator) priced() bool {
	for i := range v.cfg.Models {
		for j := range v.cfg.Models[i].Deployments {
			if v.cfg.Models[i].Deployments[j].Price != nil {
				return true
			}
		}
	}
	return false
}

func (v *validator) redis() {
	r := v.cfg.Redis
	if r == nil {
		return
	}
	switch {
	case r.URL == "" && r.Sentinel == nil:
		v.errorf("redis.url", "url is missing, allowed is url or sentinel")
	case r.URL != "" && r.Sentinel != nil:
		v.errorf("redis.sentinel", "url is written too, allowed is one of them")
	}
	if r.URL != "" {
		v.redisURL(r.URL)
	}
	if s := r.Sentinel; s != nil {
		v.required("redis.sentinel.master", s.Master)
		if len(s.Addrs) == 0 {
			v.errorf("redis.sentinel.addrs", "addrs is missing, at least one host:port is needed")
		}
	}
}

func (v *validator) redisURL(text URL) {
	u := text.parsed()
	switch {
	case u == nil:
		v.errorf("redis.url", "this is not a URL, allowed is redis://host:port/db or rediss://host:port/db")
		return
	case u.Scheme != "redis" && u.Scheme != "rediss":
		v.errorf("redis.url", "the scheme is %q, allowed are redis and rediss", clip(u.Scheme))
		return
	case u.Hostname() == "" || !validPort(u.Port()):
		v.errorf("redis.url", "the URL has no valid host and port, allowed is redis://host:port/db")
		return
	}
	if db := strings.Trim(u.Path, "/"); db != "" {
		if n, err := strconv.Atoi(db); err != nil || n < 0 {
			v.errorf("redis.url", "%q is not a database, allowed is a number", clip(db))
		}
	}
	for _, addr := range u.Query()["addr"] {
		if err := checkAddress(addr); err != nil {
			v.errorf("redis.url", "addr: %v", err)
		}
	}
}

var accountPattern = regexp.MustCompile(`^\d{1,10}(:\d{1,10})?$`)

func (v *validator) timelines() {
	t, usual := v.cfg.Timelines, Default().Timelines
	if t.Store == "sqlite" {
		v.required("timelines.dir", t.Dir)
	}
	v.httpURL("timelines.victorialogs.insert_url", t.VictoriaLogs.InsertURL)
	v.httpURL("timelines.victorialogs.select_url", t.VictoriaLogs.SelectURL)
	if !accountPattern.MatchString(t.VictoriaLogs.Account) {
		v.errorf("timelines.victorialogs.account", "%q is not an account, allowed is account:project such as 0:0", clip(t.VictoriaLogs.Account))
	}
	if t.Store == "victorialogs" {
		v.required("timelines.victorialogs.insert_url", t.VictoriaLogs.InsertURL.Reveal())
		v.required("timelines.victorialogs.select_url", t.VictoriaLogs.SelectURL.Reveal())
	} else if t.VictoriaLogs != usual.VictoriaLogs {
		v.warnf("timelines.victorialogs", "it has no effect with store: %s", t.Store)
	}
	if v.cfg.Redis == nil && t.RedisTTL != usual.RedisTTL {
		v.warnf("timelines.redis_ttl", "it has no effect without redis")
	}
}

func (v *validator) telemetry() {
	if o := v.cfg.Telemetry.OTLP; o != nil {
		if v.required("telemetry.otlp.endpoint", o.Endpoint.Reveal()) {
			v.httpURL("telemetry.otlp.endpoint", o.Endpoint)
		}
	}
}
