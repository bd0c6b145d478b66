package configs

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// defaultTable is the public contract's list of defaults. It is written by hand and
// not derived from Default: a change here is a change for every operator.
const defaultTable = `
listen: 127.0.0.1:4000
admin.listen: 127.0.0.1:4001
models[].routing.strategy: least_inflight
models[].queue.max_waiting: 200
models[].queue.max_wait: 30s
models[].deployments[].engine: auto
models[].deployments[].weight: 1
models[].deployments[].track: stable
models[].deployments[].probe.interval: 5s
models[].deployments[].engine_topology: plain
models[].deployments[].model_in_response: asked
models[].deployments[].system_messages: inline
models[].deployments[].drain_on_client_abort: 0s
timeouts.connect: 2s
timeouts.first_token: 120s
timeouts.first_token_per_1k_tokens: 0s
timeouts.idle: 60s
timeouts.total: 10m
timeouts.write_stall: 30s
retry.max_attempts: 3
retry.budget_ratio: 0.2
retry.backoff: 100ms
retry.suspect_grace: 2s
cooldown.allowed_fails: 3
cooldown.window: 60s
cooldown.time: 5s
cooldown.max_time: 60s
cooldown.min_requests: 5
cooldown.error_ratio: 0.5
cooldown.when_all_cooling: probe_soonest
keepalive: 15s
limits.max_body: 64MiB
limits.max_header: 64KiB
limits.max_streams: 20000
limits.body_budget: 1GiB
anonymous.allow: false
timelines.store: sqlite
timelines.dir: ./data
timelines.max_age: 72h
timelines.max_size: 20GiB
timelines.sample: 1
timelines.memory: 20000
timelines.redis_ttl: 15m
timelines.victorialogs.insert_url: http://127.0.0.1:9428
timelines.victorialogs.select_url: http://127.0.0.1:9428
timelines.victorialogs.account: 0:0
capture: none
telemetry.metrics.histograms: classic
telemetry.metrics.legacy_ms: false
log.level: info
log.format: json
log.requests: true
drain.delay: 15s
drain.timeout: 600s
diagnose.window: 60s
diagnose.baseline: 60m
diagnose.every: 5s
diagnose.min_samples: 20
`

// offByDefault are blocks that must not exist unless they are written.
var offByDefault = []string{"tls", "admin.tls", "admin.keys", "models", "tenants", "redis", "telemetry.otlp"}

func TestDefaultsAreTheContract(t *testing.T) {
	have := map[string]string{}
	for _, k := range Keys() {
		have[k.Path] = k.Default
	}
	for line := range strings.Lines(strings.TrimSpace(defaultTable)) {
		path, want, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if d, err := parseDuration(want); err == nil && strings.ContainsAny(want, "smh") {
			want = formatDuration(d)
		}
		if have[path] != want {
			t.Errorf("%s: the default is %q, want %q", path, have[path], want)
		}
	}
	for _, path := range offByDefault {
		v, ok := valueAt(reflect.ValueOf(Default()).Elem(), path)
		if !ok || !v.IsZero() {
			t.Errorf("%s is set by default", path)
		}
	}
	if d := Default().Diagnose; d.TreesDir != "" || d.Webhook != (Webhook{}) {
		t.Errorf("diagnose.trees_dir or webhook is set by default: %+v", d)
	}
}

func TestGatewayYAMLIsTheDefault(t *testing.T) {
	cfg, problems := Load("gateway.yaml")
	if cfg == nil {
		t.Fatalf("gateway.yaml has errors: %v", problems)
	}
	got := *cfg
	got.file, got.written = "", nil
	if want := Default(); !reflect.DeepEqual(&got, want) {
		t.Errorf("gateway.yaml gives\n%+v\nwant the defaults\n%+v", got, *want)
	}
	for _, k := range Keys() {
		if k.Default == "" || !k.Literal || strings.Contains(k.Path, "[]") || inOptionalBlock(k.Path) {
			continue
		}
		if _, ok := cfg.written[k.Path]; !ok {
			t.Errorf("gateway.yaml has no active line for %s, which has the default %s", k.Path, k.Default)
		}
	}
}

func inOptionalBlock(path string) bool {
	return strings.HasPrefix(path, "redis.") || strings.HasPrefix(path, "telemetry.otlp.") || strings.Contains(path, ".budget.")
}

// commented matches a line of YAML that is commented out: no space or an indentation
// after the #. One space makes it prose.
var commented = regexp.MustCompile(`(?m)^#(\S|  )`)

func TestGatewayYAMLHasEveryKey(t *testing.T) {
	whole := commented.ReplaceAll(read(t, "gateway.yaml"), []byte("$1"))
	d := &decoder{file: "gateway.yaml", dir: ".", env: testEnv, written: map[string]mark{}, bad: map[string]bool{}}
	root := d.document(whole)
	if root == nil {
		t.Fatalf("gateway.yaml without its # is no YAML: %v", d.problems)
	}
	d.root(root, Default())
	for _, p := range d.problems {
		t.Errorf("a commented example is wrong: %s", p)
	}
	seen := map[string]bool{}
	for path := range d.written {
		seen[elementPath(path)] = true
	}
	for _, k := range Keys() {
		// A deployment's overrides have the global keys; one example each is enough.
		if override(k.Path) {
			continue
		}
		if !seen[k.Path] {
			t.Errorf("gateway.yaml does not have the key %s", k.Path)
		}
	}
}

func override(path string) bool {
	rest, ok := strings.CutPrefix(path, "models[].deployments[].")
	return ok && (strings.HasPrefix(rest, "timeouts.") || strings.HasPrefix(rest, "retry.") || strings.HasPrefix(rest, "cooldown."))
}

func TestExampleYAMLLoadsAndIsFull(t *testing.T) {
	cfg, problems := Parse("example.yaml", read(t, "example.yaml"), nil)
	if cfg == nil {
		t.Fatalf("example.yaml has errors: %v", problems)
	}
	for _, p := range problems {
		if !strings.Contains(p.Message, "not active in this version") && !strings.Contains(p.Message, "single deployment") {
			t.Errorf("unexpected %s", p)
		}
	}
	if m := cfg.Model("gpt-4o"); m == nil || m.Name != "qwen3-32b" || len(m.Deployments) != 2 {
		t.Errorf("the alias gpt-4o finds %+v", m)
	}
	if cfg.Redis == nil || cfg.Telemetry.OTLP == nil || len(cfg.Tenants) != 2 {
		t.Error("example.yaml leaves a block out")
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
