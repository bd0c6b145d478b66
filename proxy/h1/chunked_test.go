package h1

import (
	"bytes"
	"errors"
	"io"
	"net/http/httputil"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pieces decodes the parts one after the other.
func pieces(parts ...string) (payload string, d dechunker, rest string, err error) {
	var all strings.Builder
	for i, part := range parts {
		b := []byte(part)
		out, used, err := d.decode(b)
		all.Write(out)
		if err != nil {
			return all.String(), d, "", err
		}
		if used < len(b) {
			return all.String(), d, string(b[used:]) + strings.Join(parts[i+1:], ""), nil
		}
	}
	return all.String(), d, "", nil
}

func TestDechunk(t *testing.T) {
	for _, c := range []struct {
		name, in string
		payload  string
		rest     string
		done     bool
		err      error
	}{
		{name: "one chunk", in: "5\r\nhello\r\n0\r\n\r\n", payload: "hello", done: true},
		{name: "compacted", in: "5\r\nhello\r\n1\r\n,\r\n6\r\n world\r\n0\r\n\r\n", payload: "hello, world", done: true},
		{name: "empty body", in: "0\r\n\r\n", done: true},
		{name: "upper and lower case digits", in: "A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", payload: "01234567890123456789", done: true},
		{name: "leading zeros", in: "00000002\r\nhi\r\n000\r\n\r\n", payload: "hi", done: true},
		{name: "extension", in: "2;a=b;c=\"d\"\r\nhi\r\n0;last\r\n\r\n", payload: "hi", done: true},
		{name: "blank before the line end", in: "2 \t\r\nhi\r\n0\r\n\r\n", payload: "hi", done: true},
		{name: "CR inside an extension", in: "2;a\rb\r\nhi", err: errChunkLineEnd},
		{name: "trailers", in: "2\r\nhi\r\n0\r\nA: b\r\nC: d\r\n\r\n", payload: "hi", done: true},
		{name: "bytes of the next answer", in: "2\r\nhi\r\n0\r\n\r\nHTTP/1.1", payload: "hi", rest: "HTTP/1.1", done: true},
		{name: "cut in the size", in: "2\r\nhi\r\n1", payload: "hi"},
		{name: "cut in a chunk", in: "5\r\nhel", payload: "hel"},
		{name: "cut before the last line end", in: "2\r\nhi\r\n0\r\n", payload: "hi"},
		{name: "no digits", in: "\r\nhi", err: errChunkSize},
		{name: "not hexadecimal", in: "2g\r\nhi", err: errChunkSize},
		{name: "0x", in: "0x2\r\nhi", err: errChunkSize},
		{name: "sign", in: "+2\r\nhi", err: errChunkSize},
		{name: "negative", in: "-2\r\nhi", err: errChunkSize},
		{name: "blank first", in: " 2\r\nhi", err: errChunkSize},
		{name: "63 bits are the limit", in: "7fffffffffffffff\r\nhi", payload: "hi"},
		{name: "64 bits", in: "8000000000000000\r\nhi", err: errChunkTooBig},
		{name: "overflow", in: "10000000000000002\r\nhi", err: errChunkTooBig},
		{name: "digits without end", in: strings.Repeat("0", 17), err: errChunkTooBig},
		{name: "LF alone after the size", in: "2\nhi\r\n", err: errChunkSize},
		{name: "LF alone after an extension", in: "2;a\nhi\r\n", err: errChunkLineEnd},
		{name: "CR without LF after the size", in: "2\r2\r\n", err: errChunkLineEnd},
		{name: "LF alone after the payload", in: "2\r\nhi\n0\r\n\r\n", payload: "hi", err: errChunkEnd},
		{name: "payload longer than its size", in: "2\r\nhii\r\n0\r\n\r\n", payload: "hi", err: errChunkEnd},
		{name: "LF alone in a trailer", in: "0\r\nA: b\n\r\n", err: errTrailerEnd},
		{name: "size line without end", in: "2;" + strings.Repeat("x", maxChunkLine), err: errChunkLine},
		{name: "trailers without end", in: "0\r\n" + strings.Repeat("x", maxTrailers+1), err: errTrailerSize},
	} {
		t.Run(c.name, func(t *testing.T) {
			payload, d, rest, err := pieces(c.in)
			if payload != c.payload || rest != c.rest || d.done() != c.done || !errors.Is(err, c.err) {
				t.Errorf("got payload %q, rest %q, done %v, error %v", payload, rest, d.done(), err)
			}
		})
	}
}

// Any split gives the same bytes, the same end and the same error.
func TestDechunkSplitAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in, want strings.Builder
		for _, s := range rapid.SliceOfN(rapid.StringN(1, 40, 300), 0, 8).Draw(t, "chunks") {
			in.WriteString(chunk(s))
			want.WriteString(s)
		}
		in.WriteString(rapid.SampledFrom([]string{"0\r\n\r\n", "0;x\r\nA: b\r\n\r\n", "0\r\n\r\nmore", "", "zz", "3\r\nab"}).Draw(t, "end"))
		whole, wd, wrest, werr := pieces(in.String())
		var parts []string
		for s := in.String(); len(s) > 0; {
			n := rapid.IntRange(1, min(len(s), 9)).Draw(t, "n")
			parts, s = append(parts, s[:n]), s[n:]
		}
		got, gd, grest, gerr := pieces(parts...)
		if got != whole || gd != wd || grest != wrest || gerr != werr {
			t.Fatalf("split %q\ngot  %q %+v %q %v\nwant %q %+v %q %v", parts, got, gd, grest, gerr, whole, wd, wrest, werr)
		}
		if !strings.HasPrefix(whole, want.String()) {
			t.Fatalf("payload %q does not begin with %q", whole, want.String())
		}
	})
}

