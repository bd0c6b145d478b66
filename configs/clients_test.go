package configs

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	demoKey   = "sk-demo"
	demoModel = "demo"
)

func TestClientFilesAgreeWithTheDefaults(t *testing.T) {
	address := "http://" + Default().Listen
	urls := regexp.MustCompile(`https?://[0-9A-Za-z.:/-]+`)
	files, err := filepath.Glob("clients/*")
	if err != nil || len(files) < 6 {
		t.Fatalf("clients has %d files, %v", len(files), err)
	}
	for _, name := range files {
		text := string(read(t, name))
		for _, u := range urls.FindAllString(text, -1) {
			if u != address && u != address+"/v1" && !strings.HasPrefix(u, "https://opencode.ai/") {
				t.Errorf("%s has the URL %s, want %s", name, u, address)
			}
		}
		if !strings.Contains(text, demoKey) || !strings.Contains(text, demoModel) {
			t.Errorf("%s has not the key %s and the model %s", name, demoKey, demoModel)
		}
		if strings.HasSuffix(name, ".json") && !json.Valid([]byte(text)) {
			t.Errorf("%s is not JSON", name)
		}
		if !strings.Contains(string(read(t, "clients/README.md")), filepath.Base(name)) && filepath.Base(name) != "README.md" {
			t.Errorf("README.md does not say where %s goes", name)
		}
	}
}

func TestClaudeCodeSettings(t *testing.T) {
	var settings struct{ Env map[string]string }
	if err := json.Unmarshal(read(t, "clients/settings.json"), &settings); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"ANTHROPIC_BASE_URL": "http://127.0.0.1:4000", "ANTHROPIC_AUTH_TOKEN": demoKey, "ANTHROPIC_MODEL": demoModel,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
	} {
		if settings.Env[key] != want {
			t.Errorf("%s is %q, want %q", key, settings.Env[key], want)
		}
	}
}

func TestCodexConfig(t *testing.T) {
	line := regexp.MustCompile(`^([a-z_]+) = ("[^"]*"|true|false)$`)
	values := map[string]string{}
	for text := range strings.Lines(string(read(t, "clients/config.toml"))) {
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' || text[0] == '[' {
			continue
		}
		m := line.FindStringSubmatch(text)
		if m == nil {
			t.Errorf("not a line of TOML that we know: %s", text)
			continue
		}
		values[m[1]] = strings.Trim(m[2], `"`)
	}
	for key, want := range map[string]string{
		"model": demoModel, "model_provider": "tracegate", "base_url": "http://127.0.0.1:4000/v1", "env_key": "GATEWAY_KEY",
		"wire_api": "responses", "supports_websockets": "false",
	} {
		if values[key] != want {
			t.Errorf("%s is %q, want %q", key, values[key], want)
		}
	}
}

func TestShellFilesParse(t *testing.T) {
	for _, name := range []string{"clients/env.sh", "clients/curl.sh"} {
		if out, err := exec.Command("sh", "-n", name).CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", name, err, out)
		}
	}
	for _, path := range []string{"/v1/chat/completions", "/v1/messages", "/v1/responses"} {
		if !strings.Contains(string(read(t, "clients/curl.sh")), "post "+path) {
			t.Errorf("curl.sh does not show %s", path)
		}
	}
}
