package configs

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pendingKey is a key that is read and checked but does nothing in this version.
type pendingKey struct {
	// path with [] for any element.
	path string
	// active are the values that this version does; unset ones always are.
	active []string
	// instead is what happens instead.
	instead string
}

// pendingKeys is the one list of what is not active yet. A feature that becomes
// active takes its row away.
var pendingKeys = []pendingKey{
	{"models[].canary", nil, "no verdict is given"},
	{"models[].slo", nil, "no promise is judged"},
	{"models[].deployments[].max_num_seqs", nil, "nothing is judged by it"},
	{"models[].deployments[].engine_topology", []string{"plain"}, "nothing is judged by it"},
	{"models[].deployments[].replicas", nil, "nothing is judged by it"},
	{"models[].deployments[].price", nil, "lowest_cost compares it; no cost is counted"},
	{"models[].deployments[].probe", nil, "no probe is sent"},
	{"models[].deployments[].model_in_response", []string{"upstream"}, "answers keep the upstream's name"},
	{"models[].deployments[].metrics_url", []string{"off"}, "no engine metrics are read"},
	{"models[].deployments[].gpus", nil, "no GPU signals are read"},
	{"models[].deployments[].system_messages", []string{"inline"}, "they stay inline"},
	{"models[].deployments[].strip_workspace_metadata", nil, "nothing is removed"},
	{"models[].deployments[].strip_billing_block", nil, "nothing is removed"},
	{"models[].deployments[].retry.suspect_grace", nil, "open streams wait for their limits"},
	{"models[].deployments[].cooldown.when_all_cooling", nil, "the global one decides"},
	{"retry.suspect_grace", nil, "open streams wait for their limits"},
	{"tenants[].limits", nil, "nothing is limited"},
	{"anonymous.limits", nil, "nothing is limited"},
	{"redis", nil, "each replica is on its own"},
	{"timelines.store", []string{"memory"}, "timelines are kept in memory"},
	{"timelines.dir", nil, "timelines are kept in memory"},
	{"timelines.max_age", nil, "timelines are kept in memory, the newest of them"},
	{"timelines.max_size", nil, "timelines are kept in memory, the newest of them"},
	{"timelines.sample", nil, "timelines are kept in memory, all alike"},
	{"timelines.redis_ttl", nil, "each replica finds its own"},
	{"timelines.victorialogs", nil, "timelines are kept in memory"},
	{"capture", []string{"none"}, "nothing is captured"},
	{"telemetry.otlp", nil, "no spans are sent"},
	{"telemetry.metrics.histograms", []string{"classic"}, "histograms are classic"},
	{"telemetry.metrics.legacy_ms", nil, "nothing is added"},
	{"diagnose", nil, "no findings are looked for"},
}

// pendingRow is the row that covers a key: its own, or that of a block around it.
func pendingRow(key string) *pendingKey {
	for i := range pendingKeys {
		row := pendingKeys[i].path
		if key == row || strings.HasPrefix(key, row+".") || strings.HasPrefix(key, row+"[]") {
			return &pendingKeys[i]
		}
	}
	return nil
}

// asNothing are active values that only say that the feature is not wanted: nothing of
// it is active.
var asNothing = []string{"1", "plain"}

// partly reports whether some values of the key do something.
func (row *pendingKey) partly() bool {
	return row.active != nil && !slices.Contains(asNothing, row.active[0])
}

// inDocs is what the documentation of a key says about it.
func (row *pendingKey) inDocs() string {
	if row == nil {
		return ""
	}
	if row.partly() {
		return "In this version only " + strings.Join(row.active, ", ") + " is active; otherwise " + row.instead
	}
	return "Not active in this version: " + row.instead
}

// pending warns about every key that was written and does nothing in this version.
// A value that asks for nothing (0, false, an empty list) is no reason to warn.
func pending(cfg *Config) []Problem {
	var out []Problem
	for path, at := range cfg.written {
		key := elementPath(path)
		for _, row := range pendingKeys {
			if row.path != key || !row.asks(cfg, path) {
				continue
			}
			p := at.problem(cfg.file, path, "it is not active in this version: "+row.instead)
			p.Warning = true
			out = append(out, p)
		}
	}
	return sorted(out)
}

// asks reports whether the value at the path wants the feature.
func (row pendingKey) asks(cfg *Config, path string) bool {
	v, ok := valueAt(reflect.ValueOf(cfg).Elem(), path)
	if !ok || asksNothing(v) || v.Kind() == reflect.Struct && !cfg.writtenBelow(path) {
		return false
	}
	return !slices.Contains(row.active, fmt.Sprint(v.Interface()))
}

// writtenBelow reports whether any key of the block was written; one that has only
// defaults asks for nothing.
func (c *Config) writtenBelow(path string) bool {
	for at := range c.written {
		if strings.HasPrefix(at, path+".") {
			return true
		}
	}
	return false
}

func asksNothing(v reflect.Value) bool {
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

var indexPattern = regexp.MustCompile(`\[\d+\]`)

// elementPath writes [] for every index.
func elementPath(path string) string { return indexPattern.ReplaceAllLiteralString(path, "[]") }

// valueAt finds the value of a path such as models[0].queue.
func valueAt(v reflect.Value, path string) (reflect.Value, bool) {
	for _, part := range strings.Split(path, ".") {
		key, index, indexed := strings.Cut(part, "[")
		for v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			return v, false
		}
		fields := fieldsOf(v.Type())
		at := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
		if at < 0 {
			return v, false
		}
		v = v.FieldByIndex(fields[at].index)
		if indexed {
			i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
			if err != nil || v.Kind() != reflect.Slice || i >= v.Len() {
				return v, false
			}
			v = v.Index(i)
		}
	}
	return v, true
}
