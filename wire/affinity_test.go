package wire

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// affinity is that of a body that the gateway accepts.
func affinity(t testing.TB, d Dialect, body string) uint64 {
	t.Helper()
	var h Head
	if err := ReadHead(d, []byte(body), &h); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return Affinity(&h, []byte(body))
}

// prompts writes, for each dialect with prompts, the members of a body with a system prompt, a first message and later
// turns.
var prompts = []struct {
	dialect Dialect
	members func(system, first, later string) []string
}{
	{Chat, func(system, first, later string) []string {
		return []string{`"messages":[{"role":"system","content":"` + system + `"},{"role":"user","content":"` + first + `"},{"role":"assistant","content":"` + later + `"}]`}
	}},
	{Completions, func(system, first, later string) []string {
		return []string{`"prompt":"` + system + first + strings.Repeat(" ", leadingText) + later + `"`}
	}},
	{Messages, func(system, first, later string) []string {
		return []string{`"system":[{"type":"text","text":"` + system + `","cache_control":{"type":"ephemeral"}}]`,
			`"messages":[{"role":"user","content":[{"type":"text","text":"` + first + `"}]},{"role":"assistant","content":"` + later + `"}]`}
	}},
	{Responses, func(system, first, later string) []string {
		return []string{`"instructions":"` + system + `"`,
			`"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"` + first + `"}]},{"type":"function_call","name":"` + later + `"}]`}
	}},
}

func object(members ...string) string { return "{" + strings.Join(members, ",") + "}" }

func TestAffinityOfPrompts(t *testing.T) {
	for _, p := range prompts {
		t.Run(p.dialect.Name(), func(t *testing.T) {
			body := func(system, first, later string, more ...string) string {
				return object(append(p.members(system, first, later), more...)...)
			}
			base := affinity(t, p.dialect, body("Be brief.", "Hello", "Hi"))
			if base == 0 {
				t.Fatal("there is no hash")
			}
			same := map[string]string{
				"later turns":  body("Be brief.", "Hello", "Something else entirely"),
				"other fields": body("Be brief.", "Hello", "Hi", `"model":"m"`, `"stream":true`, `"max_tokens":7`, `"temperature":0.3`, `"rid":"r"`, `"tools":[{"name":"t"}]`),
				"escapes":      body(`\u0042e b\u0072ief\u002e`, `H\u0065llo`, "Hi"),
				"a mark":       "\xef\xbb\xbf \n" + body("Be brief.", "Hello", "Hi"),
			}
			for name, other := range same {
				if affinity(t, p.dialect, other) != base {
					t.Errorf("%s change the hash: %s", name, other)
				}
			}
			for name, other := range map[string]string{
				"another system prompt": body("Be long.", "Hello", "Hi"),
				"another first message": body("Be brief.", "Bye", "Hi"),
			} {
				if affinity(t, p.dialect, other) == base {
					t.Errorf("%s does not change the hash: %s", name, other)
				}
			}
		})
	}
}

func TestAffinityIgnoresTheOrderOfKeys(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, p := range prompts {
		members := append(p.members("Be brief.", "Hello", "Hi"), `"model":"m"`, `"stream":true`, `"temperature":1`,
			`"tools":[{"system":"x","messages":["y"]}]`, `"metadata":{"input":"z","prompt":"z"}`)
		want := affinity(t, p.dialect, object(members...))
		for range 50 {
			random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
			if body := object(members...); affinity(t, p.dialect, body) != want {
				t.Errorf("%s: another order gives another hash: %s", p.dialect.Name(), body)
			}
		}
	}
}

func TestAffinityOfSessions(t *testing.T) {
	session := map[Dialect]string{Chat: `"prompt_cache_key":"%s"`, Responses: `"prompt_cache_key":"%s"`,
		Messages: `"metadata":{"user_id":"{\"session_id\":\"%s\"}"}`}
	var want uint64
	for _, p := range prompts {
		if session[p.dialect] == "" {
			continue
		}
		with := func(id, first string) uint64 {
			members := append(p.members("Be brief.", first, "Hi"), fmt.Sprintf(session[p.dialect], id))
			return affinity(t, p.dialect, object(members...))
		}
		one := with("s-1", "Hello")
		if want == 0 {
			want = one
		}
		if one == 0 || one != want || one != with("s-1", "Bye") || one == with("s-2", "Hello") {
			t.Errorf("%s: the hash is not the session's", p.dialect.Name())
		}
	}
}

