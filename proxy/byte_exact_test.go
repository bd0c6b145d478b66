package proxy

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tracegate/trace"
)

// Within one dialect the client gets the upstream's body, byte for byte,
// however it was framed, cut or encoded.

const eventStream = "Content-Type: text/event-stream\r\n"

func TestRecordedStreamsPassUnchanged(t *testing.T) {
	up := newFramer(t)
	r := newRig(t, setup{upstream: up.url, dial: up.dial})
	for i, c := range recordings(t, "streams") {
		if c.name == "chat_stream_abort_by_endpoint" {
			continue // it has no content: a refusal is made of it
		}
		for _, end := range []string{"\n", "\r\n", "\r"} {
			for f, framing := range framings {
				t.Run(fmt.Sprintf("%s/%q/%s", c.name, end, framing), func(t *testing.T) {
					want := withLineEnds(c.body, end)
					a := up.exchange(r, c.dialect, true, framed{head: eventStream, body: want, framing: framing, seed: uint64(i*len(framings) + f)})
					equal(t, "status", a.StatusCode, 200)
					equal(t, "end of the body", a.err, nil)
					equal(t, "content type", a.Header.Get("Content-Type"), "text/event-stream")
					sameBytes(t, a.body, want)
					rec := r.record()
					outcome := trace.OK
					if strings.HasSuffix(c.name, "engine_death") {
						outcome = trace.StreamInterrupted // in the upstream's own words
					}
					equal(t, "outcome", rec.Outcome, outcome)
				})
			}
		}
	}
}

// noise is what may stand between two events without meaning anything to the gateway.
var noise = rapid.SampledFrom([]string{
	": a comment\n", ":\n\n", "\n", "retry: 3000\n\n", "id: 7\n\n",
	"event: unheard-of\ndata: {\"type\":\"unheard_of\",\"text\":\"世界 🙂\"}\n\n",
	"foo: bar\ndata: not json\n\n", "data\n\n", "event:\n\n", ": 世界🙂 \xff\xfe\n\n", "no colon\n\n",
	"data: {\"type\":\"unheard_of\",\ndata: \"x\":1}\n\n", ": " + strings.Repeat("long ", 500) + "\n\n",
})

// TestRandomStreamsPassUnchanged: recorded streams with noise between their
// events, line ends mixed, chunks and writes of any size.
func TestRandomStreamsPassUnchanged(t *testing.T) {
	up := newFramer(t)
	r := newRig(t, setup{upstream: up.url, dial: up.dial})
	var streams []recorded
	for _, c := range recordings(t, "streams") {
		if !strings.HasSuffix(c.name, "engine_death") && !strings.Contains(c.name, "abort") {
			streams = append(streams, c)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(streams).Draw(t, "stream")
		var b strings.Builder
		if rapid.Bool().Draw(t, "byte order mark") {
			b.WriteString("\xef\xbb\xbf")
		}
		for _, event := range strings.SplitAfter(string(c.body), "\n\n") {
			if event != "" && rapid.IntRange(0, 3).Draw(t, "noise?") == 0 {
				b.WriteString(noise.Draw(t, "noise"))
			}
			b.WriteString(event)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		body := []byte(b.String())
		switch end := rapid.SampledFrom([]string{"\n", "\r\n", "\r", "mixed"}).Draw(t, "line ends"); end {
		case "mixed":
			body = mixLineEnds(body, seed)
		default:
			body = withLineEnds(body, end)
		}
		a := up.exchange(r, c.dialect, true, framed{head: eventStream, body: body, seed: seed,
			framing: rapid.SampledFrom(framings).Draw(t, "framing")})
		rec := r.record()
		if a.StatusCode != 200 || a.err != nil || rec.Outcome != trace.OK {
			t.Fatalf("status %d, end %v, outcome %s, %+v", a.StatusCode, a.err, rec.Outcome, rec.Error)
		}
		if !isSame(a.body, body) {
			t.Fatalf("got\n%q\nwant\n%q", a.body, body)
		}
	})
}

func mixLineEnds(b []byte, seed uint64) (out []byte) {
	random := rand.New(rand.NewPCG(seed, 3))
	for _, line := range bytes.SplitAfter(b, []byte("\n")) {
		if n := len(line) - 1; n >= 0 && line[n] == '\n' {
			// No lone CR before a lone LF: that would be one line end, not two.
			ends := []string{"\n", "\r\n", "\r"}
			if n == 0 && len(out) > 0 && out[len(out)-1] == '\r' {
				ends = ends[1:]
			}
			line = append(line[:n:n], ends[random.IntN(len(ends))]...)
		}
		out = append(out, line...)
	}
	return out
}

// bigEvents are content events of n bytes.
var bigEvents = map[string]func(text string) string{
	"messages": func(s string) string {
		return "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"" + s + "\"}}\n\n"
	},
	"chat": func(s string) string {
		return "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + s + "\"}}]}\n\n"
	},
	"completions": func(s string) string {
		return "data: {\"id\":\"c\",\"object\":\"text_completion\",\"choices\":[{\"index\":0,\"text\":\"" + s + "\"}]}\n\n"
	},
	"responses": func(s string) string {
		return "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"" + s + "\"}\n\n"
	},
}

func TestHugeEventPassesUnchanged(t *testing.T) {
	up := newFramer(t)
	r := newRig(t, setup{upstream: up.url})
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			// An image or a file in one event, well above sse.MaxInspect; all four take 10 s under the race detector.
			text := strings.Repeat("世界🙂abcdefg\\n", 40<<20/19)
			body := streamOf(t, d.name)
			half := halfOf(body)
			want := append(append(bytes.Clone(half), bigEvents[d.name](text)...), body[len(half):]...)
			up.passes(t, r, d, true, framed{head: eventStream, body: want, seed: 5, least: 48 << 10})
		})
	}
}

