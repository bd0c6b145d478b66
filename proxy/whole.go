package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"tracegate/fallback"
	"tracegate/trace"
	"tracegate/wire"
)

// wholeLimit bounds the answers that are read to their end before they are
// passed on, so that a cut one can still become a status and its usage be
// read. A larger one is passed on as it comes.
const wholeLimit = 4 << 20

// readWhole reads an answer that is no event stream.
func (x *exchange) readWhole(until time.Time) error {
	a := &x.at
	b, err := a.call.Next(until)
	switch {
	case err == nil:
		x.timeline.Mark(trace.FirstByte)
		a.whole = append(a.whole, b...)
		if a.status == 200 && (len(a.whole) > wholeLimit || x.passesUnread()) {
			a.answer = answerOpaque
		}
		if len(a.whole) > wholeLimit && a.status != 200 {
			return x.ofUpstream(fallback.Protocol, trace.UpstreamError, fmt.Sprintf("status %d with a body of more than %d bytes", a.status, wholeLimit))
		}
		return nil
	case err == io.EOF:
		return x.readStatus()
	default:
		return err
	}
}

// passesUnread: a compressed event stream cannot be looked at, and must not be
// collected either.
func (x *exchange) passesUnread() bool { return x.streams() && x.at.encoded() }

// readStatus decides what a complete answer means.
func (x *exchange) readStatus() error {
	a := &x.at
	a.answer = answerWhole
	if a.status >= 200 && a.status < 300 {
		return x.readSuccess()
	}
	kind, _ := fallback.Classify(fallback.Failure{Status: a.status, JSON: isJSON(a.whole), Message: firstBytes(a.whole)})
	f := &fault{status: a.status, kind: kind, outcome: trace.UpstreamError, relay: true, asked: retryAfter(a.head, time.Now()),
		message: fmt.Sprintf("deployment %s answered %d: %s", a.name(), a.status, x.said())}
	switch {
	case a.status < 300 || a.status >= 600, kind == fallback.Protocol:
		f.status, f.relay = 502, false
	case kind == fallback.Credential && !a.up.passes():
		// Our credential, not the client's: it must not hear 401 and ask its user to log in.
		// Nor may its users hear what the vendor says about it.
		f.status, f.relay = 502, false
		f.detail, f.message = f.message, fmt.Sprintf("deployment %s refused the gateway's credential (status %d)", a.name(), a.status)
	case a.status < 500:
		f.outcome = trace.ClientError // relayed; whose fault it was is the attempt's result
	}
	return f
}

// readSuccess looks for what a 2xx body says about itself.
func (x *exchange) readSuccess() error {
	a := &x.at
	if len(a.whole) == 0 && (a.status != 204 || x.route.dialect != wire.Other) {
		return x.emptyStream()
	}
	if a.encoded() {
		return nil
	}
	x.route.dialect.ObserveBody(&a.seen, a.whole)
	if a.seen.Malformed > 0 && isJSON(a.whole) && x.route.dialect != wire.Other {
		// Without a length the end of the connection is the end of the body, and of a cut one too.
		return x.ofUpstream(fallback.Cut, trace.UpstreamError, "its answer is not whole")
	}
	if a.seen.Failure != nil {
		return x.reportedFailure()
	}
	return nil
}

// retryAfter is how long an upstream asks us to stay away; 0 where it does not.
func retryAfter(h *fasthttp.ResponseHeader, now time.Time) time.Duration {
	if h == nil {
		return 0
	}
	if ms, err := strconv.ParseFloat(string(h.Peek("Retry-After-Ms")), 64); err == nil && ms > 0 {
		return capped(ms, time.Millisecond)
	}
	v := string(h.Peek("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
		return capped(s, time.Second)
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// longestPatience bounds what an upstream may ask for.
const longestPatience = 24 * time.Hour

func capped(n float64, unit time.Duration) time.Duration {
	return time.Duration(min(n*float64(unit), float64(longestPatience)))
}

// said is the reason in an error body, in the upstream's words.
func (x *exchange) said() string {
	if x.at.encoded() {
		return "(a compressed body)"
	}
	return wire.ReadFailure(x.at.status, x.at.whole).Message
}

// firstBytes is as much of a body as is searched for an engine's texts.
func firstBytes(body []byte) []byte { return body[:min(len(body), 8<<10)] }