// TestAffinityForms: what is the same to the model has the same hash, in whatever form and dialect.
func TestAffinityForms(t *testing.T) {
	long := strings.Repeat("long ", 2*leadingText)
	const billing = `x-anthropic-billing-header: cc_version=2.1.332.abc; cc_entrypoint=cli;`
	for name, bodies := range map[string][]struct {
		dialect Dialect
		body    string
	}{
		"one conversation": {
			{Chat, `{"messages":[{"role":"system","content":"S"},{"role":"user","content":"U"}]}`},
			{Chat, `{"messages":[{"content":[{"type":"text","text":"S"}],"role":"developer"},{"content":"U","role":"user"}]}`},
			{Messages, `{"system":"S","messages":[{"role":"user","content":"U"}]}`},
			{Messages, `{"messages":[{"content":[{"text":"U","type":"text"}],"role":"user"}],"system":[{"type":"text","text":"S"}]}`},
			{Responses, `{"instructions":"S","input":"U"}`},
			{Responses, `{"input":[{"type":"reasoning","summary":[]},{"role":"developer","content":"S"},{"role":"user","content":"U"}]}`},
		},
		"a picture says nothing": {
			{Messages, `{"system":"S","messages":[{"role":"user","content":[{"type":"image","source":{"data":"QUJD","text":7}},{"type":"text","text":"U"}]}]}`},
			{Messages, `{"system":"S","messages":[{"role":"user","content":[{"type":"text","text":"U"},{"type":"image","source":{"data":"REVG"}}]}]}`},
		},
		"Claude Code's line": {
			{Messages, `{"system":[{"type":"text","text":"` + billing + `"},{"type":"text","text":"` + long + `"}],"messages":[{"role":"user","content":"U"}]}`},
			{Messages, `{"system":[{"type":"text","text":"` + billing + ` cch=12345;"},{"type":"text","text":"` + long + `"}],"messages":[{"role":"user","content":"U"}]}`},
			{Messages, `{"system":"` + billing + ` cch=54321;\n` + long + `","messages":[{"role":"user","content":"U"}]}`},
			{Chat, `{"messages":[{"role":"system","content":"` + long + `"},{"role":"user","content":"U"}]}`},
		},
		"several prompts": {
			{Completions, `{"prompt":"U"}`}, {Completions, `{"prompt":["U","V"]}`}, {Completions, `{"prompt":[ "U" ]}`},
		},
		"token ids": {
			{Completions, `{"prompt":[1,2,3]}`}, {Completions, `{"prompt":[[1,2,3],[4]],"n":2}`}, {Completions, `{"n":1,"prompt":[1,2,3],"best_of":1}`},
		},
		"only the beginning": {
			{Chat, `{"messages":[{"role":"user","content":"` + long + `"}]}`},
			{Chat, `{"messages":[{"role":"user","content":"` + long + ` and more"},{"role":"user","content":"V"}]}`},
		},
	} {
		want := affinity(t, bodies[0].dialect, bodies[0].body)
		if want == 0 {
			t.Errorf("%s: no hash", name)
		}
		for _, b := range bodies {
			if affinity(t, b.dialect, b.body) != want {
				t.Errorf("%s: another hash for %.200s", name, b.body)
			}
		}
	}
	if affinity(t, Completions, `{"prompt":[1,2,3]}`) == affinity(t, Completions, `{"prompt":[1,2,4]}`) {
		t.Error("token ids do not matter")
	}
	if affinity(t, Chat, `{"messages":[{"role":"system","content":"A"}]}`) == affinity(t, Chat, `{"messages":[{"role":"user","content":"A"}]}`) {
		t.Error("a system prompt alone has the hash of a message")
	}
}

func TestAffinityOfNothing(t *testing.T) {
	for _, d := range All() {
		for _, body := range []string{`{}`, `{"model":"m"}`, `{"messages":[]}`, `{"messages":null,"prompt":null,"input":null}`,
			`{"messages":[null,true,{"role":"user"},{"role":"user","content":null}]}`, `{"system":[],"messages":[{"role":"user","content":[]}]}`,
			`{"instructions":"","input":""}`, `{"prompt":[],"input":[[]]}`, `{"system":7,"messages":{"role":"user"}}`} {
			if got := affinity(t, d, body); got != 0 {
				t.Errorf("%s: %s has hash %x", d.Name(), body, got)
			}
		}
	}
	for _, d := range []Dialect{Embeddings, Other} {
		if affinity(t, d, `{"messages":[{"role":"user","content":"U"}],"prompt":"U","input":"U"}`) != 0 {
			t.Errorf("%s has prompts", d.Name())
		}
	}
	if Affinity(&Head{}, nil) != 0 {
		t.Error("a head that was not read has a hash")
	}
}

// TestAffinityStaysTheSame on all replicas and after an update: another value would move every conversation.
func TestAffinityStaysTheSame(t *testing.T) {
	if got := affinity(t, Chat, `{"messages":[{"role":"system","content":"S"},{"role":"user","content":"U"}]}`); got != 0x2747aebc65bbbda {
		t.Errorf("prompt: %#x", got)
	}
	if got := affinity(t, Chat, `{"prompt_cache_key":"k"}`); got != 0xc3d31922c50b1b63 {
		t.Errorf("session: %#x", got)
	}
}

// FuzzAffinity: no bytes make it panic, whether or not the head is theirs, and blanks around them do not matter.
func FuzzAffinity(f *testing.F) {
	for _, p := range prompts {
		f.Add([]byte(object(p.members(`Be \"brief\".\ud83d\ude00`, `H\u`, "Hi")...)))
	}
	for _, seed := range []string{"", "{", `{"messages":[{"content":"`, `{"system":[{"text":"\`, `{"prompt":[[1,2`, `{"input":[{"role":"user","content":[{"text":"\ud800"`,
		`{"system":"x-anthropic-billing-header: a\nb","messages":["x",7,{"role":"system","content":["a"]}]}`, "{\"prompt\":\"\xff\xfe\"}"} {
		f.Add([]byte(seed))
	}
	f.Add(agentBody(3000))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, d := range All() {
			var h Head
			err := ReadHead(d, body, &h)
			hash := Affinity(&h, body)
			Affinity(&h, body[:len(body)/2])
			Affinity(&Head{keys: d.requestKeys(), open: 1}, body)
			if err != nil {
				continue
			}
			padded := append([]byte("\r\n "), body...)
			if body[0] != 0xef && ReadHead(d, padded, &h) == nil && Affinity(&h, padded) != hash {
				t.Fatalf("%s: blanks before it change the hash of %q", d.Name(), body)
			}
		}
	})
}