// halfOf is a stream up to the end of the event in its middle.
func halfOf(stream []byte) []byte {
	middle := len(stream) / 2
	return stream[:middle+bytes.Index(stream[middle:], []byte("\n\n"))+2]
}

// streamOf is the plain recorded stream of a dialect.
func streamOf(t testing.TB, dialect string) []byte {
	t.Helper()
	for _, c := range recordings(t, "streams") {
		if c.name == dialect+"_stream" {
			return c.body
		}
	}
	t.Fatalf("no recorded stream of %s", dialect)
	return nil
}

func TestEndsPassUnchanged(t *testing.T) {
	up := newFramer(t)
	r := newRig(t, setup{upstream: up.url, dial: up.dial})
	for _, d := range dialects {
		for _, tail := range []struct{ name, text string }{
			{"an event after the terminal one", "event: late\ndata: {\"type\":\"late\"}\n\n"},
			{"a comment after the terminal one", ": bye\n\n"},
			{"a blank line", "\n"},
		} {
			for _, framing := range framings {
				t.Run(d.name+"/"+tail.name+"/"+framing, func(t *testing.T) {
					want := append(bytes.Clone(streamOf(t, d.name)), tail.text...)
					up.passes(t, r, d, true, framed{head: eventStream, body: want, framing: framing, atOnce: true})
				})
			}
		}
	}
}

// TestLastLinePassesUnchanged: some servers forget the blank line behind [DONE],
// and readers that go by lines do not miss it.
func TestLastLinePassesUnchanged(t *testing.T) {
	up := newFramer(t)
	r := newRig(t, setup{upstream: up.url, dial: up.dial})
	for _, d := range dialects[1:3] {
		for _, end := range []string{"data: [DONE]\n", "data: [DONE]"} {
			for _, framing := range framings {
				t.Run(fmt.Sprintf("%s/%q/%s", d.name, end, framing), func(t *testing.T) {
					want := append(bytes.TrimSuffix(streamOf(t, d.name), []byte("data: [DONE]\n\n")), end...)
					up.passes(t, r, d, true, framed{head: eventStream, body: want, framing: framing, seed: 3})
				})
			}
		}
	}
}

