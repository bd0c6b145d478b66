package configs

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// update rewrites the expectations; read the difference before you keep it.
var update = flag.Bool("update", false, "write the expected problems into testdata")

// testEnv are the variables that files in testdata may refer to.
func testEnv(name string) (string, bool) {
	value, ok := map[string]string{"KEY": "from-env", "EMPTY": "", "N": "7", "VLLM_KEY": "k"}[name]
	return value, ok
}

const wantMark = "# problems:\n"

// TestFilesWithProblems reads each file of testdata with a fault and compares all its
// problems with those in the file's last comment. A *.bad.yaml has an error, a
// *.warn.yaml has only warnings.
func TestFilesWithProblems(t *testing.T) {
	bad, _ := filepath.Glob("testdata/*.bad.yaml")
	warn, _ := filepath.Glob("testdata/*.warn.yaml")
	if len(bad) < 60 || len(warn) < 20 {
		t.Fatalf("%d bad and %d warning files, at least 60 and 20 are wanted", len(bad), len(warn))
	}
	for _, path := range append(bad, warn...) {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			text, want, _ := bytes.Cut(read(t, path), []byte(wantMark))
			cfg, problems := Parse(path, text, testEnv)
			var got strings.Builder
			for _, p := range problems {
				if strings.Contains(p.Message, "not active in this version") {
					continue // pending_test.go has these; their list shrinks with every version
				}
				got.WriteString("# " + strings.TrimPrefix(p.String(), path) + "\n")
			}
			isBad := strings.HasSuffix(name, ".bad.yaml")
			if isBad != hasErrors(problems) || isBad != (cfg == nil) {
				t.Errorf("errors: %v, config: %v, the file's name says bad: %v", hasErrors(problems), cfg != nil, isBad)
			}
			if *update {
				if err := os.WriteFile(path, []byte(string(text)+wantMark+got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got.String() != string(want) {
				t.Errorf("problems are\n%swant\n%s", got.String(), want)
			}
		})
	}
}

// TestProblemsHideSecrets: whatever is wrong with a file, its credentials are not shown.
func TestProblemsHideSecrets(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.bad.yaml")
	for _, path := range files {
		text, _, _ := bytes.Cut(read(t, path), []byte(wantMark))
		_, problems := Parse(path, text, testEnv)
		for _, p := range problems {
			for _, secret := range []string{"password", "pa/ss", "from-a-file", "from-env"} {
				if strings.Contains(strings.TrimPrefix(p.String(), path), secret) && !strings.Contains(p.Message, "user or password") {
					t.Errorf("%s shows %q", p, secret)
				}
			}
		}
	}
}
