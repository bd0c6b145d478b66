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
	pending := Pending(cfg)
	for _, p := range pending {
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
		warned := slices.ContainsFunc(pending, func(p Problem) bool { return elementPath(p.Path) == row.path })
		if warned != (written && asked) {
			t.Errorf("%s: written %v, asks for something %v, warned %v", row.path, written, asked, warned)
		}
	}
}

func TestPendingIsSilentAboutDefaults(t *testing.T) {
	if p := Pending(Default()); len(p) > 0 {
		t.Errorf("defaults warn: %v", p)
	}
	text, _, _ := strings.Cut(string(read(t, "testdata/asks_for_nothing.warn.yaml")), wantMark)
	cfg, _ := Parse("x", []byte(text), nil)
	if p := Pending(cfg); len(p) > 0 {
		t.Errorf("keys that ask for nothing warn: %v", p)
	}
}
