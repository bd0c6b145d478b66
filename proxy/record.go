package proxy

import (
	"bytes"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"tracegate/fallback"
	"tracegate/trace"
	"tracegate/wire"
)

// record fills in what is known at the end of an exchange.
func (x *exchange) record(f *fault) {
	a := &x.at
	x.timeline.Edit(func(r *trace.Record) {
		r.Status = x.statusSent(f)
		if f != nil {
			r.Limit = f.limit
			if f.kind == fallback.OperatorAbort || f.kind == fallback.GatewayDrained {
				r.Side = trace.SideGateway
			}
		}
		if x.conn != nil {
			r.WriteStall = x.conn.Blocked()
		}
		if x.attempts == 0 {
			return
		}
		r.UpstreamDialect = x.dialectName()
		r.FinishReason = a.seen.FinishReason
		r.Tokens = x.tokens()
		if a.seen.Reported && !r.Stream {
			r.ReportedTTFT = time.Duration(a.seen.ReportedTTFT * float64(time.Millisecond))
		}
		r.UpstreamIDs = x.upstreamIDs()
		if a.seen.Uninspected > 0 {
			r.Notes = append(r.Notes, trace.Note{Setting: "inspection", Action: trace.NoteDropped,
				Reason: strconv.Itoa(a.seen.Uninspected) + " events were too large to be read"})
		}
		if a.answer == answerOpaque {
			r.Notes = append(r.Notes, trace.Note{Setting: "inspection", Action: trace.NoteDropped,
				Reason: "the answer was passed on unread"})
		}
	})
}

// statusSent is the status that the client got, or would have got.
func (x *exchange) statusSent(f *fault) int {
	switch {
	case f != nil && f.kind == fallback.ClientGone:
		return 499
	case x.begun:
		return x.sent // a keep-alive may have begun it, whatever came later
	case f != nil:
		return f.status
	default:
		return x.at.status
	}
}

// upstreamIDs: what we sent, and what the upstream called the request in its
// head and in its body.
func (x *exchange) upstreamIDs() []string {
	ids := make([]string, 1, 3)
	ids[0] = x.at.id
	for _, id := range [...]string{x.at.upstreamID, x.at.seen.ID} {
		if id != "" && id != ids[len(ids)-1] {
			ids = append(ids, bounded(id))
		}
	}
	return ids
}

// tokens are what the upstream reported. A stream that did not come to its
// report is estimated, and marked so: its content events, and the prompt's
// estimate where nothing was said of it.
func (x *exchange) tokens() trace.Tokens {
	a := &x.at
	t := tokensOf(a.seen.Usage)
	if a.tokens == 0 || a.seen.Complete() || int64(a.tokens) <= t.Output {
		return t
	}
	t.Output, t.Source = int64(a.tokens), trace.SourceEstimated
	if t.Input < 0 {
		t.Input = int64(x.head.EstimatedTokens)
	}
	return t
}

func tokensOf(u wire.Usage) trace.Tokens {
	t := trace.Tokens{Input: trace.Unknown, Output: trace.Unknown, CacheRead: trace.Unknown,
		CacheWrite: trace.Unknown, Reasoning: trace.Unknown}
	set := func(f wire.Fields, dst *int64, n int64) {
		if u.Has(f) {
			*dst = n
			t.Source = trace.SourceUpstream
		}
	}
	set(wire.FieldInput, &t.Input, u.Input)
	set(wire.FieldOutput, &t.Output, u.Output)
	set(wire.FieldCacheRead, &t.CacheRead, u.CacheRead)
	set(wire.FieldCacheWrite, &t.CacheWrite, u.CacheWrite)
	set(wire.FieldReasoning, &t.Reasoning, u.Reasoning)
	return t
}

// outputTokens are the generated ones, -1 where nobody told.
func outputTokens(u wire.Usage) int64 {
	if !u.Has(wire.FieldOutput) {
		return trace.Unknown
	}
	return u.Output
}

// promptTokens are those of the whole prompt, cached ones too; -1 where nobody told.
func promptTokens(u wire.Usage) int64 {
	if !u.Has(wire.FieldInput) {
		return trace.Unknown
	}
	return u.Input + u.CacheRead + u.CacheWrite
}

// clientOf is what the client's headers say about itself.
func clientOf(h *fasthttp.RequestHeader) trace.Client {
	c := trace.Client{Agent: agentOf(h.UserAgent()), RetryCount: trace.Unknown}
	for _, name := range [...]string{"X-Claude-Code-Session-Id", "Session-Id", "Thread-Id", "X-Session-Id"} {
		if v := h.Peek(name); len(v) > 0 {
			c.Session = bounded(string(v))
			break
		}
	}
	if v := h.Peek("X-Stainless-Retry-Count"); len(v) > 0 {
		if n, err := strconv.Atoi(string(v)); err == nil && n >= 0 {
			c.RetryCount = n
		}
	}
	return c
}

// agentOf is the product of a User-Agent: "claude-cli/2.1.332" of
// "claude-cli/2.1.332 (external, cli)".
func agentOf(userAgent []byte) string {
	if i := bytes.IndexByte(userAgent, ' '); i > 0 {
		userAgent = userAgent[:i]
	}
	return bounded(string(userAgent))
}

const (
	maxTags   = 8
	maxNote   = 256 // bytes of anything that a client or an upstream chose
	maxTagLen = 64
)

// tagsOf reads x-gateway-tags: a comma list, bounded in number and length.
func tagsOf(v []byte) []string {
	if len(v) == 0 {
		return nil
	}
	var tags []string
	for tag := range strings.SplitSeq(string(v), ",") {
		if tag = strings.TrimSpace(tag); tag != "" && len(tag) <= maxTagLen && len(tags) < maxTags {
			tags = append(tags, tag)
		}
	}
	return tags
}

// bounded cuts foreign text at a character, so that nobody can fill a record.
func bounded(s string) string {
	if len(s) <= maxNote {
		return s
	}
	cut := maxNote
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}

// quote shows foreign text inside a message, escaped and bounded.
func quote(v []byte) string { return strconv.Quote(bounded(string(v))) }

// upstreamRequestID is what the upstream calls the request in its head.
func upstreamRequestID(h *fasthttp.ResponseHeader) string {
	for _, name := range [...]string{"X-Request-Id", "Request-Id", "X-Oneapi-Request-Id"} {
		if v := h.Peek(name); len(v) > 0 {
			return bounded(string(v))
		}
	}
	return ""
}

// isRequestID: what a client may choose as the id of its request.
func isRequestID(id string) bool {
	if len(id) < 8 || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
