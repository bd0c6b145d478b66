//go:build !race && linux

package wire

import (
	"strings"
	"testing"
)

// largeBodies are of 200 KB, by dialect and form.
func largeBodies() map[string]struct {
	dialect Dialect
	body    []byte
} {
	agent := agentBody(200 << 10)
	text := strings.Repeat(`The quick brown fox\njumps over the lazy dog, and more of that. `, 3000)
	cjk := strings.Repeat(`\u4e16\u754c`, 15000)
	behind := append(append([]byte{}, agent[:len(agent)-1]...), `,"system":"Be brief."}`...)
	before := append([]byte(`{"system":"Be brief.",`), agent[1:]...)
	type b = struct {
		dialect Dialect
		body    []byte
	}
	return map[string]b{
		"chat agent":             {Chat, agent},
		"chat one long message":  {Chat, []byte(`{"messages":[{"role":"user","content":"` + text + `"}]}`)},
		"chat content, role":     {Chat, []byte(`{"messages":[{"content":"` + text + `","role":"user"}]}`)},
		"chat escaped":           {Chat, []byte(`{"messages":[{"role":"system","content":"` + cjk[:9000] + `"},{"role":"user","content":"` + cjk + `"}]}`)},
		"completions":            {Completions, []byte(`{"prompt":"` + text + `"}`)},
		"messages system before": {Messages, before},
		"messages system behind": {Messages, behind},
		"responses":              {Responses, []byte(`{"model":"m","instructions":"` + text[:9000] + `","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"` + text + `"}]}]}`)},
		"session":                {Chat, append([]byte(`{"prompt_cache_key":"0198c5f2-7a3b-7def-8123-456789abcdef",`), agent[1:]...)},
	}
}

func TestAffinityDoesNotAllocate(t *testing.T) {
	for name, b := range largeBodies() {
		var h Head
		if err := ReadHead(b.dialect, b.body, &h); err != nil {
			t.Fatal(name, err)
		}
		noAllocs(t, name, func() {
			if Affinity(&h, b.body) == 0 {
				t.Fatal("no hash")
			}
		})
	}
}

func BenchmarkAffinity(b *testing.B) {
	for name, large := range largeBodies() {
		var h Head
		if err := ReadHead(large.dialect, large.body, &h); err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) { measure(b, func() { Affinity(&h, large.body) }) })
	}
}
