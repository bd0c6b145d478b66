package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const (
	// maxProblems bounds the answer to a file of nonsense.
	maxProblems = 500
	// maxNodes bounds what aliases and merge keys can multiply.
	maxNodes = 1 << 18
)

// decoder turns YAML nodes into the tree. It goes by the Go type of each key, so a
// cyclic alias cannot lead it round: the tree of types is finite.
type decoder struct {
	file, dir string
	env       func(string) (string, bool)
	problems  []Problem
	// written has where each key stands; sets what --set put there.
	written map[string]mark
	sets    map[*yaml.Node]string
	// bad has the paths that could not be read: no further complaint about them.
	bad   map[string]bool
	nodes int
	full  bool
}

func (d *decoder) report(p Problem) {
	if d.full {
		return
	}
	if len(d.problems) >= maxProblems {
		d.full = true
		p = Problem{File: d.file, Line: p.Line, Col: p.Col, Message: fmt.Sprintf("there are more than %d problems, the rest is not shown", maxProblems)}
	}
	d.problems = append(d.problems, p)
}

// fail reports a problem at a node and marks the path as unreadable.
func (d *decoder) fail(n *yaml.Node, path, format string, args ...any) {
	d.bad[path] = true
	d.report(d.markOf(n).problem(d.file, path, fmt.Sprintf(format, args...)))
}

func (d *decoder) markOf(n *yaml.Node) mark {
	if set, ok := d.sets[n]; ok {
		return mark{set: set}
	}
	return mark{line: n.Line, col: n.Column}
}

// document reads the one YAML document of the file; nil when there is none.
func (d *decoder) document(data []byte) (root *yaml.Node) {
	if len(data) > maxFile {
		d.report(Problem{File: d.file, Message: fmt.Sprintf("the file is larger than %s", formatSize(maxFile))})
		return nil
	}
	if line, col, wrong := badText(data); wrong != "" {
		d.report(Problem{File: d.file, Line: line, Col: col, Message: wrong})
		return nil
	}
	// The YAML reader has no promise not to panic on foreign bytes.
	defer func() {
		if p := recover(); p != nil {
			d.report(Problem{File: d.file, Message: fmt.Sprintf("cannot read the YAML: %v", p)})
			root = nil
		}
	}()
	reader := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	if err := reader.Decode(&doc); err != nil {
		d.syntax(err, data)
		return nil
	}
	switch err := reader.Decode(&next); {
	case err == nil:
		d.report(Problem{File: d.file, Line: next.Line, Col: max(next.Column, 1), Message: "a second document begins here, allowed is one"})
		return nil
	case !errors.Is(err, io.EOF):
		d.syntax(err, data)
		return nil
	}
	root = doc.Content[0]
	switch {
	case root.Kind == yaml.ScalarNode && root.Tag == "!!null":
		d.report(Problem{File: d.file, Line: root.Line, Col: root.Column, Message: "the file is empty, at least models is needed"})
		return nil
	case root.Kind != yaml.MappingNode:
		d.report(Problem{File: d.file, Line: root.Line, Col: root.Column, Message: fmt.Sprintf("the file holds %s, allowed is a mapping of keys such as listen and models", describe(root))})
		return nil
	}
	return root
}

var (
	yamlLine    = regexp.MustCompile(`^yaml: line (\d+): `)
	yamlUnknown = regexp.MustCompile(`^yaml: unknown anchor '([^']+)'`)
)

// syntax reports what the YAML reader says, with the position that it gives or hints at.
func (d *decoder) syntax(err error, data []byte) {
	if errors.Is(err, io.EOF) {
		d.report(Problem{File: d.file, Message: "the file is empty, at least models is needed"})
		return
	}
	p := Problem{File: d.file, Message: "not valid YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
		p.Col = 1
		p.Message = "not valid YAML: " + err.Error()[len(m[0]):]
	} else if m := yamlUnknown.FindStringSubmatch(err.Error()); m != nil {
		if at := bytes.Index(data, []byte("*"+m[1])); at >= 0 {
			p.Line, p.Col = lineCol(data, at)
		}
	}
	d.report(p)
}

