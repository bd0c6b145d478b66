package load

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// order is what a request asks of the upstream. It travels in the prompt's text, because that is what every gateway passes on.
type order struct {
	tokens       int
	prefill, gap time.Duration
	whole        bool
	id           int64
}

const (
	orderOpen = "(load "
	idDigits  = 10
)

func (o order) String() string {
	whole := 0
	if o.whole {
		whole = 1
	}
	return fmt.Sprintf("%s%d %d %d %d %0*d)", orderOpen, o.tokens, o.prefill.Microseconds(), o.gap.Microseconds(), whole, idDigits, o.id)
}

func parseOrder(body []byte) (o order, ok bool) {
	i := bytes.Index(body, []byte(orderOpen))
	if i < 0 {
		return o, false
	}
	body = body[i+len(orderOpen):]
	end := bytes.IndexByte(body[:min(len(body), 100)], ')')
	if end < 0 {
		return o, false
	}
	var v [5]int64
	fields := strings.Fields(string(body[:end]))
	if len(fields) != len(v) {
		return o, false
	}
	for i, f := range fields {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil || n < 0 {
			return o, false
		}
		v[i] = n
	}
	o = order{int(v[0]), time.Duration(v[1]) * time.Microsecond, time.Duration(v[2]) * time.Microsecond, v[3] == 1, v[4]}
	return o, o.tokens >= 1 && o.tokens <= maxTokens
}

// request is the bytes of a plan's request before and after the id.
type request struct{ before, after []byte }

// newRequest writes a body of about p.Body bytes: the order, then turns of text with the quotes and line ends that code has.
func newRequest(p *Plan) request {
	const turn = 4096
	var b strings.Builder
	field, limit := "messages", "max_tokens"
	if p.Dialect == "responses" {
		field, limit = "input", "max_output_tokens"
	}
	fmt.Fprintf(&b, `{"model":%q,"stream":%t,"%s":%d,`, p.Model, !p.Whole, limit, p.Tokens)
	if p.Dialect == "chat" && !p.Whole {
		b.WriteString(`"stream_options":{"include_usage":true},`)
	}
	o := order{p.Tokens, p.Prefill, p.Gap, p.Whole, 0}
	fmt.Fprintf(&b, `"%s":[{"role":"user","content":"%s `, field, o)
	roles := []string{"assistant", "user"}
	for i := 0; b.Len() < p.Body; i++ {
		b.WriteString(prose(min(p.Body-b.Len(), turn)))
		if b.Len() < p.Body-100 {
			fmt.Fprintf(&b, `"},{"role":"%s","content":"`, roles[i%2])
		}
	}
	b.WriteString(`"}]}`)
	body := b.String()
	var h strings.Builder
	fmt.Fprintf(&h, "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: load\r\nAccept: */*\r\nContent-Type: application/json\r\nContent-Length: %d\r\n",
		dialectPath(p.Dialect), p.Addr, len(body))
	if p.Key != "" {
		h.WriteString("Authorization: Bearer " + p.Key + "\r\n")
	}
	if p.Dialect == "messages" {
		h.WriteString("anthropic-version: 2023-06-01\r\n")
	}
	all := h.String() + "\r\n" + body
	i := strings.Index(all, orderOpen)
	i += strings.IndexByte(all[i:], ')') - idDigits
	return request{[]byte(all[:i]), []byte(all[i+idDigits:])}
}

// prose is n bytes of JSON string text.
func prose(n int) string {
	const line = `if err := s.take(\"slot\"); err != nil {\n\treturn err\n}\n`
	return strings.Repeat(line, n/len(line)) + strings.Repeat("x", n%len(line))
}
