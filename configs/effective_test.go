package configs

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

const base = `
tenants: [{name: t, keys: [{sha256: 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b}]}]
models:
  - name: m
    deployments:
      - name: d
        base_url: http://h:8000
`

// parse fails the test on any error.
func parse(t *testing.T, text string, sets ...string) *Config {
	t.Helper()
	cfg, problems := Parse("test.yaml", []byte(text), testEnv, sets...)
	if cfg == nil {
		t.Fatalf("unexpected errors: %v", problems)
	}
	return cfg
}

func deployment(t *testing.T, lines ...string) *Deployment {
	t.Helper()
	text := base
	for _, line := range lines {
		text += "        " + line + "\n"
	}
	return &parse(t, text).Models[0].Deployments[0]
}

func TestBaseURLIsFolded(t *testing.T) {
	for text, want := range map[string]string{
		"http://h":                 "http://h",
		"http://h/":                "http://h",
		"http://h/v1":              "http://h",
		"http://h/v1/":             "http://h",
		"http://h:8000/api/v1/":    "http://h:8000/api",
		"http://h/api//":           "http://h/api",
		"https://h/v1beta":         "https://h/v1beta",
		"http://h/a%2Fb/v1":        "http://h/a%2Fb",
		"http://[::1]:8000/v1":     "http://[::1]:8000",
		"https://api.example.com/": "https://api.example.com",
	} {
		u, err := foldBaseURL(text)
		if err != nil || u.String() != want {
			t.Errorf("%s: folded to %v, %v, want %s", text, u, err, want)
		}
	}
}

func TestOverridesMergeKeyByKey(t *testing.T) {
	// The globals stand below the models on purpose: the order in the file is of no account.
	cfg := parse(t, base+`        timeouts: {first_token: 7s}
        retry: {max_attempts: 1}
        cooldown: {time: 1s}
      - {name: e, base_url: "http://h"}
timeouts: {idle: 33s}
retry: {backoff: 5ms}
cooldown: {allowed_fails: 9}
`)
	d, e := cfg.Models[0].Deployments[0], cfg.Models[0].Deployments[1]
	if d.Timeouts.FirstToken != 7*time.Second || d.Timeouts.Idle != 33*time.Second || d.Timeouts.Connect != 2*time.Second {
		t.Errorf("timeouts %+v", d.Timeouts)
	}
	if d.Retry.MaxAttempts != 1 || d.Retry.Backoff != 5*time.Millisecond || d.Cooldown.Time != time.Second || d.Cooldown.AllowedFails != 9 {
		t.Errorf("retry %+v, cooldown %+v", d.Retry, d.Cooldown)
	}
	if e.Timeouts != cfg.Timeouts || e.Retry != cfg.Retry || e.Cooldown != cfg.Cooldown {
		t.Errorf("a deployment without overrides differs from the globals: %+v", e)
	}
}

func TestMergeKeysAndAnchors(t *testing.T) {
	cfg := parse(t, `
anonymous: {allow: true}
models:
  - name: m
    deployments:
      - &a {name: a, base_url: "http://h", weight: 3, timeouts: &t {idle: 9s, total: 20s}}
      - {weight: 4, <<: *a, name: b}
      - <<: [{name: c, max_inflight: 5}, *a]
timeouts: *t
`)
	d := cfg.Models[0].Deployments
	if d[1].Weight != 4 || d[1].BaseURL != "http://h" || d[2].Name != "c" || d[2].Weight != 3 || d[2].MaxInflight != 5 {
		t.Errorf("merged: %+v", d)
	}
	if cfg.Timeouts.Idle != 9*time.Second || cfg.Timeouts.Total != 20*time.Second || cfg.Timeouts.Connect != 2*time.Second {
		t.Errorf("aliased timeouts: %+v", cfg.Timeouts)
	}
}

func TestEngineDecidesDefaults(t *testing.T) {
	for _, c := range []struct {
		engine, auth, metrics string
		billing, workspace    bool
		speaks, refuses       string
	}{
		{"auto", "bearer", "http://h:8000/metrics", true, false, "messages responses embeddings other", ""},
		{"vllm", "bearer", "http://h:8000/metrics", true, false, "messages responses embeddings other", ""},
		{"sglang", "bearer", "http://h:8000/metrics", true, false, "messages chat", ""},
		{"llamacpp", "bearer", "", true, false, "chat completions", ""},
		{"anthropic", "x-api-key", "", false, true, "messages", "chat responses embeddings"},
		{"openai", "bearer", "", false, true, "chat responses embeddings", "messages"},
		{"newapi", "bearer", "", false, true, "chat messages responses", ""},
	} {
		d := deployment(t, "engine: "+c.engine, "api_key: x")
		if d.Auth != c.auth || d.MetricsURL.Reveal() != c.metrics || d.StripBillingBlock != c.billing || d.StripWorkspaceMetadata != c.workspace {
			t.Errorf("%s: %+v", c.engine, d)
		}
		for _, dialect := range strings.Fields(c.speaks) {
			if !d.Speaks(dialect) {
				t.Errorf("%s does not speak %s", c.engine, dialect)
			}
		}
		for _, dialect := range strings.Fields(c.refuses) {
			if d.Speaks(dialect) {
				t.Errorf("%s speaks %s", c.engine, dialect)
			}
		}
		if d.Model != "m" {
			t.Errorf("%s: the upstream's name is %q", c.engine, d.Model)
		}
	}
}

