package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tracegate/trace"
)

const module = "tracegate/"

// row is one package of the table.
type row struct {
	all     bool
	imports []string
}

// table reads the packages of architecture.md.
func table(t *testing.T) map[string]row {
	t.Helper()
	text, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]row{}
	line := regexp.MustCompile("(?m)^\\| *(?:\\d|-) *\\| *`([^`]+)` *\\|[^|]*\\| *([^|]*?) *\\|$")
	for _, m := range line.FindAllStringSubmatch(string(text), -1) {
		r := row{all: m[2] == "all"}
		if m[2] != "-" && !r.all {
			r.imports = strings.Fields(m[2])
		}
		rows[m[1]] = r
	}
	if len(rows) == 0 {
		t.Fatal("architecture.md has no table of packages")
	}
	return rows
}

// owner is the row that a package belongs to: its own, or that of the package
// it is a program or a private part of.
func owner(rows map[string]row, pkg string) string {
	for p := pkg; p != "."; p = filepath.Dir(p) {
		if _, ok := rows[p]; ok {
			return p
		}
	}
	return ""
}

func TestImportsGoDownTheTable(t *testing.T) {
	rows := table(t)
	seen := map[string]bool{}
	eachGoFile(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		pkg := filepath.Dir(path)
		from := owner(rows, pkg)
		if from == "" {
			t.Errorf("%s: package %s has no row in the table", path, pkg)
			return
		}
		seen[from] = true
		for _, to := range importsOf(t, path) {
			target := owner(rows, to)
			if target != from && !rows[from].all && !slices.Contains(rows[from].imports, target) {
				t.Errorf("%s: %s may not import %s", path, from, to)
			}
		}
	})
	for pkg := range rows {
		if !seen[pkg] {
			t.Errorf("the table has package %s, which does not exist", pkg)
		}
	}
}

func eachGoFile(t *testing.T, f func(path string)) {
	t.Helper()
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "docs" || name == "tools" || name == "bin") {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".go") {
			f(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func importsOf(t *testing.T, path string) (ours []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", path), nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range file.Imports {
		if p, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module); ok {
			ours = append(ours, p)
		}
	}
	return ours
}

func TestFilesAndFunctionsStaySmall(t *testing.T) {
	vague := regexp.MustCompile(`(^|/)(utils?|helpers?|common|misc|types|managers?)(_test)?\.go$`)
	eachGoFile(t, func(path string) {
		text, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n > 400 {
			t.Errorf("%s has %d lines, at most 400 are allowed", path, n)
		}
		if vague.MatchString(path) {
			t.Errorf("%s: the name says nothing", path)
		}
		for name, n := range functionsOf(t, path) {
			if n > 60 {
				t.Errorf("%s: %s has %d lines, at most 60 are allowed", path, name, n)
			}
		}
	})
}

// functionsOf gives the lines of each function of a file. The rows of a test's table do not count.
func functionsOf(t *testing.T, path string) map[string]int {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, filepath.Join("..", path), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	lines := func(n ast.Node) int { return fset.Position(n.End()).Line - fset.Position(n.Pos()).Line }
	out := map[string]int{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		n := lines(f) + 1
		ast.Inspect(f, func(node ast.Node) bool {
			table, ok := node.(*ast.CompositeLit)
			if ok && strings.HasSuffix(path, "_test.go") {
				n -= lines(table)
			}
			return !ok
		})
		out[f.Name.Name] = max(out[f.Name.Name], n)
	}
	return out
}

func TestStateMachinePictureIsCurrent(t *testing.T) {
	text, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), strings.TrimSpace(trace.Mermaid())) {
		t.Errorf("the picture in architecture.md is not the one that trace.Mermaid draws:\n%s", trace.Mermaid())
	}
}

// Every test that the list of invariants names exists.
func TestInvariantsNameExistingTests(t *testing.T) {
	text, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, ok := strings.Cut(string(text), "\n## Invariants\n")
	if !ok {
		t.Fatal("architecture.md lists no invariants")
	}
	names := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(list, -1)
	if len(names) == 0 {
		t.Fatal("no invariant names its test")
	}
	missing := map[string]bool{}
	for _, n := range names {
		missing[n[1]] = true
	}
	eachGoFile(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		source, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			t.Fatal(err)
		}
		for name := range missing {
			if strings.Contains(string(source), "func "+name+"(") {
				delete(missing, name)
			}
		}
	})
	for name := range missing {
		t.Errorf("the invariants name %s, which does not exist", name)
	}
}
