package configs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNonsenseEnds: no file makes the reader hang or answer without end. A hang shows
// as the test's own timeout.
func TestNonsenseEnds(t *testing.T) {
	fill := func(unit string, size int) []byte { return bytes.Repeat([]byte(unit), size/len(unit)) }
	const size = maxFile - 100
	var bomb strings.Builder
	bomb.WriteString("timeouts: &a0 {idle: 1s}\nretry:\n  <<: [*a0]\n")
	for i := range 30 {
		fmt.Fprintf(&bomb, "x%d: &a%d {<<: [%s]}\n", i, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	bomb.WriteString("cooldown: *a30\n")
	wide := "models:\n  - &m {name: m, aliases: &x [" + strings.Repeat("a,", 50000) + "], deployments: []}\n" + strings.Repeat("  - *m\n", 1000)
	for name, data := range map[string][]byte{
		"5 MB of text":      fill("nonsense ", 5<<20),
		"text":              fill("nonsense ", size),
		"lines":             fill("nonsense\n", size),
		"one word":          fill("k", 10),
		"brackets":          fill("[", size),
		"braces":            fill("{a: ", size),
		"indents":           []byte(indents(3000)),
		"dashes":            fill("- ", size),
		"colons":            fill("a: ", size),
		"comments":          fill("# comment\n", size),
		"comment in a list": append(append([]byte("models:\n"), fill("  # c\n", size)...), "  - x\n"...),
		"quotes":            append([]byte(`listen: "`), fill("x", size)...),
		"anchors":           fill("&a ", size),
		"zeros":             fill("\x00", size),
		"keys without end":  []byte(keys(150000)),
		"merge bomb":        []byte(bomb.String()),
		"alias bomb":        []byte(wide),
		"merge in itself":   []byte("timeouts: &a\n  <<: *a\n  idle: 1s\n"),
	} {
		t.Run(name, func(t *testing.T) {
			cfg, problems := Parse("x", data, nil)
			if cfg != nil || !hasErrors(problems) {
				t.Fatal("nonsense was accepted")
			}
			if len(problems) > maxProblems+1 {
				t.Errorf("%d problems", len(problems))
			}
			for _, p := range problems {
				if len(p.String()) > 2000 {
					t.Errorf("a problem of %d bytes: %.200s", len(p.String()), p)
				}
			}
		})
	}
}

func indents(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func keys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "key_number_%d: 1\n", i)
	}
	return b.String()
}

func TestFilesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	latin := filepath.Join(dir, "latin.yaml")
	if err := os.WriteFile(latin, []byte("listen: a\n# caf\xe9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty.yaml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing.yaml")
	for path, want := range map[string]string{
		latin:       latin + ":2:6: the file is not UTF-8",
		empty:       empty + ": the file is empty",
		missing:     missing + ": cannot read file: open ",
		dir:         dir + ": cannot read file ",
		"/dev/zero": "/dev/zero: cannot read file /dev/zero: it is larger than 4MiB",
	} {
		cfg, problems := Load(path)
		if cfg != nil || len(problems) != 1 || !strings.HasPrefix(problems[0].String(), want) {
			t.Errorf("%s gives %v, want %s", path, problems, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, name := range append(files, "gateway.yaml", "example.yaml") {
		f.Add(read(f, name), "timeouts.idle=5s")
	}
	f.Add([]byte("models: [&a {<<: *a}]"), "models[0].<<=[x]")
	f.Fuzz(func(t *testing.T, data []byte, set string) {
		cfg, problems := Parse("fuzz.yaml", data, nil, set)
		if (cfg == nil) != hasErrors(problems) {
			t.Fatalf("config %v with problems %v", cfg != nil, problems)
		}
		for _, p := range problems {
			if p.String() == "" || p.Message == "" {
				t.Fatalf("an empty problem: %+v", p)
			}
		}
		if cfg == nil {
			return
		}
		if _, err := cfg.MarshalJSON(); err != nil {
			t.Fatal(err)
		}
		for i := range cfg.Models {
			for j := range cfg.Models[i].Deployments {
				if d := &cfg.Models[i].Deployments[j]; d.URL == nil || d.Model == "" || d.Auth == "" || d.Timeouts.Idle < 0 {
					t.Fatalf("a deployment is not complete: %+v", d)
				}
			}
		}
	})
}