// badText finds the first byte that YAML cannot have.
func badText(data []byte) (line, col int, wrong string) {
	for at := 0; at < len(data); {
		r, n := utf8.DecodeRune(data[at:])
		switch {
		case r == utf8.RuneError && n == 1:
			line, col = lineCol(data, at)
			return line, col, "the file is not UTF-8"
		case r < ' ' && r != '\n' && r != '\r' && r != '\t', r >= 0x7f && r < 0xa0 && r != 0x85, r == 0xfffe, r == 0xffff:
			line, col = lineCol(data, at)
			return line, col, fmt.Sprintf("the file holds the control character %U, allowed is text", r)
		}
		at += n
	}
	return 0, 0, ""
}

func lineCol(data []byte, at int) (line, col int) {
	start := bytes.LastIndexByte(data[:at], '\n') + 1
	return bytes.Count(data[:at], []byte("\n")) + 1, utf8.RuneCount(data[start:at]) + 1
}

func (d *decoder) root(n *yaml.Node, cfg *Config) {
	d.written[""] = d.markOf(n)
	d.structure(n, reflect.ValueOf(cfg).Elem(), "", cfg)
}

// pair is one key of a mapping after merge keys have been resolved.
type pair struct{ key, value *yaml.Node }

// pairs flattens a mapping: its own keys win over merged ones, an earlier merge over
// a later one, as in YAML 1.1.
func (d *decoder) pairs(n *yaml.Node, path string, depth int) []pair {
	if depth > 50 {
		d.fail(n, path, "merge keys are nested too deeply")
		return nil
	}
	var own, merged []pair
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch first := seen[key.Value]; {
		case key.Kind == yaml.ScalarNode && key.Tag == "!!merge":
			merged = append(merged, d.merge(value, path, depth)...)
		case key.Kind != yaml.ScalarNode:
			d.fail(key, path, "%s cannot be a key, allowed is text", describe(key))
		case first != nil:
			d.fail(key, joinPath(path, clip(key.Value)), "the key is written twice, first in line %d", first.Line)
		default:
			seen[key.Value] = key
			own = append(own, pair{key, value})
		}
	}
	for _, p := range merged {
		if seen[p.key.Value] == nil {
			seen[p.key.Value] = p.key
			own = append(own, p)
		}
	}
	return own
}

func (d *decoder) merge(value *yaml.Node, path string, depth int) []pair {
	target := d.follow(value)
	switch {
	case !d.visit(value, path):
		return nil
	case target.Kind == yaml.MappingNode:
		return d.pairs(target, path, depth+1)
	case target.Kind == yaml.SequenceNode:
		var out []pair
		for _, item := range target.Content {
			if m := d.follow(item); m.Kind == yaml.MappingNode && d.visit(item, path) {
				out = append(out, d.pairs(m, path, depth+1)...)
			} else if !d.full {
				d.fail(item, path, "a merge key takes mappings, not %s", describe(m))
			}
		}
		return out
	}
	d.fail(value, path, "a merge key takes a mapping or a list of mappings, not %s", describe(target))
	return nil
}

// follow resolves an alias. The YAML reader only lets it name an earlier anchor.
func (d *decoder) follow(n *yaml.Node) *yaml.Node {
	for range 100 {
		if n.Kind != yaml.AliasNode {
			break
		}
		n = n.Alias
	}
	return n
}

// visit counts nodes, so that aliases of aliases cannot blow up.
func (d *decoder) visit(n *yaml.Node, path string) bool {
	d.nodes++
	if d.nodes == maxNodes {
		d.fail(n, path, "anchors and merge keys make the file larger than %d values", maxNodes)
		d.full = true
	}
	return d.nodes < maxNodes && !d.full
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// lastKey is the key at the end of a path.
func lastKey(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// describe says what a node is, for messages.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!bool":
		return "true or false"
	case "!!int", "!!float":
		return "a number"
	case "!!timestamp":
		return "a time"
	case "!!str":
		return "text"
	}
	return "a value of type " + clip(n.Tag)
}
