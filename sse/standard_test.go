package sse

import (
	"reflect"
	"strings"
	"testing"
)

// none stands for an absent field.
const none = "(none)"

// seen is an Event as strings, so that it outlives the next call.
type seen struct{ Name, Data, ID, Stray string }

func text(b []byte) string {
	if b == nil {
		return none
	}
	return string(b)
}

// parse reads the pieces one after another as one stream.
func parse(pieces ...string) []seen {
	var p Parser
	var got []seen
	for _, piece := range pieces {
		buf := []byte(piece)
		for b := buf; len(b) > 0; {
			ev, n, ok := p.Next(b)
			if ok {
				got = append(got, seen{text(ev.Name), text(ev.Data), text(ev.ID), text(ev.Stray)})
			}
			b = b[n:]
		}
		for i := range buf { // the parser must not depend on bytes that are the caller's again
			buf[i] = 'X'
		}
	}
	if ev, ok := p.End(); ok {
		got = append(got, seen{text(ev.Name), text(ev.Data), text(ev.ID), text(ev.Stray)})
	}
	return got
}

func data(values ...string) []seen {
	var want []seen
	for _, v := range values {
		want = append(want, seen{none, v, none, none})
	}
	return want
}

func TestStandard(t *testing.T) {
	tests := []struct {
		name   string
		stream string
		want   []seen
	}{
		{"line feeds", "data: a\n\ndata: b\n\n", data("a", "b")},
		{"carriage returns", "data: a\r\rdata: b\r\r", data("a", "b")},
		{"pairs", "data: a\r\n\r\ndata: b\r\n\r\n", data("a", "b")},
		{"all three mixed", "data: a\r\n\ndata: b\n\r\ndata: c\r\r\ndata: d\n\r", data("a", "b", "c", "d")},
		{"no blank after the colon", "data:a\n\n", data("a")},
		{"only one blank is taken", "data:  a \n\n", data(" a ")},
		{"lines are joined", "data: a\ndata\ndata: b\n\n", data("a\n\nb")},
		{"empty data is data", "data:\n\n", data("")},
		{"field without colon", "data\n\n", data("")},
		{"a colon in the value", "data: a: b\n\n", data("a: b")},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", data("a")},
		{"only one mark is taken", "\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", data("b")},
		{"a mark later is no mark", "data: a\n\n\xef\xbb\xbfdata: b\n\n", data("a")},
		{"half a mark is no mark", "\xef\xbbdata: a\n\ndata: b\n\n", data("b")},
		{"comments", ": x\n\n:\ndata: a\n: y\ndata: b\n\n: z\n", data("a\nb")},
		{"unknown fields", "foo: 1\nretry: 10\ndata: a\ndatas: b\n data: c\n\n", data("a")},
		{"name and id", "event: e\nid: 7\ndata: a\n\n", []seen{{"e", "a", "7", none}}},
		{"the last name counts", "event: e\nevent: f\ndata: a\n\n", []seen{{"f", "a", none, none}}},
		{"an empty name resets", "event: e\nevent:\ndata: a\n\n", data("a")},
		{"a name does not live on", "event: e\ndata: a\n\ndata: b\n\n", []seen{{"e", "a", none, none}, {none, "b", none, none}}},
		{"name only is reported", "event: ping\n\n", []seen{{"ping", none, none, none}}},
		{"id only is not", "id: 1\n\ndata: a\n\n", data("a")},
		{"id with NUL is ignored", "id: 1\x00\ndata: a\n\n", data("a")},
		{"unterminated event", "data: a\n\ndata: b\n", data("a")},
		{"unterminated line", "data: a\n\ndata: b", data("a")},
		{"NUL and invalid UTF-8 stay", "data: \x00\xff\n\n", data("\x00\xff")},
		{"stray JSON", "data: a\n\n{\"error\":1}\n\n", []seen{{none, "a", none, none}, {none, none, none, `{"error":1}`}}},
		{"stray JSON at the end", "data: a\n\n{\"error\":1}", []seen{{none, "a", none, none}, {none, none, none, `{"error":1}`}}},
		{"stray JSON with one line end", "{\"error\":1}\n", []seen{{none, none, none, `{"error":1}`}}},
		{"stray JSON over lines", "{\n \"error\": 1\n}\n", []seen{{none, none, none, "{\n \"error\": 1\n}"}}},
		{"stray text is ignored", "hello\n\nworld", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := parse(tt.stream); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("in one piece: got %q, want %q", got, tt.want)
			}
			if got := parse(strings.Split(tt.stream, "")...); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("byte by byte: got %q, want %q", got, tt.want)
			}
		})
	}
}
