package sse

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// reference reads a whole stream as the standard's text says, line by line, without any cleverness.
func reference(stream string) (events []seen) {
	stream = strings.TrimPrefix(stream, "\xef\xbb\xbf")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	lines := strings.Split(stream, "\n")
	tail := lines[len(lines)-1]
	ev := seen{none, none, none, none}
	join := func(to *string, v string) {
		if *to == none {
			*to = v
		} else {
			*to += "\n" + v
		}
	}
	take := func(line string) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case name == "":
		case name == "data":
			join(&ev.Data, value)
		case name == "event":
			if ev.Name = value; value == "" {
				ev.Name = none
			}
		case name == "id":
			if !strings.Contains(value, "\x00") {
				ev.ID = value
			}
		case line[0] == '{' || ev.Stray != none:
			join(&ev.Stray, line)
		}
	}
	for _, line := range lines[:len(lines)-1] {
		if line != "" {
			take(line)
			continue
		}
		if ev.Data != none || ev.Name != none || ev.Stray != none {
			events = append(events, ev)
		}
		ev = seen{none, none, none, none}
	}
	if tail != "" && tail[0] != ':' && (tail[0] == '{' || ev.Stray != none) {
		take(tail)
	}
	if ev.Stray != none {
		events = append(events, seen{none, none, none, ev.Stray})
	}
	return events
}

func drawStream(t *rapid.T) string {
	line := rapid.OneOf(
		rapid.SampledFrom([]string{"", "", "data: x", "data:", "data", "event: e", "event:", "id: 1", "id: \x00", ": c", ":",
			"retry: 3", "foo", "foo: bar", "{\"error\":1}", "}", "datax: 1", "data :x", "data:  {\"a\":\"b\"}"}),
		rapid.Map(rapid.StringOf(rapid.SampledFrom([]rune("dat: e{}é\x00"))), func(s string) string { return s }),
	)
	end := rapid.SampledFrom([]string{"\n", "\r", "\r\n", "\n\n", "\r\n\r\n", "\r\r"})
	var s strings.Builder
	s.WriteString(rapid.SampledFrom([]string{"", "", "\xef\xbb\xbf", "\xef\xbb", "\xef"}).Draw(t, "mark"))
	for range rapid.IntRange(0, 12).Draw(t, "lines") {
		s.WriteString(line.Draw(t, "line") + end.Draw(t, "end"))
	}
	s.WriteString(rapid.SampledFrom([]string{"", "data: cut", "{\"e", ":"}).Draw(t, "tail"))
	return s.String()
}

func drawPieces(t *rapid.T, stream string) (pieces []string) {
	for len(stream) > 0 {
		n := rapid.IntRange(1, min(len(stream), 9)).Draw(t, "piece")
		pieces = append(pieces, stream[:n])
		stream = stream[n:]
	}
	return pieces
}

func TestAnySplitGivesTheSameEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream := drawStream(t)
		want := reference(stream)
		if got := parse(stream); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q in one piece: got %q, want %q", stream, got, want)
		}
		pieces := drawPieces(t, stream)
		if got := parse(pieces...); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q in pieces %q: got %q, want %q", stream, pieces, got, want)
		}
	})
}

// TestSafeNeverCutsAnEvent: a relay that writes each read only up to Safe has, at every moment, written a prefix of the
// stream after which a comment can be inserted without changing any event.
func TestSafeNeverCutsAnEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream := drawStream(t)
		want := parse(stream)
		var p Parser
		written, held, off := 0, 0, 0
		for _, piece := range drawPieces(t, stream) {
			b := []byte(piece)
			safe, read := 0, 0
			for read < len(b) {
				_, n, _ := p.Next(b[read:])
				if s := p.Safe(); s > n {
					t.Fatalf("Safe %d after reading %d", s, n)
				} else if s > 0 {
					safe = read + s
				}
				read += n
			}
			off += len(b)
			if safe > 0 {
				written, held = off-len(b)+safe, len(b)-safe
			} else {
				held += len(b)
			}
			if written+held != off {
				t.Fatalf("%d written and %d held of %d", written, held, off)
			}
			if p.AtBoundary() != (written == off && boundary(stream, written)) {
				t.Fatalf("%q: AtBoundary is %t after %d, %d written", stream, p.AtBoundary(), off, written)
			}
			if at := written; boundary(stream, at) {
				mixed := stream[:at] + ": x\n" + stream[at:]
				if got := parse(mixed); at > 0 && !reflect.DeepEqual(got, want) {
					t.Fatalf("%q cut at the safe place %d: got %q, want %q", stream, at, got, want)
				}
			}
		}
	})
}

