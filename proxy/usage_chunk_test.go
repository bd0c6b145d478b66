package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// Chat and completions streams report usage only if asked. The gateway asks on
// its own account and hides the chunk from a client that did not.

// usageUpstream answers as an engine does: with the usage chunk only if asked.
type usageUpstream struct {
	*scripted
	shape atomic.Pointer[framed] // framing and pieces of the next answer
	end   atomic.Pointer[string] // its line ends
	asked atomic.Pointer[[]byte] // body of the last request
}

const usageChunk = "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":34,\"total_tokens\":46}}\n\n"

// usageStreams are the events of an answer without the usage chunk, by route.
var usageStreams = map[string][]string{
	"chat": {
		"data: {\"id\":\"c\",\"choices\":[],\"prompt_filter_results\":[]}\n\n", // no usage: it stays
		"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
		": comment\n\n",
		"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"世界\"}}],\"usage\":null}\n\n",
		"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"!\"},\"finish_reason\":\"stop\"}]}\n\n",
		"data: [DONE]\n\n",
	},
	"completions": {
		"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"text\":\"世界\"}]}\n\n",
		"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"text\":\"!\",\"finish_reason\":\"stop\"}]}\n\n",
		"data: [DONE]\n\n",
	},
}

func newUsageUpstream(t testing.TB) *usageUpstream {
	u := &usageUpstream{}
	u.scripted = newScripted(t, func(c net.Conn, r *http.Request, body []byte) {
		u.asked.Store(&body)
		a := *u.shape.Load()
		a.head = eventStream
		a.body = usageStream(nameOf(r.URL.Path), asksForUsage(body), *u.end.Load())
		a.send(c)
	})
	return u
}

func nameOf(path string) string {
	for _, d := range dialects {
		if d.path == path {
			return d.name
		}
	}
	return ""
}

func asksForUsage(body []byte) bool {
	var v struct {
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	return json.Unmarshal(body, &v) == nil && v.StreamOptions.IncludeUsage
}

// usageStream is what the engine sends; the usage chunk stands before the last event.
func usageStream(name string, usage bool, end string) []byte {
	events := usageStreams[name]
	last := len(events) - 1
	text := strings.Join(events[:last], "")
	if usage {
		text += usageChunk
	}
	return withLineEnds([]byte(text+events[last]), end)
}

// wishes are what a client can say of usage, and whether it wants it.
var wishes = []struct {
	text string
	want bool
}{
	{"", false},
	{`,"stream_options":{"include_usage":true}`, true},
	{`,"stream_options":{"include_usage":false}`, false},
	{`,"stream_options":{}`, false},
	{`,"stream_options":null`, false},
	{`,"stream_options":{"other":[1]}`, false},
}

func TestUsageChunkIsHiddenUnlessAskedFor(t *testing.T) {
	for _, engine := range []string{"vllm", "openai"} {
		up := newUsageUpstream(t)
		r := newRig(t, setup{upstream: up.url, dial: up.dial, deployment: "engine: " + engine})
		for _, d := range dialects[1:3] {
			for _, wish := range wishes {
				t.Run(engine+"/"+d.name+"/"+wish.text, func(t *testing.T) {
					body := d.body(true, "hello")
					body = body[:len(body)-1] + wish.text + "}"
					for seed := range uint64(48) {
						end := []string{"\n", "\r\n", "\r"}[seed%3]
						up.end.Store(&end)
						up.shape.Store(&framed{framing: framings[seed/16], seed: seed, atOnce: seed%16 == 0})
						a := r.post(d.path, body)
						sameBytes(t, a.body, usageStream(d.name, wish.want, end))
						equal(t, "end of the body", a.err, nil)
						equal(t, "the engine was asked", asksForUsage(*up.asked.Load()), true)
						hasUsage(t, r.record(), 12, 34)
						if t.Failed() {
							t.Fatalf("seed %d", seed)
						}
					}
					if wish.want {
						equal(t, "request upstream", string(*up.asked.Load()), strings.Replace(body, `"public"`, `"served"`, 1))
					}
				})
			}
		}
	}
}

func hasUsage(t testing.TB, rec *trace.Record, input, output int64) {
	t.Helper()
	equal(t, "outcome", rec.Outcome, trace.OK)
	equal(t, "input tokens", rec.Tokens.Input, input)
	equal(t, "output tokens", rec.Tokens.Output, output)
	equal(t, "token source", rec.Tokens.Source, trace.SourceUpstream)
}

// TestUsageOnAContentChunkStays: hiding it would take content away.
func TestUsageOnAContentChunkStays(t *testing.T) {
	up := newFramer(t)
	r := newRig(t, setup{upstream: up.url, dial: up.dial})
	for d, chunk := range map[int]string{
		1: "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":6}}\n\n",
		2: "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"text\":\"a\",\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":6}}\n\n",
	} {
		t.Run(dialects[d].name, func(t *testing.T) {
			want := []byte(chunk + "data: [DONE]\n\n")
			for seed := range uint64(16) {
				up.next.Store(&framed{head: eventStream, body: want, seed: seed})
				a := r.post(dialects[d].path, dialects[d].body(true, "hello"))
				sameBytes(t, a.body, want)
				hasUsage(t, r.record(), 5, 6)
			}
		})
	}
}

