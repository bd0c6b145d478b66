package limiter

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tracegate/configs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// digestText is what a file says of a key.
func digestText(key string) string {
	d := sha256.Sum256([]byte(key))
	return hex.EncodeToString(d[:])
}

// tenants reads the tenants of a configuration with the models first (alias: other-name) and second. rest is
// top-level YAML.
func tenants(t testing.TB, rest string) *Tenants {
	t.Helper()
	yaml := `
models:
  - {name: first, aliases: [other-name], deployments: [{name: d1, base_url: "http://127.0.0.1:1"}]}
  - {name: second, deployments: [{name: d2, base_url: "http://127.0.0.1:2"}]}
` + rest
	cfg, problems := configs.Parse("test.yaml", []byte(yaml), nil)
	if cfg == nil {
		t.Fatalf("the test's configuration is wrong: %v\n%s", problems, yaml)
	}
	return NewTenants(cfg)
}

// oneTenant is a tenant with the key sk-one and further keys of the tenant as YAML lines indented by four.
func oneTenant(t testing.TB, lines string) *Tenants {
	t.Helper()
	return tenants(t, fmt.Sprintf("tenants:\n  - name: team\n    keys: [{sha256: %s}]\n%s\n", digestText("sk-one"), lines))
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
