package main

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write docs/config.md")

func TestConfigPageIsFresh(t *testing.T) {
	page, err := Page("..")
	if err != nil {
		t.Fatal(err)
	}
	const name = "../../docs/config.md"
	if *update {
		if err := os.WriteFile(name, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, page) {
		t.Fatalf("%s is stale: run go generate ./configs", name)
	}
}