// TestUsageIsNotAskedFor where it comes anyway, or would be an error.
func TestUsageIsNotAskedFor(t *testing.T) {
	r := newRig(t, setup{engine: fakeengine.Options{KeepBodies: true, DefaultTokens: 4}})
	for _, d := range dialects {
		for _, stream := range []bool{true, false} {
			if stream && (d.name == "chat" || d.name == "completions") {
				continue
			}
			t.Run(fmt.Sprintf("%s/stream=%t", d.name, stream), func(t *testing.T) {
				equal(t, "status", r.post(d.path, d.body(stream, "hello")).StatusCode, 200)
				rec := r.record()
				l, _ := r.engine.Request(rec.ID + "-a1")
				equal(t, "stream_options in the request", bytes.Contains(l.Body, []byte("stream_options")), false)
				equal(t, "output tokens", rec.Tokens.Output, 4)
			})
		}
	}
}

// TestUsageIsNotAskedForByProfile: an engine without the option could refuse the request.
func TestUsageIsNotAskedForByProfile(t *testing.T) {
	s := quickly(setup{deployment: "engine: anthropic, dialects: [chat, completions]"})
	s.engine.KeepBodies = true
	r := newRig(t, s)
	for _, d := range dialects[1:3] {
		for _, wish := range wishes {
			t.Run(d.name+"/"+wish.text, func(t *testing.T) {
				body := d.body(true, "FAKE-TOKENS-4")
				body = body[:len(body)-1] + wish.text + "}"
				a := r.post(d.path, body)
				rec := r.record()
				equal(t, "status", a.StatusCode, 200)
				l, _ := r.engine.Request(rec.ID + "-a1")
				equal(t, "request upstream", string(l.Body), strings.Replace(body, `"public"`, `"served"`, 1))
				equal(t, "has the chunk", bytes.Contains(a.body, []byte(`"choices":[],`)), wish.want)
				equal(t, "outcome", rec.Outcome, trace.OK)
			})
		}
	}
}

// TestUsageOfAnEngine: the same with an engine's own events.
func TestUsageOfAnEngine(t *testing.T) {
	for _, fault := range []fakeengine.Fault{{Kind: fakeengine.NoNames}, {Kind: fakeengine.Merge, N: 3}, {Kind: fakeengine.Burst}, {Kind: fakeengine.Split, N: 7}, {Kind: fakeengine.UsageNull}} {
		t.Run(string(fault.Kind), func(t *testing.T) {
			r := newRig(t, setup{engine: fakeengine.Options{DefaultTokens: 9, StepBase: time.Millisecond}})
			r.engine.Script(fault)
			for _, d := range dialects[1:3] {
				for _, wish := range wishes[:2] {
					body := d.body(true, "hello")
					a := r.post(d.path, body[:len(body)-1]+wish.text+"}")
					rec := r.record()
					equal(t, "output tokens", rec.Tokens.Output, 9)
					equal(t, d.name+" has the chunk", bytes.Contains(a.body, []byte(`"choices":[],`)), wish.want)
					equal(t, "ends with [DONE]", bytes.HasSuffix(a.body, []byte("data: [DONE]\n\n")), true)
				}
			}
		})
	}
}