// boundary reports whether bytes may be inserted at offset at, judged by the bytes alone: not inside a pair of CR and
// LF that belong together, not after a CR whose LF may still come, not inside a byte order mark.
func boundary(stream string, at int) bool {
	if at == 0 {
		return true
	}
	return stream[at-1] != '\r' && !(at < 3 && strings.HasPrefix("\xef\xbb\xbf", stream[:at]))
}

func TestSafe(t *testing.T) {
	tests := []struct {
		name   string
		reads  []string
		safe   []int
		atEdge []bool
	}{
		{"two events and a part", []string{"data: a\n\ndata: b\n\ndat"}, []int{18}, []bool{false}},
		{"comment between events", []string{": x\n"}, []int{4}, []bool{true}},
		{"half a comment", []string{"data: a\n\n: x"}, []int{9}, []bool{false}},
		{"comment inside an event", []string{"data: a\n: x\n"}, []int{0}, []bool{false}},
		{"the rest comes later", []string{"data: a", "\n", "\n"}, []int{0, 0, 1}, []bool{false, false, true}},
		{"a pair cut in two", []string{"data: a\r\n\r", "\n"}, []int{10, 1}, []bool{false, true}},
		{"a pair cut inside the event", []string{"data: a\r", "\n", "\r\n"}, []int{0, 0, 2}, []bool{false, false, true}},
		{"a lone CR", []string{"data: a\r\r", "data: b\r\r"}, []int{9, 9}, []bool{false, false}},
		{"blank lines", []string{"\n\n"}, []int{2}, []bool{true}},
		{"id alone holds", []string{"id: 1\n", "\n"}, []int{0, 1}, []bool{false, true}},
		{"half a mark", []string{"\xef\xbb", "\xbf"}, []int{0, 1}, []bool{false, true}},
		{"nothing", []string{""}, []int{0}, []bool{true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var p Parser
			for i, read := range tt.reads {
				safe := 0
				for b, off := []byte(read), 0; ; {
					_, n, _ := p.Next(b[off:])
					if s := p.Safe(); s > 0 {
						safe = off + s
					}
					if off += n; off == len(b) {
						break
					}
				}
				if safe != tt.safe[i] || p.AtBoundary() != tt.atEdge[i] {
					t.Errorf("read %d: safe %d, boundary %t; want %d, %t", i, safe, p.AtBoundary(), tt.safe[i], tt.atEdge[i])
				}
			}
		})
	}
}

func FuzzParser(f *testing.F) {
	f.Add("\xef\xbb\xbfevent: e\r\ndata: a\r\ndata: b\r\rid: 1\n: c\n\n{\"error\":1}", 5)
	f.Add("data\n\n:\n\r\n{\n}", 3)
	f.Fuzz(func(t *testing.T, stream string, cut int) {
		cut = min(max(cut, 0), len(stream))
		want := reference(stream)
		if got := parse(stream[:cut], stream[cut:]); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q cut at %d: got %q, want %q", stream, cut, got, want)
		}
	})
}

// TestEventInOneReadIsNotCopied: Data points into the caller's bytes.
func TestEventInOneReadIsNotCopied(t *testing.T) {
	b := []byte("event: e\ndata: abc\n\n")
	var p Parser
	ev, _, ok := p.Next(b)
	if !ok || &ev.Data[0] != &b[len("event: e\ndata: ")] {
		t.Error("data was copied")
	}
}