// FuzzDechunk compares with the standard library: what it accepts we decode to
// the same bytes unless we are stricter, and we never accept what it refuses.
func FuzzDechunk(f *testing.F) {
	for _, s := range []string{"5\r\nhello\r\n0\r\n\r\n", "1\r\na\r\n2;x=y\r\nbc\r\n0\r\nT: v\r\n\r\n", "ffffffffffffffff\r\n", "2\nhi\n0\n\n", "2 \r\nhi\r\n0\r\n\r\nX"} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, step int) {
		if step < 1 {
			step = 1
		}
		var parts []string
		for s := string(in); len(s) > 0; {
			n := min(len(s), step)
			parts, s = append(parts, s[:n]), s[n:]
		}
		payload, d, rest, err := pieces(parts...)
		one, od, orest, oerr := pieces(string(in))
		if payload != one || d != od || rest != orest || err != oerr {
			t.Fatalf("in steps of %d: %q %v, at once: %q %v", step, payload, err, one, oerr)
		}
		want, refErr := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(in)))
		switch {
		case d.done():
			// The reference stops at the last chunk's size line; trailers are ours to check.
			if refErr != nil || payload != string(want) {
				t.Fatalf("accepted as %q, the reference says %q, %v", payload, want, refErr)
			}
		case err == nil && refErr == nil:
			if payload != string(want) { // cut in the trailers
				t.Fatalf("decoded %q, the reference %q", payload, want)
			}
		case err != nil && refErr == nil:
			if !strings.HasPrefix(string(want), payload) {
				t.Fatalf("before the error %v: %q, the reference %q", err, payload, want)
			}
		}
	})
}

func BenchmarkDechunk(b *testing.B) {
	event := chunk("data: {\"id\":\"chatcmpl-1\",\"choices\":[{\"delta\":{\"content\":\" token\"}}]}" + strings.Repeat(" ", 120) + "\n\n")
	for _, n := range []int{1, 16} {
		b.Run(map[int]string{1: "one event a read", 16: "sixteen events a read"}[n], func(b *testing.B) {
			src := []byte(strings.Repeat(event, n))
			buf := make([]byte, len(src))
			var d dechunker
			b.ReportAllocs()
			for b.Loop() {
				copy(buf, src)
				if _, _, err := d.decode(buf); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/event")
		})
	}
}
