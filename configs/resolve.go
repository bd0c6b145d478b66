package configs

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// validator makes values effective and checks what single keys cannot: how they go
// together.
type validator struct {
	cfg *Config
	d   *decoder
	// byName has the model of each name and alias; known lists those in the order of the file.
	byName map[string]int
	known  []string
}

func (v *validator) errorf(path, format string, args ...any) { v.add(path, false, format, args) }
func (v *validator) warnf(path, format string, args ...any)  { v.add(path, true, format, args) }

// add reports at the key, or at the nearest one above it that was written. It keeps
// silent about keys that could not be read, for they have their problem already.
func (v *validator) add(path string, warning bool, format string, args []any) {
	for at := path; at != ""; at = parent(at) {
		if v.d.bad[at] {
			return
		}
	}
	p := v.position(path).problem(v.d.file, path, fmt.Sprintf(format, args...))
	p.Warning = warning
	if p.fromSet() && !strings.HasPrefix(strings.TrimPrefix(p.File, setPrefix), path) {
		p.Message = path + ": " + p.Message
	}
	v.d.report(p)
}

func (v *validator) position(path string) mark {
	for at := path; at != ""; at = parent(at) {
		if m, ok := v.d.written[at]; ok {
			return m
		}
	}
	return v.d.written[""]
}

// parent cuts the last key or index off: a.b[1] -> a.b -> a -> "".
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

func (v *validator) written(path string) bool {
	_, ok := v.d.written[path]
	return ok
}

// either is the key to blame where two do not go together: the first if it was written
// or neither was, otherwise the second.
func (v *validator) either(path, first, second string) string {
	if !v.written(joinPath(path, first)) && v.written(joinPath(path, second)) {
		return joinPath(path, second)
	}
	return joinPath(path, first)
}

// anyWritten reports whether one of these keys under the path was written.
func (v *validator) anyWritten(path string, keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return v.written(joinPath(path, k)) })
}

// resolve fills in what depends on other keys.
func (v *validator) resolve() {
	v.yield()
	for i := range v.cfg.Models {
		m := &v.cfg.Models[i]
		for j := range m.Deployments {
			v.deployment(&m.Deployments[j], m, fmt.Sprintf("models[%d].deployments[%d]", i, j))
		}
	}
	for i := range v.cfg.Tenants {
		for j := range v.cfg.Tenants[i].Keys {
			k := &v.cfg.Tenants[i].Keys[j]
			if k.ID == "" && len(k.SHA256) >= 12 {
				k.ID = k.SHA256[:12]
			}
		}
	}
}

// yield lets defaults that nobody wrote give way to what was written beside them, so
// that one key can be changed alone.
func (v *validator) yield() {
	c := v.cfg
	if !v.written("cooldown.max_time") {
		c.Cooldown.MaxTime = max(c.Cooldown.MaxTime, c.Cooldown.Time)
	}
	for i := range c.Models {
		for j := range c.Models[i].Deployments {
			d := &c.Models[i].Deployments[j].Cooldown
			if !v.written("cooldown.max_time") && !v.written(fmt.Sprintf("models[%d].deployments[%d].cooldown.max_time", i, j)) {
				d.MaxTime = max(d.MaxTime, d.Time)
			}
		}
	}
	if !v.written("limits.body_budget") {
		c.Limits.BodyBudget = max(c.Limits.BodyBudget, c.Limits.MaxBody)
	}
	if !v.written("diagnose.baseline") {
		c.Diagnose.Baseline = max(c.Diagnose.Baseline, c.Diagnose.Window)
	}
	if !v.written("diagnose.every") {
		c.Diagnose.Every = min(c.Diagnose.Every, c.Diagnose.Window)
	}
}

func (v *validator) deployment(d *Deployment, m *Model, path string) {
	d.Profile = profileOf(d.Engine)
	if d.Model == "" {
		d.Model = m.Name
	}
	if d.Auth == "" {
		d.Auth = d.Profile.Auth
	}
	d.Dialects = effectiveDialects(d.Dialects, d.Profile.Dialects)
	if !v.written(path + ".strip_workspace_metadata") {
		d.StripWorkspaceMetadata = d.Profile.Hosted
	}
	if !v.written(path + ".strip_billing_block") {
		d.StripBillingBlock = !d.Profile.Hosted
	}
	if p := d.Price; p != nil {
		v.price(p, path+".price")
	}
	if r := d.Replicas; r != nil && !v.written(path+".replicas.max") {
		r.Max = r.Min
	}
	if d.BaseURL != "" {
		base, err := foldBaseURL(d.BaseURL)
		if err != nil {
			v.errorf(path+".base_url", "%v", err)
		}
		d.URL = base
	}
	switch {
	case d.MetricsURL == "off":
		d.MetricsURL = ""
	case d.MetricsURL == "" && d.URL != nil && d.Profile.MetricsPath != "":
		d.MetricsURL = URL(d.URL.String() + d.Profile.MetricsPath)
	}
}

func (v *validator) price(p *Price, path string) {
	if !v.written(path + ".cache_read") {
		p.CacheRead = p.Input
	}
	if !v.written(path + ".cache_write") {
		p.CacheWrite = p.Input
	}
	if !v.written(path + ".reasoning") {
		p.Reasoning = p.Output
	}
}

// effectiveDialects: a list that names neither embeddings nor other says nothing about
// them; they go through by model as the engine has them.
func effectiveDialects(asked, engine []string) []string {
	if asked == nil {
		return engine
	}
	out := slices.Clone(asked)
	if len(asked) == 0 || slices.Contains(asked, "embeddings") || slices.Contains(asked, "other") {
		return out
	}
	for _, d := range []string{"embeddings", "other"} {
		if slices.Contains(engine, d) {
			out = append(out, d)
		}
	}
	return out
}

// foldBaseURL reads a base URL and takes a trailing slash and /v1 away, so that the
// paths of the dialects can be appended. No message shows the text: it may hold a password.
func foldBaseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("this is not a URL, allowed is http://host:port or https://host/path")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the scheme is %q, allowed are http and https", clip(u.Scheme))
	case u.Hostname() == "":
		return nil, fmt.Errorf("the URL has no host, allowed is http://host:port or https://host/path")
	case u.User != nil:
		return nil, fmt.Errorf("the URL holds a user or password, write the credential in api_key")
	case u.RawQuery != "" || u.ForceQuery:
		return nil, fmt.Errorf("the URL has a query, allowed is only scheme, host and path")
	case u.Fragment != "" || strings.HasSuffix(text, "#"):
		return nil, fmt.Errorf("the URL has a fragment, allowed is only scheme, host and path")
	}
	if port := u.Port(); port != "" {
		if err := checkAddress("x:" + port); err != nil {
			return nil, err
		}
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	if rest, ok := strings.CutSuffix(path, "/v1"); ok {
		path = strings.TrimRight(rest, "/")
	}
	plain, err := url.PathUnescape(path)
	if err != nil {
		return nil, fmt.Errorf("the path cannot be read, allowed is a path with valid escapes")
	}
	u.Path, u.RawPath = plain, path
	if u.EscapedPath() == (&url.URL{Path: plain}).EscapedPath() {
		u.RawPath = ""
	}
	return u, nil
}
