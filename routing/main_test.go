package routing

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"tracegate/configs"
	"tracegate/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// table builds the table of one model m with an alias, whose deployments have the given further keys, as YAML flows
// such as "weight: 2"; their names are d0, d1 and so on.
func table(t testing.TB, previous *Table, deployments ...string) *Table {
	t.Helper()
	return tableBy(t, previous, LeastInflight, deployments...)
}

// tableBy is table with a strategy.
func tableBy(t testing.TB, previous *Table, strategy string, deployments ...string) *Table {
	t.Helper()
	var yaml strings.Builder
	yaml.WriteString("models:\n  - name: m\n    aliases: [z-name, a-name]\n    routing: {strategy: " + strategy + "}\n    deployments:\n")
	for i, keys := range deployments {
		if keys != "" {
			keys = ", " + keys
		}
		fmt.Fprintf(&yaml, "      - {name: d%d, base_url: \"http://127.0.0.1:%d\"%s}\n", i, i+1, keys)
	}
	return parse(t, previous, yaml.String())
}

// modelBy is the model of tableBy; its chances are the same in every run.
func modelBy(t testing.TB, strategy string, deployments ...string) *Model {
	t.Helper()
	m := model(t, tableBy(t, nil, strategy, deployments...))
	m.random = rand.New(rand.NewPCG(1, 2))
	return m
}

func parse(t testing.TB, previous *Table, yaml string) *Table {
	t.Helper()
	cfg, problems := configs.Parse("test.yaml", []byte(yaml), nil)
	if cfg == nil {
		t.Fatalf("the test's configuration is wrong: %v\n%s", problems, yaml)
	}
	return NewTable(cfg, previous)
}

func model(t testing.TB, all *Table) *Model {
	t.Helper()
	m, ok := all.Model("m")
	if !ok {
		t.Fatal("there is no model m")
	}
	return m
}

// load takes n places at a deployment and keeps them.
func load(d *Deployment, n int) {
	for range n {
		place(d)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// place takes a place where there is one.
func place(d *Deployment) Permit {
	p, ok := d.Begin()
	if !ok {
		panic("no place at " + d.Name())
	}
	return p
}

// end gives a place back after an attempt that ended so, with so many generated tokens.
func end(p *Permit, result trace.Result, tokens int64) {
	p.End(End{Result: result, Prompt: -1, Output: tokens})
}
