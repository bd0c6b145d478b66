package wire

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"tracegate/sse"
)

// The suite that every dialect passes.

func TestCutAtEveryByte(t *testing.T) {
	for _, c := range captures(t, "streams") {
		t.Run(c.name, func(t *testing.T) {
			var whole, cut Observation
			wantKinds := observe(c.dialect, &whole, c.body)
			want := summary(&whole)
			for i := 0; i < len(c.body); i += cutStep {
				cut.Reset()
				kinds := observe(c.dialect, &cut, c.body[:i], c.body[i:])
				if !slices.Equal(kinds, wantKinds) {
					t.Fatalf("cut at %d: kinds %v, want %v", i, kinds, wantKinds)
				}
				if got := summary(&cut); got != want {
					t.Fatalf("cut at %d: %s, want %s", i, got, want)
				}
			}
		})
	}
}

func TestUnknownFieldSurvives(t *testing.T) {
	for _, c := range captures(t, "streams") {
		t.Run(c.name, func(t *testing.T) {
			var plain, extended Observation
			want := observe(c.dialect, &plain, c.body)
			more := bytes.ReplaceAll(c.body, []byte("data: {"), []byte(`data: {"x_new":{"error":[1,"}\"",null]},`))
			if got := observe(c.dialect, &extended, more); !slices.Equal(got, want) {
				t.Errorf("kinds %v, want %v", got, want)
			}
			if got, want := summary(&extended), summary(&plain); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// withKeepalives inserts the dialect's keep-alive at every place between two events.
func withKeepalives(d Dialect, stream []byte) (out []byte, n int) {
	var p sse.Parser
	out = d.AppendKeepalive(nil)
	for i := range stream {
		p.Next(stream[i : i+1])
		out = append(out, stream[i])
		if p.AtBoundary() {
			out = d.AppendKeepalive(out)
			n++
		}
	}
	return out, n
}

func TestKeepaliveIsInert(t *testing.T) {
	meant := func(kinds []Kind) []Kind {
		return slices.DeleteFunc(slices.Clone(kinds), func(k Kind) bool { return k == 0 })
	}
	for _, c := range captures(t, "streams") {
		t.Run(c.name, func(t *testing.T) {
			var plain, alive Observation
			want := observe(c.dialect, &plain, c.body)
			stream, n := withKeepalives(c.dialect, c.body)
			if n < len(want) {
				t.Fatalf("%d boundaries for %d events", n, len(want))
			}
			if got := observe(c.dialect, &alive, stream); !slices.Equal(meant(got), meant(want)) {
				t.Errorf("kinds %v, want %v", got, want)
			}
			if got, want := summary(&alive), summary(&plain); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestKeepaliveBytes(t *testing.T) {
	for _, d := range All() {
		got := string(d.AppendKeepalive([]byte("x")))
		want := "x: keepalive\n" // one line: a blank line could dispatch an empty event
		switch d {
		case Messages:
			want = "xevent: ping\ndata: {\"type\":\"ping\"}\n\n"
		case Responses: // Codex does not count comments
			want = "xevent: keepalive\ndata: {\"type\":\"keepalive\"}\n\n"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", d.Name(), got, want)
		}
	}
}

// forged is a message that tries to end the line and the JSON string.
const forged = "x\revent: done\r\n\ndata: [DONE]\n\n\"},\\ \xff\x00\x1b \u2028 世界"

func TestErrorBody(t *testing.T) {
	for _, d := range All() {
		for status := 400; status < 600; status++ {
			body := d.AppendErrorBody(nil, Error{Status: status, Message: forged, RequestID: "req-1"})
			var parsed struct {
				Type      string
				RequestID string `json:"request_id"`
				Error     struct {
					Message, Type string
					RequestID     string `json:"request_id"`
				}
			}
			if err := json.Unmarshal(body, &parsed); err != nil {
				t.Fatalf("%s %d: %v in %s", d.Name(), status, err, body)
			}
			if want := strings.ToValidUTF8(forged, "\ufffd"); parsed.Error.Message != want || parsed.Error.Type == "" {
				t.Errorf("%s %d: %+v", d.Name(), status, parsed)
			}
			id := parsed.Error.RequestID
			if d == Messages {
				id = parsed.RequestID
			}
			if id != "req-1" || (d == Messages) != (parsed.Type == "error") {
				t.Errorf("%s %d: %s", d.Name(), status, body)
			}
			for _, ch := range body {
				if ch < ' ' {
					t.Fatalf("%s: a control character in %q", d.Name(), body)
				}
			}
		}
	}
}

func TestErrorEventFailsTheStream(t *testing.T) {
	for _, c := range captures(t, "streams") {
		if strings.HasSuffix(c.name, "engine_death") {
			continue
		}
		var o Observation
		half, _, _ := bytes.Cut(c.body, []byte("\n\n"))
		half = c.body[:len(half)+2]
		before := len(observe(c.dialect, &o, half))
		event := c.dialect.AppendErrorEvent(nil, Error{Status: 502, Message: forged, RequestID: "req-1"}, &o)
		o.Reset()
		kinds := observe(c.dialect, &o, append(slices.Clip(half), event...))
		if len(kinds) != before+1 || kinds[before]&Failed == 0 {
			t.Errorf("%s: kinds %v after %d", c.name, kinds[before:], before)
		}
		if o.Complete() || o.Failure == nil || !strings.HasPrefix(o.Failure.Message, "x\revent: done") {
			t.Errorf("%s: %s", c.name, summary(&o))
		}
	}
}

func TestErrorWithoutStream(t *testing.T) {
	for _, d := range All() {
		var o Observation
		kinds := observe(d, &o, d.AppendErrorEvent(nil, Error{Status: 504, Message: "late", RequestID: "req-1"}, nil))
		if len(kinds) != 1 || kinds[0]&Failed == 0 || o.Failure.Message != "late" {
			t.Errorf("%s: %v %s", d.Name(), kinds, summary(&o))
		}
	}
}

func TestBareJSONErrorInAStream(t *testing.T) {
	for _, d := range All() {
		for _, stream := range []string{
			": PING\n\n{\"error\":{\"message\":\"no channel\",\"type\":\"new_api_error\",\"code\":\"get_channel_failed\"}}",
			": PING\n\n{\"error\": {\n \"message\": \"no channel\",\n \"type\": \"new_api_error\", \"code\": \"get_channel_failed\"}\n}\n",
			": PING\n\n{\"error\":{\"message\":\"no channel\",\"type\":\"new_api_error\",\"code\":\"get_channel_failed\"}}\n\n",
		} {
			var o Observation
			kinds := observe(d, &o, []byte(stream))
			if len(kinds) != 1 || kinds[0] != Failed {
				t.Errorf("%s: %q is %v", d.Name(), stream, kinds)
				continue
			}
			if f := o.Failure; f.Message != "no channel" || f.Status != 503 || f.Code != "get_channel_failed" {
				t.Errorf("%s: %+v", d.Name(), f)
			}
		}
	}
}

func TestErrorObjectInABody(t *testing.T) {
	for _, d := range All() {
		for _, body := range []string{
			`{"error":{"message":"lost","type":"overloaded_error"}}`,
			`{"type":"error","error":{"type":"overloaded_error","message":"lost"},"request_id":"r"}`,
			` {"error" : {"message": "lost", "code": 529}} `,
			`{"error":"lost"}`,
		} {
			var o Observation
			d.ObserveBody(&o, []byte(body))
			if o.Failure == nil || o.Failure.Message != "lost" || o.Complete() {
				t.Errorf("%s: %s gives %s", d.Name(), body, summary(&o))
			}
		}
	}
}

func TestNames(t *testing.T) {
	for _, d := range All() {
		if ByName(d.Name()) != d {
			t.Errorf("ByName(%q) is another dialect", d.Name())
		}
	}
	if ByName("") != nil || ByName("chats") != nil {
		t.Error("an unknown name has a dialect")
	}
}

// TestFilesAreAlike keeps the dialects comparable: each file has the same methods in the same order.
func TestFilesAreAlike(t *testing.T) {
	want := []string{"Name", "Observe", "ObserveBody", "AppendErrorBody", "AppendErrorEvent", "AppendKeepalive", "requestKeys"}
	for _, d := range All() {
		file, err := parser.ParseFile(token.NewFileSet(), d.Name()+".go", nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			if name, ok := f.Recv.List[0].Type.(*ast.Ident); ok && name.Name == d.Name() {
				got = append(got, f.Name.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s.go has %v, want %v", d.Name(), got, want)
		}
	}
}
