package sse

import (
	"bytes"
	"testing"
)

// TestOversizeEvent: an event over MaxInspect is found and reported without its data, the memory is given back, and what
// follows is read as ever, for any size of read.
func TestOversizeEvent(t *testing.T) {
	big := append([]byte("event: big\nid: 1\ndata: "), bytes.Repeat([]byte("x"), MaxInspect)...)
	stream := append(big, "\ndata: y\n: c\n\ndata: z\n\n"...)
	for _, size := range []int{64 << 10, 1 << 20, len(stream)} {
		var p Parser
		var got []Event
		for rest := stream; len(rest) > 0; {
			b := rest[:min(size, len(rest))]
			rest = rest[len(b):]
			for len(b) > 0 {
				ev, n, ok := p.Next(b)
				if ok {
					got = append(got, Event{bytes.Clone(ev.Name), bytes.Clone(ev.Data), bytes.Clone(ev.ID), ev.Stray, ev.Oversize})
				}
				b = b[n:]
				if !p.block && !p.AtBoundary() && len(b) == 0 && len(rest) == 0 {
					t.Errorf("reads of %d: not at a boundary at the end", size)
				}
			}
			if held := cap(p.line) + cap(p.data.buf); held > 3*MaxInspect {
				t.Fatalf("reads of %d: %d bytes held", size, held)
			}
		}
		if len(got) != 2 || !got[0].Oversize || got[0].Data != nil || string(got[0].Name) != "big" || string(got[0].ID) != "1" {
			t.Fatalf("reads of %d: %d events, first %q oversize %t", size, len(got), got[0].Name, got[0].Oversize)
		}
		if got[1].Oversize || string(got[1].Data) != "z" || got[1].Name != nil {
			t.Errorf("reads of %d: second event %q %q", size, got[1].Name, got[1].Data)
		}
		if p.Skipped() != 1 {
			t.Errorf("reads of %d: skipped %d", size, p.Skipped())
		}
	}
}

func TestLargestEventIsInspected(t *testing.T) {
	want := bytes.Repeat([]byte("x"), MaxInspect-len("data: "))
	stream := append(append([]byte("data: "), want...), '\n', '\n')
	var p Parser
	for b := stream; len(b) > 0; {
		piece := b[:min(100_000, len(b))]
		b = b[len(piece):]
		for len(piece) > 0 {
			ev, n, ok := p.Next(piece)
			piece = piece[n:]
			if ok && (ev.Oversize || !bytes.Equal(ev.Data, want)) {
				t.Fatalf("oversize %t, %d bytes", ev.Oversize, len(ev.Data))
			}
		}
	}
	if p.Skipped() != 0 {
		t.Error("skipped")
	}
	if p.Reset(); cap(p.line)+cap(p.data.buf) > 2*keepBuffer {
		t.Error("Reset keeps large buffers")
	}
}
