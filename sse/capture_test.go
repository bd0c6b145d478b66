package sse

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// TestCapturedStreams: recorded answers of a real server, cut at every byte, also with the other line ends.
func TestCapturedStreams(t *testing.T) {
	files, err := filepath.Glob("testdata/*.http")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
			stream := dechunk(body)
			want := reference(stream)
			if len(want) != strings.Count(stream, "data: ") {
				t.Fatalf("%d events for %d data lines", len(want), strings.Count(stream, "data: "))
			}
			for _, end := range []string{"\n", "\r", "\r\n"} {
				stream := strings.ReplaceAll(stream, "\n", end)
				for i := range stream {
					if got := parse(stream[:i], stream[i:]); !reflect.DeepEqual(got, want) {
						t.Fatalf("lines end with %q, cut at %d: other events", end, i)
					}
				}
			}
		})
	}
}

// dechunk removes the chunk framing of a whole body.
func dechunk(b []byte) string {
	var out strings.Builder
	for {
		line, rest, _ := bytes.Cut(b, []byte("\r\n"))
		n, err := strconv.ParseInt(string(line), 16, 64)
		if err != nil || n == 0 {
			return out.String()
		}
		out.Write(rest[:n])
		b = rest[n+2:]
	}
}
