package configs

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// structure fills a struct from a mapping. The key models comes last, for a
// deployment starts from the global timeouts, retry and cooldown.
func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string, cfg *Config) {
	fields := fieldsOf(v.Type())
	byKey := make(map[string]field, len(fields))
	known := make([]string, 0, len(fields))
	for _, f := range fields {
		byKey[f.key] = f
		known = append(known, f.key)
	}
	pairs := d.pairs(n, path, 0)
	if path == "" {
		slices.SortStableFunc(pairs, func(a, b pair) int { return compareBool(a.key.Value == "models", b.key.Value == "models") })
	}
	for _, p := range pairs {
		f, ok := byKey[p.key.Value]
		switch {
		case d.full:
			return
		case !ok:
			d.unknown(p.key, path, known)
		default:
			d.value(p.value, v.FieldByIndex(f.index), joinPath(path, f.key), f, cfg)
		}
	}
}

func (d *decoder) unknown(key *yaml.Node, path string, known []string) {
	text, meant := suggestion(key.Value, known)
	d.fail(key, joinPath(path, clip(key.Value)), "unknown key %q, %s", clip(key.Value), text)
	if meant != "" {
		d.bad[joinPath(path, meant)] = true
	}
}

// value fills one field, element or map value.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string, f field, cfg *Config) {
	if !d.visit(n, path) {
		return
	}
	set, overridden := d.sets[n]
	d.written[path] = d.markOf(n)
	n = d.follow(n)
	if overridden {
		d.sets[n] = set
	}
	null := n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
	switch kind := v.Kind(); {
	case v.Type() != timeType && (kind == reflect.Struct || kind == reflect.Pointer):
		d.object(n, v, path, null, cfg)
	case kind == reflect.Slice:
		d.list(n, v, path, f, null, cfg)
	case kind == reflect.Map:
		d.labels(n, v, path, null)
	case null:
		d.fail(n, path, "the key has no value, allowed is %s", wanted(f, v))
	default:
		d.scalar(n, v, path, f)
	}
}

// object fills a struct or a pointer to one. An empty value leaves the default.
func (d *decoder) object(n *yaml.Node, v reflect.Value, path string, null bool, cfg *Config) {
	switch {
	case null:
		delete(d.written, path)
	case n.Kind != yaml.MappingNode:
		d.fail(n, path, "%s is written, allowed is a mapping of keys", describe(n))
	case v.Kind() == reflect.Pointer:
		fresh := reflect.New(v.Type().Elem())
		prime(fresh.Interface(), cfg)
		d.structure(n, fresh.Elem(), path, cfg)
		v.Set(fresh)
	default:
		d.structure(n, v, path, cfg)
	}
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string, f field, null bool, cfg *Config) {
	if null {
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.fail(n, path, "%s is written, allowed is a list", describe(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		slot := out.Index(i)
		if slot.Kind() == reflect.Struct {
			prime(slot.Addr().Interface(), cfg)
		}
		at := fmt.Sprintf("%s[%d]", path, i)
		if slot.Kind() == reflect.Struct && d.follow(item).ShortTag() == "!!null" {
			d.fail(item, at, "the element is empty, allowed is a mapping of keys")
			continue
		}
		d.value(item, slot, at, f, cfg)
	}
	v.Set(out)
}

// labels fills a map of texts.
func (d *decoder) labels(n *yaml.Node, v reflect.Value, path string, null bool) {
	if null {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.fail(n, path, "%s is written, allowed is a mapping of labels", describe(n))
		return
	}
	out := map[string]string{}
	for _, p := range d.pairs(n, path, 0) {
		var text string
		at := joinPath(path, clip(p.key.Value))
		d.value(p.value, reflect.ValueOf(&text).Elem(), at, field{typ: reflect.TypeFor[string]()}, nil)
		out[p.key.Value] = text
	}
	v.Set(reflect.ValueOf(out))
}

// scalar reads one value by the type of its key.
func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string, f field) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, path, "%s is written, allowed is %s", describe(n), wanted(f, v))
		return
	}
	text, err := expand(n.Value, d.dir, d.env)
	if err != nil {
		d.fail(n, path, "%v", err)
		return
	}
	// A reference or an override has no YAML type of its own: its text is what counts.
	_, overridden := d.sets[n]
	typed := !overridden && text == n.Value
	if typed && !tagFits(n, v) {
		d.fail(n, path, "%s is written, allowed is %s", describe(n), wanted(f, v))
		return
	}
	// A value that is refused leaves the default, so that it causes no second complaint.
	before := reflect.New(v.Type()).Elem()
	before.Set(v)
	err = assign(v, text, f)
	if err == nil {
		err = d.check(v, path, f)
	}
	if err != nil {
		v.Set(before)
		d.fail(n, path, "%v", err)
	}
}

// tagFits: a quoted number is no number, and true is no text.
func tagFits(n *yaml.Node, v reflect.Value) bool {
	tag := n.ShortTag()
	quoted := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	switch {
	case tag == "!!binary" || strings.HasPrefix(tag, "!") && !strings.HasPrefix(tag, "!!"):
		return false
	case v.Kind() == reflect.String:
		return tag != "!!bool" && tag != "!!null"
	case v.Type() == timeType, v.Type() == durationType:
		return tag != "!!bool"
	case v.Kind() == reflect.Bool:
		return tag == "!!bool"
	}
	return !quoted && tag != "!!bool"
}

func assign(v reflect.Value, text string, f field) error {
	switch {
	case v.Type() == durationType:
		value, err := parseDuration(text)
		if err != nil {
			return err
		}
		v.SetInt(int64(value))
	case v.Type() == timeType:
		value, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return fmt.Errorf("%q is not a time, allowed is RFC 3339 such as 2027-01-01T00:00:00Z", clip(text))
		}
		v.Set(reflect.ValueOf(value))
	case f.tag.Get("unit") == "size":
		value, err := parseSize(text)
		if err != nil {
			return err
		}
		v.SetInt(value)
	default:
		return assignBasic(v, text, f)
	}
	return inRange(v, text, f)
}

func assignBasic(v reflect.Value, text string, f field) error {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
		return inEnum(text, f)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is written, allowed are true and false", clip(text))
		}
		v.SetBool(text == "true")
		return nil
	case reflect.Int, reflect.Int64:
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is written, allowed is %s", clip(text), wanted(f, v))
		}
		v.SetInt(value)
	case reflect.Float64:
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
			return fmt.Errorf("%q is written, allowed is %s", clip(text), wanted(f, v))
		}
		v.SetFloat(value)
	default:
		panic("BUG: no text form for " + v.Type().String())
	}
	return inRange(v, text, f)
}

func inEnum(text string, f field) error {
	enum := f.tag.Get("enum")
	if enum == "" {
		return nil
	}
	allowed := strings.Split(enum, "|")
	if slices.Contains(allowed, text) {
		return nil
	}
	are := "are"
	if len(allowed) == 1 {
		are = "is"
	}
	return fmt.Errorf("%q is unknown, allowed %s %s", clip(text), are, strings.Join(allowed, ", "))
}
