package configs

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// marked matches what gateway.yaml says of a key that does nothing, or not all, in this version.
var marked = regexp.MustCompile(`\((not active|only [^()]*) in this version\)`)

// markOf is the mark of a row.
func (row *pendingKey) markOf() string {
	if row.partly() {
		return "(only " + strings.Join(row.active, ", ") + " in this version)"
	}
	return "(not active in this version)"
}

// TestGatewayYAMLMarksWhatIsPending: every row of pendingKeys has its mark, and every mark its row.
func TestGatewayYAMLMarksWhatIsPending(t *testing.T) {
	lines := strings.Split(string(commented.ReplaceAll(read(t, "gateway.yaml"), []byte("$1"))), "\n")
	keys, seen, marks := keysOfLines(t, lines), map[string]bool{}, 0
	for _, at := range slices.Sorted(maps.Keys(keys)) {
		path, text := keys[at], lines[at]
		for above := at - 1; above >= 0 && strings.HasPrefix(strings.TrimSpace(lines[above]), "#"); above-- {
			text += lines[above]
		}
		have, want := marked.FindString(text), ""
		marks += len(marked.FindAllString(text, -1))
		for i := range pendingKeys {
			if pendingKeys[i].path == path {
				want, seen[path] = pendingKeys[i].markOf(), true
			}
		}
		if have != want {
			t.Errorf("line %d, %s: marked %q, want %q", at+1, path, have, want)
		}
	}
	for _, row := range pendingKeys {
		if !seen[row.path] {
			t.Errorf("%s has no line of its own", row.path)
		}
	}
	if all := len(marked.FindAllString(strings.Join(lines, "\n"), -1)); all != marks {
		t.Errorf("%d marks, but %d of them stand at a key", all, marks)
	}
}

// keysOfLines finds the outermost key of every line that has one.
func keysOfLines(t *testing.T, lines []string) map[int]string {
	d := &decoder{file: "gateway.yaml", dir: ".", env: testEnv, written: map[string]mark{}, bad: map[string]bool{}}
	root := d.document([]byte(strings.Join(lines, "\n")))
	if root == nil {
		t.Fatalf("gateway.yaml without its # is no YAML: %v", d.problems)
	}
	d.root(root, Default())
	keys := map[int]string{}
	for path, at := range d.written {
		if strings.HasSuffix(path, "]") { // an element
			continue
		}
		line, name := at.line-1, path[strings.LastIndex(path, ".")+1:]
		for !strings.Contains(lines[line]+" ", name+": ") { // a block is written where its first key is
			line--
		}
		if have, ok := keys[line]; !ok || len(path) < len(have) {
			keys[line] = path
		}
	}
	for line, path := range keys {
		keys[line] = elementPath(path)
	}
	return keys
}
