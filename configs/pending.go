package configs

import (
	"fmt"
	"reflect"
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
	{"models[].routing.strategy", []string{"least_inflight"}, "least_inflight is used"},
	{"models[].fallbacks", nil, "no other model is tried"},
	{"models[].context_fallbacks", nil, "no other model is tried"},
	{"models[].long_context", nil, "the prompt stays with its model"},
	{"models[].canary", nil, "no verdict is given"},
	{"models[].queue.max_waiting", nil, "nobody waits"},
	{"models[].queue.max_wait", nil, "nobody waits"},
	{"models[].deployments[].probe", nil, "no probe is sent"},
	{"models[].deployments[].gpus", nil, "no GPU signals are read"},
	{"models[].deployments[].system_messages", []string{"inline"}, "they stay inline"},
	{"models[].deployments[].strip_workspace_metadata", nil, "nothing is removed"},
	{"models[].deployments[].strip_billing_block", nil, "nothing is removed"},
	{"tenants[].limits", nil, "nothing is limited"},
	{"anonymous.limits", nil, "nothing is limited"},
	{"redis", nil, "each replica is on its own"},
	{"timelines.store", []string{"memory"}, "timelines are kept in memory"},
	{"capture", []string{"none"}, "nothing is captured"},
	{"telemetry.otlp", nil, "no spans are sent"},
	{"diagnose.webhook", nil, "nothing is sent"},
}

// Pending warns about every key that was written and does nothing in this version.
// A value that asks for nothing (0, false, an empty list) is no reason to warn.
func Pending(cfg *Config) []Problem {
	var out []Problem
	for path, at := range cfg.written {
		key := elementPath(path)
		for _, row := range pendingKeys {
			if row.path != key || !row.asks(cfg, path) {
				continue
			}
			p := Problem{
				File: cfg.file, Line: at.line, Col: at.col, Path: path, Warning: true,
				Message: "it is not active in this version: " + row.instead,
			}
			if at.set != "" {
				p.File, p.Line, p.Col = setFile(at.set), 0, 0
			}
			out = append(out, p)
		}
	}
	return sorted(out)
}

// asks reports whether the value at the path wants the feature.
func (row pendingKey) asks(cfg *Config, path string) bool {
	v, ok := valueAt(reflect.ValueOf(cfg).Elem(), path)
	if !ok || asksNothing(v) {
		return false
	}
	for _, value := range row.active {
		if fmt.Sprint(v.Interface()) == value {
			return false
		}
	}
	return true
}

func asksNothing(v reflect.Value) bool {
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

// elementPath writes [] for every index.
func elementPath(path string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(path, '[')
		end := strings.IndexByte(path, ']')
		if i < 0 || end < i {
			b.WriteString(path)
			return b.String()
		}
		b.WriteString(path[:i] + "[]")
		path = path[end+1:]
	}
}

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
		found := false
		for _, f := range fieldsOf(v.Type()) {
			if f.key == key {
				v, found = v.FieldByIndex(f.index), true
				break
			}
		}
		if !found {
			return v, false
		}
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