func TestWrittenKeysWinOverTheEngine(t *testing.T) {
	d := deployment(t, "engine: openai", "api_key: x", "auth: none", "strip_workspace_metadata: false",
		"strip_billing_block: true", "metrics_url: http://x/m", "dialects: [chat]", "model: up")
	if d.Auth != "none" || d.StripWorkspaceMetadata || !d.StripBillingBlock || d.MetricsURL.Reveal() != "http://x/m" || d.Model != "up" {
		t.Errorf("%+v", d)
	}
	// A list of conversational dialects says nothing about the two that pass by model.
	if want := []string{"chat", "embeddings", "other"}; !slices.Equal(d.Dialects, want) {
		t.Errorf("dialects %v, want %v", d.Dialects, want)
	}
	if d := deployment(t, "dialects: [chat, other]"); d.Speaks("embeddings") {
		t.Errorf("dialects %v", d.Dialects)
	}
	if d := deployment(t, "metrics_url: off"); d.MetricsURL != "" {
		t.Errorf("metrics_url off gives %q", d.MetricsURL.Reveal())
	}
}

func TestProfiles(t *testing.T) {
	v, s := profileOf("auto"), profileOf("sglang")
	if v.Engine != "vllm" || !v.HeadersFirst || v.Abort != AbortClose || !v.UsageByOption || v.Hosted {
		t.Errorf("vllm: %+v", v)
	}
	if v.RequestIDField("chat") != "" || v.RequestIDField("responses") != "request_id" {
		t.Errorf("vllm's request id fields: %v", v.RequestIDFields)
	}
	if s.HeadersFirst || s.Abort != AbortRequest || s.RequestIDField("messages") != "rid" || s.RequestIDField("responses") != "request_id" {
		t.Errorf("sglang: %+v", s)
	}
	if profileOf("anthropic").UsageByOption || profileOf("openai").RequestIDField("chat") != "" {
		t.Error("hosted engines")
	}
	v.Dialects[0] = "changed"
	if profileOf("vllm").Dialects[0] == "changed" {
		t.Error("a caller can change the profile of all")
	}
}

func TestPriceReplicasAndKeyDefaults(t *testing.T) {
	d := deployment(t, "price: {input: 2, output: 8, cache_read: 0}", "replicas: {min: 3}")
	if *d.Price != (Price{Input: 2, Output: 8, CacheRead: 0, CacheWrite: 2, Reasoning: 8}) {
		t.Errorf("price %+v", *d.Price)
	}
	if *d.Replicas != (Replicas{Min: 3, Max: 3}) {
		t.Errorf("replicas %+v", *d.Replicas)
	}
	if id := parse(t, base).Tenants[0].Keys[0].ID; id != "2bb80d537b1d" {
		t.Errorf("key id %q", id)
	}
}

func TestTenantAllows(t *testing.T) {
	cfg := parse(t, strings.Replace(base, "- name: m\n", "- name: m\n    aliases: [x]\n", 1))
	for _, c := range []struct {
		list  []string
		model string
		want  bool
	}{{nil, "m", true}, {[]string{}, "m", false}, {[]string{"m"}, "x", true}, {[]string{"x"}, "m", true}, {[]string{"m"}, "z", false}} {
		if got := (&Grants{Models: c.list}).Allows(cfg, c.model); got != c.want {
			t.Errorf("%v allows %s: %v", c.list, c.model, got)
		}
	}
}

func TestFirstTokenForSaturates(t *testing.T) {
	tm := Timeouts{FirstToken: 10 * time.Second, FirstTokenPer1kTokens: 2 * time.Second}
	if got := tm.FirstTokenFor(2500); got != 15*time.Second {
		t.Errorf("2500 tokens: %v", got)
	}
	if got := (Timeouts{FirstTokenPer1kTokens: time.Second}).FirstTokenFor(5000); got != 0 {
		t.Errorf("no limit became %v", got)
	}
	tm = Timeouts{FirstToken: maxDuration, FirstTokenPer1kTokens: maxDuration}
	if got := tm.FirstTokenFor(math.MaxInt); got != math.MaxInt64 {
		t.Errorf("overflow: %v", got)
	}
}

func TestUnwrittenDefaultsYield(t *testing.T) {
	cfg := parse(t, base+`        cooldown: {time: 5m}
cooldown: {time: 2m}
limits: {max_body: 2GiB}
diagnose: {window: 2h}
`)
	if cfg.Cooldown.MaxTime != 2*time.Minute || cfg.Models[0].Deployments[0].Cooldown.MaxTime != 5*time.Minute {
		t.Errorf("max_time %v and %v", cfg.Cooldown.MaxTime, cfg.Models[0].Deployments[0].Cooldown.MaxTime)
	}
	if cfg.Limits.BodyBudget != 2<<30 || cfg.Diagnose.Baseline != 2*time.Hour {
		t.Errorf("body_budget %d, baseline %v", cfg.Limits.BodyBudget, cfg.Diagnose.Baseline)
	}
	if cfg := parse(t, base+"diagnose: {window: 2s}\n"); cfg.Diagnose.Every != 2*time.Second {
		t.Errorf("every %v", cfg.Diagnose.Every)
	}
}
