package load

import (
	"strings"
	"testing"
)

// wrong counts what is found in one answer.
type wrong struct{ errors, changed, tokens, crossTalk, noEnd int64 }

// tokenEvent returns the n-th event that holds a token.
func tokenEvent(body string, n int) string {
	for _, e := range strings.SplitAfter(body, "\n\n") {
		if strings.Contains(e, "~T") {
			if n == 0 {
				return e
			}
			n--
		}
	}
	panic("BUG: no such event")
}

func lastEvent(body string) string {
	all := strings.SplitAfter(body, "\n\n")
	return all[len(all)-2]
}

// damages are all the ways in which the load claims to find an answer wrong, and one in which it is not.
var damages = []struct {
	name   string
	damage func(body string) (answer string)
	want   wrong
}{
	{"unchanged", framed, wrong{}},
	{"a changed byte in the first event", func(b string) string {
		return framed(strings.Replace(b, `"model":"bench-model"`, `"model":"bench-modeL"`, 1))
	}, wrong{changed: 1}},
	{"a changed byte at the end", func(b string) string {
		e := lastEvent(b)
		return framed(strings.TrimSuffix(b, e) + ": \n" + e)
	}, wrong{changed: 1}},
	{"a comment between events", func(b string) string {
		e := tokenEvent(b, 2)
		return framed(strings.Replace(b, e, ": keep-alive\n\n"+e, 1))
	}, wrong{changed: 1}},
	{"a repeated token", func(b string) string {
		e := tokenEvent(b, 3)
		return framed(strings.Replace(b, e, e+e, 1))
	}, wrong{changed: 1, tokens: 1}},
	{"a lost token", func(b string) string {
		return framed(strings.Replace(b, tokenEvent(b, 3), "", 1))
	}, wrong{changed: 1, tokens: 1}},
	{"two tokens swapped", func(b string) string {
		x, y := tokenEvent(b, 2), tokenEvent(b, 3)
		return framed(strings.Replace(b, x+y, y+x, 1))
	}, wrong{changed: 1, tokens: 1}},
	{"a token of another request", func(b string) string {
		e := tokenEvent(b, 4)
		i := strings.Index(e, "~I") + 2
		return framed(strings.Replace(b, e, e[:i]+"0000000007"+e[i+idDigits:], 1))
	}, wrong{changed: 1, crossTalk: 1}},
	{"no terminal event", func(b string) string {
		return framed(strings.TrimSuffix(b, lastEvent(b)))
	}, wrong{noEnd: 1}},
	{"bytes after the terminal event", func(b string) string { return framed(b + ": more\n\n") }, wrong{changed: 1}},
	{"a terminal event without its blank line", func(b string) string {
		return framed(strings.TrimSuffix(b, "\n"))
	}, wrong{noEnd: 1}},
	{"cut between two events", func(b string) string {
		a := framed(b)
		e := tokenEvent(b, 3)
		return a[:strings.Index(a, e)+len(e)+2]
	}, wrong{errors: 1, tokens: 1, noEnd: 1}},
	{"cut in the middle of an event", func(b string) string {
		a := framed(b)
		return a[:strings.Index(a, tokenEvent(b, 3))+20]
	}, wrong{errors: 1, tokens: 1, noEnd: 1}},
	{"cut before the last chunk", func(b string) string {
		return strings.TrimSuffix(framed(b), "0\r\n\r\n")
	}, wrong{errors: 1}},
	{"no answer", func(string) string { return "" }, wrong{errors: 1}},
	{"a refusal", func(string) string {
		return "HTTP/1.1 429 Too Many\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
	}, wrong{errors: 1}},
	{"no HTTP", func(string) string { return "SSH-2.0-x\r\n\r\n" }, wrong{errors: 1}},
}

func TestWrongAnswers(t *testing.T) {
	const tokens = 6
	for _, dialect := range Dialects {
		for _, c := range damages {
			t.Run(dialect+"/"+c.name, func(t *testing.T) {
				addr := serveAnswers(t, func(o order) string { return c.damage(decoded(scriptFor(dialect, tokens), o)) })
				r := mustRun(t, Plan{Addr: addr, Dialect: dialect, Tokens: tokens, Requests: 1})
				got := wrong{r.Errors, r.Changed, r.Tokens, r.CrossTalk, r.NoEnd}
				if got != c.want {
					t.Errorf("got %+v, want %+v; faults %v", got, c.want, r.Faults)
				}
				if (r.Wrong() > 0) != (len(r.Faults) > 0) {
					t.Errorf("%d wrong, but faults are %v", r.Wrong(), r.Faults)
				}
			})
		}
	}
}

func TestChangedWholeAnswer(t *testing.T) {
	for _, dialect := range Dialects {
		addr := serveAnswers(t, func(o order) string {
			b := scriptFor(dialect, o.tokens).wholeWire.appendTo(nil, slots{received: Now(), stamp: Now(), id: o.id})
			return strings.Replace(string(b), "pad pad", "pad pid", 1)
		})
		r := mustRun(t, Plan{Addr: addr, Dialect: dialect, Whole: true, Requests: 1})
		if r.Changed != 1 || r.Wrong() != 1 {
			t.Errorf("%s: %+v", dialect, r)
		}
	}
}

// TestSplitAnywhere feeds an exact stream in two parts, cut at every byte.
func TestSplitAnywhere(t *testing.T) {
	s := scriptFor("responses", 3)
	body := []byte(decoded(s, order{tokens: 3, id: 42}))
	for cut := range body {
		var seen []int64
		c := check{seen: func(index int64, _ slots) { seen = append(seen, index) }}
		c.start(s, 42, false)
		c.feed(body[:cut])
		c.feed(body[cut:])
		if v := c.finish(false); v != (verdict{}) || len(seen) != 3 || seen[2] != 2 {
			t.Fatalf("cut at %d: %+v, tokens %v", cut, v, seen)
		}
	}
}