// TestBareErrorLinePassesUnchanged: what a gateway before the engine writes into
// a stream that it has to give up.
func TestBareErrorLinePassesUnchanged(t *testing.T) {
	up := newFramer(t)
	r := newRig(t, setup{upstream: up.url, dial: up.dial})
	for _, d := range dialects {
		for _, end := range []string{"\n", ""} {
			for _, framing := range framings {
				t.Run(fmt.Sprintf("%s/%q/%s", d.name, end, framing), func(t *testing.T) {
					want := append(bytes.Clone(halfOf(streamOf(t, d.name))), `{"error":{"message":"upstream error: do request failed","type":"new_api_error"}}`+end...)
					a := up.exchange(r, d, true, framed{head: eventStream, body: want, framing: framing, seed: 4})
					// What the upstream wrote, and then an event that clients do see.
					sameBytes(t, a.body[:min(len(a.body), len(want))], want)
					contains(t, "error event", string(a.body[min(len(a.body), len(want)):]), "do request failed")
					equal(t, "end of the body", a.err, io.ErrUnexpectedEOF)
					equal(t, "outcome", r.record().Outcome, trace.StreamInterrupted)
				})
			}
		}
	}
}

func TestWholeAnswersPassUnchanged(t *testing.T) {
	up := newFramer(t)
	r := newRig(t, setup{upstream: up.url})
	check := func(t *testing.T, d dialectCase, a framed) {
		a.head = "Content-Type: application/json\r\nX-Odd: one\r\nX-Odd: two\r\n"
		got := up.passes(t, r, d, false, a)
		equal(t, "content type", got.Header.Get("Content-Type"), "application/json")
		equal(t, "a header of many values", strings.Join(got.Header.Values("X-Odd"), ","), "one,two")
	}
	for _, c := range recordings(t, "bodies") {
		for i, framing := range framings {
			t.Run(c.name+"/"+framing, func(t *testing.T) {
				check(t, c.dialect, framed{body: c.body, framing: framing, seed: uint64(i)})
			})
		}
	}
	for _, size := range []int{2, 100, 64 << 10, wholeLimit - 1, wholeLimit, wholeLimit + 1, 10 << 20} {
		for i, framing := range framings {
			t.Run(fmt.Sprintf("%d bytes/%s", size, framing), func(t *testing.T) {
				body := []byte("{}")
				if size > 2 {
					body = fmt.Appendf(nil, `{"pad":"%s"}`, strings.Repeat("x", size-10))
				}
				check(t, dialects[i], framed{body: body, framing: framing, seed: uint64(size), least: size >> 10})
			})
		}
	}
}

// TestCompressedAnswersPassAsAPair: bytes and header together, though identity was asked for.
func TestCompressedAnswersPassAsAPair(t *testing.T) {
	up := newFramer(t)
	r := newRig(t, setup{upstream: up.url, dial: up.dial})
	for _, d := range dialects {
		for _, stream := range []bool{true, false} {
			for _, framing := range framings {
				t.Run(fmt.Sprintf("%s/stream=%t/%s", d.name, stream, framing), func(t *testing.T) {
					var z bytes.Buffer
					w := gzip.NewWriter(&z)
					_ = must(w.Write(streamOf(t, d.name)))
					if err := w.Close(); err != nil {
						t.Fatal(err)
					}
					a := up.passes(t, r, d, stream, framed{head: eventStream + "Content-Encoding: gzip\r\n", body: z.Bytes(), framing: framing, seed: 9})
					equal(t, "content encoding", a.Header.Get("Content-Encoding"), "gzip")
				})
			}
		}
	}
}

func TestContentTypesPassUnchanged(t *testing.T) {
	up := newFramer(t)
	r := newRig(t, setup{upstream: up.url, dial: up.dial})
	for _, typ := range []string{"text/plain", "application/json", "text/event-stream;charset=UTF-8", "TEXT/Event-Stream", "application/octet-stream", ""} {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprintf("%q/stream=%t", typ, stream), func(t *testing.T) {
				head, want, body := "", typ, []byte(`{"object":"chat.completion"}`)
				if typ != "" {
					head = "Content-Type: " + typ + "\r\n"
				}
				if stream {
					body = streamOf(t, "chat")
					if typ == "" {
						want = "text/event-stream"
					}
				}
				a := up.passes(t, r, dialects[1], stream, framed{head: head, body: body, seed: 1})
				equal(t, "content type", a.Header.Get("Content-Type"), want)
			})
		}
	}
}
