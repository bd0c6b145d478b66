package configs

import (
	"slices"
	"strings"
	"testing"
)

func TestPendingRowsNameKeysOfTheTree(t *testing.T) {
	for _, row := range pendingKeys {
		if !slices.ContainsFunc(Keys(), func(k KeyInfo) bool { return k.Path == row.path }) {
			t.Errorf("there is no key %s", row.path)
		}
		if row.instead == "" {
			t.Errorf("%s does not say what happens instead", row.path)
		}
	}
}

func TestPendingWarnsForWhatIsAskedFor(t *testing.T) {
	cfg, problems := Load("example.yaml")
	warnings := pending(cfg)
	for _, p := range warnings {
		if !p.Warning || p.Line == 0 {
			t.Errorf("%+v is no warning with a position", p)
		}
		if !slices.Contains(problems, p) {
			t.Errorf("Load does not report %s", p)
		}
		if !slices.ContainsFunc(pendingKeys, func(row pendingKey) bool { return row.path == elementPath(p.Path) }) {
			t.Errorf("%s has no row", p)
		}
	}
	for _, row := range pendingKeys {
		written, asked := false, false
		for path := range cfg.written {
			written = written || elementPath(path) == row.path
			asked = asked || elementPath(path) == row.path && row.asks(cfg, path)
		}
		warned := slices.ContainsFunc(warnings, func(p Problem) bool { return elementPath(p.Path) == row.path })
		if warned != (written && asked) {
			t.Errorf("%s: written %v, asks for something %v, warned %v", row.path, written, asked, warned)
		}
	}
}

func TestPendingIsSilentAboutDefaults(t *testing.T) {
	if p := pending(Default()); len(p) > 0 {
		t.Errorf("defaults warn: %v", p)
	}
	text, _, _ := strings.Cut(string(read(t, "testdata/asks_for_nothing.warn.yaml")), wantMark)
	if p := pending(parse(t, text)); len(p) > 0 {
		t.Errorf("keys that ask for nothing warn: %v", p)
	}
}

// activeKeys do what their documentation says. A new key goes in here once there is
// code for it, until then into pendingKeys.
const activeKeys = `
listen
admin.listen admin.keys[].name admin.keys[].sha256 admin.keys[].role
admin.tls.cert admin.tls.key admin.tls.client_ca
tls.cert tls.key tls.client_ca
models[].name models[].aliases models[].max_tokens models[].routing.strategy
models[].fallbacks models[].context_fallbacks models[].long_context.over_tokens models[].long_context.model
models[].queue.max_waiting models[].queue.max_wait
models[].deployments[].max_prompt_tokens
models[].deployments[].retry.max_attempts models[].deployments[].retry.budget_ratio models[].deployments[].retry.backoff
models[].deployments[].cooldown.allowed_fails models[].deployments[].cooldown.window
models[].deployments[].cooldown.time models[].deployments[].cooldown.max_time
models[].deployments[].cooldown.min_requests models[].deployments[].cooldown.error_ratio
retry.max_attempts retry.budget_ratio retry.backoff
cooldown.allowed_fails cooldown.window cooldown.time cooldown.max_time
cooldown.min_requests cooldown.error_ratio cooldown.when_all_cooling
models[].deployments[].name models[].deployments[].base_url models[].deployments[].engine
models[].deployments[].model models[].deployments[].api_key models[].deployments[].auth
models[].deployments[].dialects models[].deployments[].weight models[].deployments[].track
models[].deployments[].max_inflight models[].deployments[].drain_on_client_abort
models[].deployments[].tls.ca models[].deployments[].tls.server_name models[].deployments[].tls.insecure
models[].deployments[].proxy_url
models[].deployments[].timeouts.connect models[].deployments[].timeouts.first_token
models[].deployments[].timeouts.first_token_per_1k_tokens models[].deployments[].timeouts.idle
models[].deployments[].timeouts.total models[].deployments[].timeouts.write_stall
timeouts.connect timeouts.first_token timeouts.first_token_per_1k_tokens timeouts.idle
timeouts.total timeouts.write_stall
keepalive
limits.max_body limits.max_header limits.max_streams limits.body_budget
tenants[].name tenants[].keys[].sha256 tenants[].keys[].id tenants[].keys[].expires tenants[].models
tenants[].max_tokens tenants[].max_prompt_tokens tenants[].trust_request_id tenants[].priority tenants[].weight
anonymous.allow anonymous.models anonymous.max_tokens anonymous.max_prompt_tokens anonymous.trust_request_id
anonymous.priority anonymous.weight
timelines.memory
log.level log.format log.requests
drain.delay drain.timeout
`

// TestEveryKeyIsActiveOrPending: no key may be read and then forgotten.
func TestEveryKeyIsActiveOrPending(t *testing.T) {
	active := map[string]bool{}
	for _, path := range strings.Fields(activeKeys) {
		active[path] = true
	}
	for _, k := range Keys() {
		block := slices.ContainsFunc(Keys(), func(other KeyInfo) bool {
			return strings.HasPrefix(other.Path, k.Path+".") || strings.HasPrefix(other.Path, k.Path+"[].")
		})
		if block {
			continue
		}
		if active[k.Path] == (k.Pending != "") {
			t.Errorf("%s must be either in activeKeys or under a row of pendingKeys", k.Path)
		}
		delete(active, k.Path)
	}
	for path := range active {
		t.Errorf("activeKeys has %s, which is no key that takes a value", path)
	}
}

// TestPendingOfABlock: one warning for the block, and none while nothing stands in it.
func TestPendingOfABlock(t *testing.T) {
	const oneModel = "models: [{name: m, deployments: [{name: d, base_url: \"http://h\"}]}]\n"
	for text, want := range map[string]string{
		"diagnose: {every: 5s, window: 30s}": "diagnose",
		"diagnose: {}":                       "",
		"telemetry: {metrics: {histograms: native, legacy_ms: true}}":   "telemetry.metrics.histograms telemetry.metrics.legacy_ms",
		"telemetry: {metrics: {histograms: classic, legacy_ms: false}}": "",
	} {
		var got []string
		for _, p := range pending(parse(t, oneModel+text)) {
			got = append(got, p.Path)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: warned about %v, want %q", text, got, want)
		}
	}
	if p := pending(parse(t, oneModel, "diagnose.every=2s")); len(p) != 1 || p[0].Path != "diagnose" {
		t.Errorf("--set: %v", p)
	}
}
