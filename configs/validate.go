package configs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

func (v *validator) validate() {
	v.index()
	v.listeners()
	v.names()
	for i := range v.cfg.Models {
		v.model(&v.cfg.Models[i], fmt.Sprintf("models[%d]", i))
	}
	v.cycles("fallbacks", func(m *Model) []string { return m.Fallbacks })
	v.cycles("context_fallbacks", func(m *Model) []string { return m.ContextFallbacks })
	v.timeouts("", v.cfg.Timeouts)
	v.cooldown("", v.cfg.Cooldown)
	v.limits()
	v.tenants()
	v.redis()
	v.timelines()
	v.telemetry()
	v.diagnose()
}

func (v *validator) listeners() {
	c := v.cfg
	if c.Listen == c.Admin.Listen && !strings.HasSuffix(c.Listen, ":0") {
		v.errorf("admin.listen", "%s is the address of listen too, allowed is another one", c.Admin.Listen)
	}
	if !isLoopback(c.Admin.Listen) && len(c.Admin.Keys) == 0 {
		v.warnf("admin.listen", "%s is open to the world without a key, write admin.keys or listen on 127.0.0.1", c.Admin.Listen)
	}
	v.serverTLS("tls", c.TLS)
	v.serverTLS("admin.tls", c.Admin.TLS)
	seen := map[string]string{}
	for i, k := range c.Admin.Keys {
		path := fmt.Sprintf("admin.keys[%d]", i)
		v.required(path+".name", k.Name)
		v.digest(path+".sha256", k.SHA256, seen)
	}
}

func (v *validator) required(path, text string) bool {
	if text == "" {
		v.missing(path)
	}
	return text != ""
}

func (v *validator) missing(path string) {
	v.errorf(path, "%s is missing, it is needed here", lastKey(path))
}

func (v *validator) digest(path, digest string, seen map[string]string) {
	if !v.required(path, digest) {
		return
	}
	if first, ok := seen[digest]; ok {
		v.errorf(path, "the same key is at %s, allowed is one place", first)
		return
	}
	seen[digest] = path
}

func (v *validator) serverTLS(path string, t *ServerTLS) {
	if t == nil {
		return
	}
	haveCert, haveKey := v.required(path+".cert", t.Cert), v.required(path+".key", t.Key)
	if haveCert && haveKey && v.readable(path+".cert", t.Cert) && v.readable(path+".key", t.Key) {
		if _, err := tls.LoadX509KeyPair(t.Cert, t.Key); err != nil {
			v.errorf(path+".cert", "cannot use certificate %s with key %s: %v", t.Cert, t.Key, err)
		}
	}
	v.roots(path+".client_ca", t.ClientCA)
}

func (v *validator) readable(path, name string) bool {
	if _, err := readFile(name, maxSecretFile); err != nil {
		v.errorf(path, "%v", err)
		return false
	}
	return true
}

// roots checks a PEM file of certificates.
func (v *validator) roots(path, name string) {
	if name == "" {
		return
	}
	data, err := readFile(name, maxSecretFile)
	if err != nil {
		v.errorf(path, "%v", err)
		return
	}
	if !x509.NewCertPool().AppendCertsFromPEM(data) {
		v.errorf(path, "%s has no certificate, allowed is a PEM file of certificates", name)
	}
}

// timeouts checks the global block (base "") or a deployment's overrides.
func (v *validator) timeouts(base string, t Timeouts) {
	path := joinPath(base, "timeouts")
	if base != "" && !v.anyWritten(path, "connect", "first_token", "first_token_per_1k_tokens", "idle", "total") {
		return
	}
	for _, part := range []struct {
		key  string
		long time.Duration
	}{{"first_token", t.FirstToken}, {"idle", t.Idle}, {"connect", t.Connect}} {
		if t.Total > 0 && part.long > t.Total {
			v.warnf(v.either(path, part.key, "total"), "%s=%s is longer than total=%s and never comes into effect", part.key, formatDuration(part.long), formatDuration(t.Total))
		}
	}
	if t.FirstTokenPer1kTokens > 0 && t.FirstToken == 0 {
		v.warnf(path+".first_token_per_1k_tokens", "it has no effect while first_token is 0")
	}
}

func (v *validator) cooldown(base string, c Cooldown) {
	path := joinPath(base, "cooldown")
	if base != "" && !v.anyWritten(path, "time", "max_time") {
		return
	}
	if c.MaxTime < c.Time {
		v.errorf(v.either(path, "max_time", "time"), "max_time=%s is shorter than time=%s, allowed is time and more", formatDuration(c.MaxTime), formatDuration(c.Time))
	}
}

func (v *validator) limits() {
	l := v.cfg.Limits
	if l.BodyBudget < l.MaxBody {
		v.warnf(v.either("limits", "body_budget", "max_body"), "body_budget=%s is smaller than max_body=%s: a body above it is refused", formatSize(l.BodyBudget), formatSize(l.MaxBody))
	}
}

func (v *validator) diagnose() {
	d := v.cfg.Diagnose
	if d.Baseline < d.Window {
		v.errorf(v.either("diagnose", "baseline", "window"), "baseline=%s is shorter than window=%s, allowed is window and more", formatDuration(d.Baseline), formatDuration(d.Window))
	}
	if d.Every > d.Window {
		v.errorf(v.either("diagnose", "every", "window"), "every=%s is longer than window=%s, allowed is up to window", formatDuration(d.Every), formatDuration(d.Window))
	}
	if d.TreesDir != "" {
		if info, err := os.Stat(d.TreesDir); err != nil {
			v.errorf("diagnose.trees_dir", "cannot read directory: %v", err)
		} else if !info.IsDir() {
			v.errorf("diagnose.trees_dir", "%s is a file, allowed is a directory", d.TreesDir)
		}
	}
	v.httpURL("diagnose.webhook.url", URL(d.Webhook.URL))
	if d.Webhook.Secret != "" && d.Webhook.URL == "" {
		v.warnf("diagnose.webhook.secret", "it has no effect without url")
	}
}

// httpURL checks an http or https address; empty is fine. The text is not shown: it
// may hold a credential.
func (v *validator) httpURL(path string, text URL) {
	if text == "" {
		return
	}
	u := text.parsed()
	switch {
	case u == nil:
		v.errorf(path, "this is not a URL, allowed is http://host:port or https://host/path")
	case u.Scheme != "http" && u.Scheme != "https":
		v.errorf(path, "the scheme is %q, allowed are http and https", clip(u.Scheme))
	case u.Hostname() == "" || !validPort(u.Port()):
		v.errorf(path, "the URL has no valid host and port, allowed is http://host:port or https://host/path")
	}
}

func validPort(port string) bool {
	return port == "" || checkAddress(net.JoinHostPort("x", port)) == nil
}
