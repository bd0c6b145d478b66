package configs

import (
	"strings"
	"testing"
	"time"
)

const setBase = `
anonymous: {allow: true}
models:
  - name: qwen2.5-7b
    deployments:
      - &a {name: a, base_url: "http://h", timeouts: {idle: 9s}}
      - {<<: *a, name: b}
  - name: qwen2.5
    deployments: [{name: c, base_url: "http://h"}]
`

func TestSet(t *testing.T) {
	for _, c := range []struct {
		sets []string
		ok   func(*Config) bool
	}{
		{[]string{"timeouts.idle=5s"}, func(c *Config) bool { return c.Timeouts.Idle == 5*time.Second && c.Timeouts.Connect == 2*time.Second }},
		{[]string{"listen=:0", "admin.listen=127.0.0.1:0"}, func(c *Config) bool { return c.Listen == ":0" && c.Admin.Listen == "127.0.0.1:0" }},
		{[]string{"models[0].deployments[1].weight=2"}, func(c *Config) bool {
			return c.Models[0].Deployments[1].Weight == 2 && c.Models[0].Deployments[0].Weight == 1
		}},
		{[]string{"models.qwen2.5-7b.max_tokens=5", "models.qwen2.5.max_tokens=6"}, func(c *Config) bool { return c.Models[0].MaxTokens == 5 && c.Models[1].MaxTokens == 6 }},
		{[]string{"models.qwen2.5.deployments.c.engine=sglang"}, func(c *Config) bool { return c.Models[1].Deployments[0].Profile.Engine == "sglang" }},
		{[]string{"models[qwen2.5].aliases=[x, y]"}, func(c *Config) bool { return c.Model("y") == &c.Models[1] }},
		// An override below a merged key leaves the anchor alone.
		{[]string{"models[0].deployments[1].timeouts.idle=1s"}, func(c *Config) bool {
			d := c.Models[0].Deployments
			return d[0].Timeouts.Idle == 9*time.Second && d[1].Timeouts.Idle == time.Second
		}},
		{[]string{"redis.url=redis://h:1", "redis.replicas=4"}, func(c *Config) bool { return c.Redis.Replicas == 4 && c.Redis.OnError == "local" }},
		{[]string{"keepalive=1s", "keepalive=2s"}, func(c *Config) bool { return c.Keepalive == 2*time.Second }},
		{[]string{"anonymous.allow=true", "retry.budget_ratio=0.5"}, func(c *Config) bool { return c.Anonymous.Allow && c.Retry.BudgetRatio == 0.5 }},
	} {
		if cfg := parse(t, setBase, c.sets...); !c.ok(cfg) {
			t.Errorf("--set %v has not the wanted effect", c.sets)
		}
	}
}

func TestSetProblems(t *testing.T) {
	for set, want := range map[string]string{
		"timeouts.idle":               "--set timeouts.idle: it has no path=value",
		"timeouts.idle=5":             "--set timeouts.idle=5: 5 is a number without a unit, write 5s",
		"timeouts.idel=5s":            `--set timeouts.idel=5s: unknown key "idel", did you mean "idle"?`,
		"models[7].max_tokens=1":      "--set models[7].max_tokens=1: the list has no element [7], it has 2",
		"models.nope.max_tokens=1":    "--set models.nope.max_tokens=1: the list has no element named nope",
		"models[0.max_tokens=1":       "--set models[0.max_tokens=1: ",
		"listen.x=1":                  "--set listen.x=1: ",
		"models[0].aliases=[a":        "--set models[0].aliases=[a: cannot read the value",
		"capture=ful":                 `--set capture=ful: "ful" is unknown, allowed are none, hash, full`,
		"cooldown.max_time=1s":        "--set cooldown.max_time=1s: max_time=1s is shorter than time=5s",
		"redis.url=http://u:secret@h": "--set redis.url=[redacted]: the scheme",
	} {
		_, problems := Parse("test.yaml", []byte(setBase), nil, set)
		found := false
		for _, p := range problems {
			found = found || !p.Warning && strings.HasPrefix(p.String(), want)
			if strings.Contains(p.String(), "secret") {
				t.Errorf("%s shows the credential", p)
			}
		}
		if !found {
			t.Errorf("--set %s gives %v\nwant %s", set, problems, want)
		}
	}
}

func TestSetRepairsTheFile(t *testing.T) {
	if cfg := parse(t, setBase+"timeouts: {idle: 5}\n", "timeouts.idle=5s"); cfg.Timeouts.Idle != 5*time.Second {
		t.Errorf("idle %v", cfg.Timeouts.Idle)
	}
}
