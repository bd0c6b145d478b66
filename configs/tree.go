package configs

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// KeyInfo describes one key of the configuration tree.
type KeyInfo struct {
	// Path with [] for the elements of a list: models[].deployments[].weight.
	Path string
	// Kind: text, integer, number, true or false, duration, size, time, list, mapping, ...
	Kind string
	// Allowed values of an enumeration.
	Allowed []string
	// Default as it would be written in the file, or in words; "" = none.
	Default string
	// Literal: Default is a value and not words.
	Literal bool
	// Pending says that the key does nothing in this version, and what happens instead; "" = it is active.
	Pending string
	// Owner and Field are the Go struct and its field, whose comment is the documentation.
	Owner, Field string
}

// Keys lists every key of the tree in the order of the file.
func Keys() []KeyInfo {
	cfg := Default()
	var out []KeyInfo
	walkKeys(reflect.ValueOf(cfg).Elem(), "", cfg, &out)
	return out
}

func walkKeys(v reflect.Value, path string, cfg *Config, out *[]KeyInfo) {
	for _, f := range fieldsOf(v.Type()) {
		value := v.FieldByIndex(f.index)
		info := KeyInfo{Path: joinPath(path, f.key), Kind: kindOf(f), Owner: f.owner, Field: f.name}
		info.Pending = pendingRow(info.Path).inDocs()
		if enum := f.tag.Get("enum"); enum != "" {
			info.Allowed = strings.Split(enum, "|")
		}
		inner, elem := value, f.typ
		switch elem.Kind() {
		case reflect.Pointer:
			elem = elem.Elem()
		case reflect.Slice:
			elem = elem.Elem()
		}
		if elem.Kind() == reflect.Struct && elem != timeType && elem.PkgPath() == configType.PkgPath() {
			*out = append(*out, info)
			sub := info.Path
			if f.typ.Kind() != reflect.Struct {
				inner = reflect.New(elem)
				prime(inner.Interface(), cfg)
				inner = inner.Elem()
			}
			if f.typ.Kind() == reflect.Slice {
				sub += "[]"
			}
			walkKeys(inner, sub, cfg, out)
			continue
		}
		info.Default, info.Literal = defaultText(value, f), f.tag.Get("default") == ""
		*out = append(*out, info)
	}
}

// defaultText is how the value would be written; "" for one that means unset.
func defaultText(v reflect.Value, f field) string {
	if text := f.tag.Get("default"); text != "" {
		return text
	}
	optional := f.tag.Get("optional") != "" || f.tag.Get("min") == "1"
	if v.IsZero() && (optional || (v.Kind() != reflect.Bool && v.Type() != durationType && !isNumeric(v))) {
		return ""
	}
	node, ok := nodeOf(v, f)
	if !ok {
		return ""
	}
	return node.Value
}

func isNumeric(v reflect.Value) bool { return v.CanInt() || v.CanFloat() }

var (
	configType   = reflect.TypeFor[Config]()
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	secretType   = reflect.TypeFor[Secret]()
	urlType      = reflect.TypeFor[URL]()
)

func kindOf(f field) string {
	switch {
	case f.typ == durationType:
		return "duration"
	case f.typ == timeType:
		return "time"
	case f.typ == secretType:
		return "secret"
	case f.typ == urlType:
		return "URL"
	case f.tag.Get("unit") == "size":
		return "size"
	}
	switch f.typ.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "list"
	}
	return "mapping"
}

// MarshalYAML writes the effective configuration with the file's keys and order, in
// the file's notation, secrets redacted.
func (c *Config) MarshalYAML() (any, error) {
	node, _ := nodeOf(reflect.ValueOf(c).Elem(), field{})
	return node, nil
}

// MarshalJSON is MarshalYAML's tree as JSON.
func (c *Config) MarshalJSON() ([]byte, error) {
	node, _ := nodeOf(reflect.ValueOf(c).Elem(), field{})
	return appendJSON(nil, node), nil
}

// nodeOf is false for a value that is absent.
func nodeOf(v reflect.Value, f field) (*yaml.Node, bool) {
	switch v.Type() {
	case durationType:
		return scalar("!!str", formatDuration(time.Duration(v.Int()))), true
	case timeType:
		t := v.Interface().(time.Time)
		return scalar("!!str", t.Format(time.RFC3339Nano)), !t.IsZero()
	case secretType, urlType:
		return scalar("!!str", v.Interface().(fmt.Stringer).String()), !v.IsZero()
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil, false
		}
		return nodeOf(v.Elem(), f)
	case reflect.Bool:
		return scalar("!!bool", strconv.FormatBool(v.Bool())), true
	case reflect.Int, reflect.Int64:
		if f.tag.Get("unit") == "size" {
			return scalar("!!str", formatSize(v.Int())), true
		}
		return scalar("!!int", strconv.FormatInt(v.Int(), 10)), true
	case reflect.Float64:
		return scalar("!!float", strconv.FormatFloat(v.Float(), 'f', -1, 64)), true
	case reflect.String:
		return scalar("!!str", v.String()), v.String() != ""
	case reflect.Slice:
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for i := range v.Len() {
			if item, ok := nodeOf(v.Index(i), f); ok {
				list.Content = append(list.Content, item)
			}
		}
		return list, !v.IsNil()
	case reflect.Map, reflect.Struct:
		return mappingOf(v)
	}
	panic("BUG: no YAML form for " + v.Type().String())
}

func mappingOf(v reflect.Value) (*yaml.Node, bool) {
	m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if v.Kind() == reflect.Map {
		for _, key := range slices.Sorted(maps.Keys(v.Interface().(map[string]string))) {
			m.Content = append(m.Content, scalar("!!str", key), scalar("!!str", v.MapIndex(reflect.ValueOf(key)).String()))
		}
		return m, v.Len() > 0
	}
	for _, f := range fieldsOf(v.Type()) {
		value := v.FieldByIndex(f.index)
		if optionalZero(value, f) {
			continue
		}
		if node, ok := nodeOf(value, f); ok {
			m.Content = append(m.Content, scalar("!!str", f.key), node)
		}
	}
	return m, true
}

// optionalZero: a number whose 0 means unset is left out.
func optionalZero(v reflect.Value, f field) bool {
	return v.IsZero() && isNumeric(v) && (f.tag.Get("above") != "" || f.tag.Get("optional") != "")
}

func scalar(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}

func appendJSON(b []byte, n *yaml.Node) []byte {
	switch n.Kind {
	case yaml.MappingNode:
		b = append(b, '{')
		for i := 0; i < len(n.Content); i += 2 {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendJSON(b, n.Content[i]), ':')
			b = appendJSON(b, n.Content[i+1])
		}
		return append(b, '}')
	case yaml.SequenceNode:
		b = append(b, '[')
		for i, item := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item)
		}
		return append(b, ']')
	}
	if n.Tag != "!!str" {
		return append(b, n.Value...)
	}
	text, err := json.Marshal(n.Value)
	if err != nil {
		panic("BUG: cannot encode a string: " + err.Error())
	}
	return append(b, text...)
}
