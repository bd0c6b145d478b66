package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"tracegate/bench/load"
)

// TestMain also plays the programs that the benchmark starts: this test's binary is what it finds under its own name, and the gateway.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"upstream", "naive"}, os.Args[1]) {
		os.Exit(dispatch(os.Args[1:]))
	}
	if len(os.Args) == 4 && os.Args[1] == "serve" {
		os.Exit(serveLikeTheGateway(os.Args[3]))
	}
	goleak.VerifyTestMain(m)
}

// serveLikeTheGateway is a proxy that takes the gateway's arguments and configuration.
func serveLikeTheGateway(file string) int {
	text, err := os.ReadFile(file)
	listen := regexp.MustCompile(`(?m)^listen: (\S+)$`).FindSubmatch(text)
	upstream := regexp.MustCompile(`base_url: "http://([^"]+)"`).FindSubmatch(text)
	if err != nil || listen == nil || upstream == nil {
		return 3
	}
	return dispatch([]string{"naive", string(listen[1]), string(upstream[1])})
}

func TestWholeTable(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "out.json")
	if err := benchmark(t.Context(), []string{"-quick", "-only", "exact,request", "-gateway", self, "-json", file}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var tab table
	if err := json.Unmarshal(text, &tab); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(tab.Columns, "tracegate") || tab.Columns[0] != "direct" {
		t.Errorf("columns %v", tab.Columns)
	}
	for _, c := range tab.Columns {
		if tab.Answers[c] < 480 || tab.Wrong[c] != 0 {
			t.Errorf("%s: %d answers, %d wrong", c, tab.Answers[c], tab.Wrong[c])
		}
		if v := tab.Values[rowRequest][c]; c != "direct" && (len(v) != 1 || v[0] <= 0) {
			t.Errorf("%s: CPU %v", c, v)
		}
	}
}

func TestTable(t *testing.T) {
	tab := table{Columns: []string{"direct", "fasthttp", "tracegate"}}
	for _, v := range []float64{30, 10, 20} {
		tab.add(rowRequest, "fasthttp", v)
		tab.add(rowRequest, "tracegate", v*1.5)
		tab.add(rowTTFT50, "direct", v)
	}
	tab.add(rowRequest, "direct", 0)
	tab.count("tracegate", &load.Result{Completed: 7, Abandoned: 1, Changed: 2, Faults: map[string]int64{"bytes differ": 2}})
	var out bytes.Buffer
	tab.print(&out)
	for _, want := range []string{
		`CPU us/request, 1 KB, no stream +\| +- \| +20\.0 \(10\.0-30\.0\) \| +30\.0 \(15\.0-45\.0\) \| +1\.50 \|`,
		`added TTFT p50, ms +\| +20\.0 \(10\.0-30\.0\) \| +- \| +- \| +- \|`,
		`answers that were wrong +\| +0 \| +0 \| +2 \|`,
		`WRONG tracegate: 2 x bytes differ`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
	if err := tab.verdict(); err == nil || !strings.Contains(err.Error(), "tracegate: 2 answers") {
		t.Errorf("verdict: %v", err)
	}
}

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{{"fly"}, {"-only", "nothing"}, {"naive"}, {"load", "-hold", "x", "-addr", "127.0.0.1:9"}} {
		if code := dispatch(args); code != 2 {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
	if code := dispatch([]string{"load", "-addr", "192.0.2.1:80"}); code != 1 {
		t.Errorf("a foreign address: exit code %d", code)
	}
	if err := benchmark(t.Context(), []string{"-nothing"}); err == nil || err == flag.ErrHelp {
		t.Errorf("an unknown flag: %v", err)
	}
}

func TestProcessThatIsNeverReady(t *testing.T) {
	b := &bench{dir: t.TempDir()}
	_, err := b.start(context.Background(), "sulky", "", readyLine, "sh", "-c", "echo the reason >&2")
	if err == nil || !strings.Contains(err.Error(), "process=sulky") || !strings.Contains(err.Error(), "the reason") {
		t.Errorf("%v", err)
	}
}
