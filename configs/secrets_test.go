package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// everyForm renders a value in each way that a log or an API might.
func everyForm(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "%v %+v %#v %s %q %x %X %d", v, v, v, v, v, v, v, v)
	for _, h := range []slog.Handler{slog.NewJSONHandler(&b, nil), slog.NewTextHandler(&b, nil)} {
		slog.New(h).Info("x", "value", v)
	}
	j, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	y, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + string(j) + string(y)
}

func TestSecretsAreNotShown(t *testing.T) {
	const text = "hunter2secret"
	for name, v := range map[string]any{
		"secret":  Secret(text),
		"url":     URL("redis://user:" + text + "@h:6379/0?addr=b:1"),
		"bad url": URL("redis://user:" + text + "/@h:1%zz"),
		"struct":  struct{ S Secret }{text},
		"webhook": Webhook{URL: text, Secret: text},
	} {
		out := everyForm(t, v)
		if strings.Contains(out, text) || strings.Contains(out, fmt.Sprintf("%x", text)) {
			t.Errorf("%s is shown: %s", name, out)
		}
	}
	if Secret(text).Reveal() != text || Secret("").String() != "" {
		t.Error("Reveal and the empty secret")
	}
	if got := URL("http://h:1/x?y=z").String(); got != "http://h:1/x?y=z" {
		t.Errorf("a URL without a credential is %s", got)
	}
}

func TestDumpHidesSecretsAndReadsBack(t *testing.T) {
	cfg := parse(t, base+`        api_key: hunter2secret
        proxy_url: http://u:hunter2secret@p:1
        price: {input: 1}
redis: {url: "redis://u:hunter2secret@h:1"}
diagnose: {webhook: {url: "http://x/hunter2secret", secret: hunter2secret}}
`)
	j, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	y, err := yaml.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{string(j), string(y)} {
		if strings.Contains(out, "hunter2secret") {
			t.Errorf("the dump shows a secret: %s", out)
		}
	}
	var tree map[string]any
	if err := json.Unmarshal(j, &tree); err != nil {
		t.Fatal(err)
	}
	if tree["keepalive"] != "15s" || tree["limits"].(map[string]any)["max_body"] != "64MiB" {
		t.Errorf("dump: %s", j)
	}
	// Apart from the redacted texts the dump is a configuration again.
	again := strings.NewReplacer("'[redacted]'", "x", "http://[redacted]@", "http://", "redis://[redacted]@", "redis://").Replace(string(y))
	again = strings.Replace(again, "url: x", "url: http://x", 1)
	if _, problems := Parse("dump.yaml", []byte(again), nil); hasErrors(problems) {
		t.Errorf("the dump does not load: %v\n%s", problems, again)
	}
}

func TestReferences(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("from-a-file\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"${env:KEY}":                "from-env",
		"a-${env:KEY}-${env:N}":     "a-from-env-7",
		"${env:EMPTY}x":             "x",
		"$${env:KEY}":               "${env:KEY}",
		"${file:key}":               "from-a-file\n",
		"${file:" + dir + "/key}":   "from-a-file\n",
		"$x $ {env:KEY} plain $$ }": "$x $ {env:KEY} plain $$ }",
	} {
		if got, err := expand(text, dir, testEnv); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
	// What a reference brings in is text, not a further reference.
	nested := func(string) (string, bool) { return "${env:KEY}", true }
	if got, _ := expand("${env:A}", dir, nested); got != "${env:KEY}" {
		t.Errorf("expanded twice: %q", got)
	}
}

func TestReferencesInAnyValue(t *testing.T) {
	d := deployment(t, "api_key: ${env:KEY}", "weight: ${env:N}", `max_inflight: "${env:N}"`, "drain_on_client_abort: ${env:N}s")
	if d.APIKey.Reveal() != "from-env" || d.Weight != 7 || d.MaxInflight != 7 || d.DrainOnClientAbort.Seconds() != 7 {
		t.Errorf("%+v", d)
	}
}
