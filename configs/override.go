package configs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const setPrefix = "--set "

// setFile is what a problem of an override shows in place of a file and position.
// The value of a key that holds a credential is left out.
func setFile(set string) string {
	path, _, _ := strings.Cut(set, "=")
	switch lastKey(path) {
	case "api_key", "secret", "url", "proxy_url", "insert_url", "select_url", "endpoint", "webhook":
		return setPrefix + path + "=" + redacted
	}
	return setPrefix + clip(set)
}

// override applies path=value overrides to a copy of the tree, so that an anchor's
// other uses keep their value. What it writes goes through the same checks as the file.
func (d *decoder) override(root *yaml.Node, sets []string) *yaml.Node {
	if len(sets) == 0 {
		return root
	}
	d.sets = map[*yaml.Node]string{}
	for _, set := range sets {
		if err := d.setOne(root, set); err != nil {
			d.report(Problem{File: setFile(set), Message: err.Error()})
		}
	}
	return root
}

func (d *decoder) setOne(root *yaml.Node, set string) error {
	path, text, ok := strings.Cut(set, "=")
	if !ok || path == "" {
		return fmt.Errorf("it has no path=value, write for example timeouts.idle=5s")
	}
	value, err := valueNode(text)
	if err != nil {
		return err
	}
	slot, err := d.find(root, path, set)
	if err != nil {
		return err
	}
	*slot = *value
	d.claim(slot, set)
	return nil
}

// claim says that a node and all below it come from an override.
func (d *decoder) claim(n *yaml.Node, set string) {
	d.sets[n] = set
	for _, child := range n.Content {
		d.claim(child, set)
	}
}

// valueNode reads the value: a list or mapping in brackets as YAML, all else as text.
func valueNode(text string) (*yaml.Node, error) {
	if strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			return nil, fmt.Errorf("cannot read the value: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		return doc.Content[0], nil
	}
	return scalar("!!str", text), nil
}

// find walks to the node that the path names and makes missing mappings on its way.
func (d *decoder) find(n *yaml.Node, path, set string) (*yaml.Node, error) {
	for path != "" {
		detach(n)
		var err error
		switch {
		case path[0] == '[':
			inner, rest, ok := strings.Cut(path[1:], "]")
			if !ok {
				return nil, fmt.Errorf("%q has no closing bracket", path)
			}
			path = strings.TrimPrefix(rest, ".")
			n, err = element(n, inner)
		case n.Kind == yaml.SequenceNode:
			n, path, err = elementByName(n, path)
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			key := path[:end]
			path = strings.TrimPrefix(path[end:], ".")
			n, err = d.member(n, key, set)
		}
		if err != nil {
			return nil, err
		}
	}
	return n, nil
}

// member finds or makes the value of a key.
func (d *decoder) member(n *yaml.Node, key, set string) (*yaml.Node, error) {
	if n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!null" || n.Value == "") {
		*n = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column}
	}
	if n.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("there is no key %s: %s is there", key, describe(n))
	}
	// What is wrong with the mapping itself is reported when the tree is read.
	quiet := &decoder{bad: map[string]bool{}}
	for _, p := range quiet.pairs(n, "", 0) {
		if p.key.Value != key {
			continue
		}
		if slices.Contains(n.Content, p.key) {
			return p.value, nil
		}
		// A merged key: it becomes the mapping's own, the anchor stays as it is.
		own := clone(p.value, map[*yaml.Node]bool{})
		n.Content = append(n.Content, p.key, own)
		return own, nil
	}
	name, value := scalar("!!str", key), scalar("!!null", "")
	d.sets[name], d.sets[value] = set, set
	n.Content = append(n.Content, name, value)
	return value, nil
}

func element(n *yaml.Node, inner string) (*yaml.Node, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("[%s] needs a list, %s is there", inner, describe(n))
	}
	i, err := strconv.Atoi(inner)
	if err != nil {
		found, rest, err := elementByName(n, inner)
		if err == nil && rest != "" {
			err = fmt.Errorf("the list has no element %s", inner)
		}
		return found, err
	}
	if i < 0 || i >= len(n.Content) {
		return nil, fmt.Errorf("the list has no element [%d], it has %d", i, len(n.Content))
	}
	return n.Content[i], nil
}

// elementByName finds the element whose name begins the path. Names may have dots:
// the longest one wins.
func elementByName(n *yaml.Node, path string) (*yaml.Node, string, error) {
	var found *yaml.Node
	best := ""
	for _, item := range n.Content {
		name := nameOf(item)
		rest, ok := strings.CutPrefix(path, name)
		if ok && name != "" && len(name) > len(best) && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			found, best = item, name
		}
	}
	if found == nil {
		return nil, "", fmt.Errorf("the list has no element named %s", clip(path))
	}
	return found, strings.TrimPrefix(path[len(best):], "."), nil
}

func nameOf(n *yaml.Node) string {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return ""
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "name" {
			return n.Content[i+1].Value
		}
	}
	return ""
}

// detach turns an alias into a copy of what it names.
func detach(n *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		*n = *clone(n.Alias, map[*yaml.Node]bool{})
	}
}

// clone copies a node deeply; aliases inside stay aliases.
func clone(n *yaml.Node, open map[*yaml.Node]bool) *yaml.Node {
	if open[n] {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: n.Line, Column: n.Column}
	}
	open[n] = true
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		c.Content[i] = clone(child, open)
	}
	delete(open, n)
	return &c
}
