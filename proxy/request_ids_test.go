package proxy

import (
	"regexp"
	"strings"
	"testing"
)

// Ids of requests and traces: the client's are taken only where its tenant may
// choose them, and only if they are harmless; upstream every attempt has one
// of its own.

var requestIDCases = []struct {
	name, id string
	valid    bool
}{
	{"ordinary", "req-0123.abc_DEF", true},
	{"shortest", "12345678", true},
	{"longest", strings.Repeat("a", 64), true},
	{"uuid", "123e4567-e89b-12d3-a456-426614174000", true},
	{"too short", "1234567", false},
	{"too long", strings.Repeat("a", 65), false},
	{"megabyte, nearly", strings.Repeat("a", 30<<10), false},
	{"blank inside", "1234 5678", false},
	{"tab inside", "1234\t5678", false},
	{"quotes", `"12345678"`, false},
	{"escaped line end", "12345678%0a", false},
	{"slash", "12345678/..", false},
	{"not ASCII", "12345678é", false},
	{"empty", "", false},
}

func TestRequestIDs(t *testing.T) {
	for _, trusted := range []bool{true, false} {
		s := quickly(setup{})
		if trusted {
			s.tenant = "    trust_request_id: true"
		}
		r := newRig(t, s)
		for i, c := range requestIDCases {
			d := dialects[i%len(dialects)]
			a := r.post(d.path, d.body(true, "x"), "X-Request-Id: "+c.id)
			rec := r.record()
			equal(t, c.name+": id in the headers", a.Header.Get("X-Request-Id"), rec.ID)
			equal(t, c.name+": is the client's", rec.ID == c.id, trusted && c.valid)
			if rec.ID != c.id {
				equal(t, c.name+": length of ours", len(rec.ID), 26)
			}
			equal(t, c.name+": the client's is kept", rec.ClientID, c.id[:min(len(c.id), maxNote)])
			l, _ := r.engine.Request(rec.ID + "-a1")
			equal(t, c.name+": id upstream", strings.Join(l.Header.Values("X-Request-Id"), "|"), rec.ID+"-a1")
		}
	}
}

var traceparentPattern = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

func TestTraceparent(t *testing.T) {
	const id, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	cases := []struct {
		name, header string
		valid        bool
	}{
		{"sampled", "00-" + id + "-" + parent + "-01", true},
		{"not sampled", "00-" + id + "-" + parent + "-00", true},
		{"none", "", false},
		{"capitals", "00-" + strings.ToUpper(id) + "-" + parent + "-01", false},
		{"no trace", "00-" + strings.Repeat("0", 32) + "-" + parent + "-01", false},
		{"no parent", "00-" + id + "-" + strings.Repeat("0", 16) + "-01", false},
		{"other version", "01-" + id + "-" + parent + "-01", false},
		{"too long", "00-" + id + "-" + parent + "-01-x", false},
	}
	for _, trusted := range []bool{true, false} {
		s := quickly(setup{})
		if trusted {
			s.tenant = "    trust_request_id: true"
		}
		r := newRig(t, s)
		for _, c := range cases {
			l, _, _ := r.sentUp(t, dialects[1], dialects[1].path, "traceparent: "+c.header, "tracestate: vendor=1")
			got := l.Header.Get("Traceparent")
			if !traceparentPattern.MatchString(got) {
				t.Fatalf("%s: traceparent upstream %q", c.name, got)
			}
			equal(t, c.name+": trace is continued", got[3:35] == id, trusted && c.valid)
			equal(t, c.name+": parent is the gateway's own", got[36:52] != parent, true)
			want := "00"
			if trusted && c.valid {
				want = c.header[53:55]
			}
			equal(t, c.name+": flags", got[53:], want)
		}
	}
}
