package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// command is one "go test" that a page or the Makefile tells people to run.
type command struct {
	file, text string
	race       bool
	run        *regexp.Regexp // nil = all tests
	packages   []string       // as written: ./proxy or ./proxy/...
}

// commands reads every "go test" of the pages for people and of the Makefile.
func commands(t *testing.T) (out []command) {
	t.Helper()
	files := []string{"../README.md", "../CONTRIBUTING.md", "../Makefile"}
	for _, pattern := range []string{"*.md", "decisions/*.md", "../bench/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	words := regexp.MustCompile(`'[^']*'|\S+`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("go test ([^`\n]*)").FindAllStringSubmatch(string(text), -1) {
			c := command{file: file, text: m[0]}
			args := words.FindAllString(m[1], -1)
			for i, arg := range args {
				switch {
				case arg == "-race":
					c.race = true
				case arg == "-run" && i+1 < len(args):
					pattern := strings.Trim(args[i+1], "'")
					if strings.HasSuffix(file, ".md") {
						pattern = strings.ReplaceAll(pattern, `\|`, "|") // a table's cell escapes it
					}
					if c.run, err = regexp.Compile(pattern); err != nil {
						t.Errorf("%s: %s: %v", file, c.text, err)
					}
				case strings.HasPrefix(arg, "./"):
					c.packages = append(c.packages, arg)
				}
			}
			out = append(out, c)
		}
	}
	return out
}

// covers says whether a package argument takes in the directory, which is relative to the root.
func covers(argument, dir string) bool {
	root, below := strings.CutSuffix(path.Clean(argument), "/...")
	if argument == "./..." {
		return true
	}
	return dir == root || below && strings.HasPrefix(dir, root+"/")
}

// testFile is what a test file declares.
type testFile struct {
	dir   string // relative to the root
	race  bool   // it is built under the race detector
	tests []string
}

func testFiles(t *testing.T) (out []testFile) {
	t.Helper()
	withoutRace := regexp.MustCompile(`(?m)^//go:build .*!race\b`)
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
	eachGoFile(t, func(name string) {
		if !strings.HasSuffix(name, "_test.go") {
			return
		}
		source, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		f := testFile{dir: path.Dir(name), race: !withoutRace.Match(source)}
		for _, m := range declared.FindAllStringSubmatch(string(source), -1) {
			if m[1] != "TestMain" {
				f.tests = append(f.tests, m[1])
			}
		}
		out = append(out, f)
	})
	return out
}

// A pattern that matches nothing passes without a word, so each must match a test
// in every package that its command names.
func TestPatternsOfCommandsMatchTests(t *testing.T) {
	files := testFiles(t)
	seen := 0
	for _, c := range commands(t) {
		if c.run == nil {
			continue
		}
		seen++
		if len(c.packages) == 0 {
			t.Errorf("%s: %s names no package", c.file, c.text)
		}
		for _, argument := range c.packages {
			if !slices.ContainsFunc(files, func(f testFile) bool {
				return covers(argument, f.dir) && slices.ContainsFunc(f.tests, c.run.MatchString)
			}) {
				t.Errorf("%s: %s: no test of %s matches %s", c.file, c.text, argument, c.run)
			}
		}
	}
	if seen == 0 {
		t.Fatal("no command with -run was found")
	}
}

// Some tests are not built under the race detector. make test must run them without.
func TestTestsWithoutRaceDetectorAreRun(t *testing.T) {
	var plain []command
	for _, c := range commands(t) {
		if strings.HasSuffix(c.file, "Makefile") && !c.race {
			plain = append(plain, c)
		}
	}
	seen := 0
	for _, f := range testFiles(t) {
		if f.race {
			continue
		}
		for _, name := range f.tests {
			seen++
			if !slices.ContainsFunc(plain, func(c command) bool {
				return (c.run == nil || c.run.MatchString(name)) &&
					slices.ContainsFunc(c.packages, func(p string) bool { return covers(p, f.dir) })
			}) {
				t.Errorf("the Makefile never runs %s of %s, which is left out under the race detector", name, f.dir)
			}
		}
	}
	if seen == 0 {
		t.Fatal("no test is left out under the race detector")
	}
}
