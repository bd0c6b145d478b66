package proxy

import (
	"time"

	"tracegate/configs"
	"tracegate/fallback"
	"tracegate/trace"
)

// limit is one of the hard limits of an exchange.
type limit uint8

const (
	noLimit limit = iota
	limitConnect
	limitFirstToken
	limitIdle
	limitTotal
	limitDrain     // what is left of draining after the client left
	limitKeepalive // not a limit: the client is owed a sign of life
)

// step is where an attempt stands; it decides which limits are running.
type step uint8

const (
	stepConnect step = iota
	stepSend
	stepHead    // waiting for the response's head
	stepContent // head seen, waiting for the first content
	stepStream  // content has begun
	stepBody    // an answer that is not an event stream is being read
	stepUnread  // an answer is passed on without being looked at; its bytes count as content
	stepWait    // no attempt is under way: only the limits of the whole exchange run
)

// deadlines are the limits of one exchange as instants. They are turned into
// read and write deadlines of the upstream connection, which are armed anew
// when they pass, so that a token costs no timer: until() is asked for the
// earliest instant, due() says after a pause which limit has really passed.
type deadlines struct {
	limits configs.Timeouts // in force: the deployment's, lowered by the client's header
	wished time.Duration    // the client's own limit, which may only lower ours; 0 = none
	scope  string           // before the names of settings that the deployment overrides: "deployments.d1."
	global configs.Timeouts // to tell which ones those are
	began  time.Time        // the enqueue instant

	total      time.Time // of the whole exchange
	connect    time.Time // of the attempt
	firstToken time.Time // of the attempt; zero for answers that do not stream
	drained    time.Time // after the client left: how long the answer is read on; zero = not

	keepalive time.Duration // 0 = never
	lastSign  time.Time     // when the client last got a byte, or began to wait
}

// begin starts the clock of the exchange.
func (d *deadlines) begin(now time.Time) { d.began, d.lastSign = now, now }

// waitFor sets what bounds the wait for a first attempt.
func (d *deadlines) waitFor(limits configs.Timeouts) {
	d.limits = limits
	d.total = instant(d.began, limits.Total)
}

// beginAttempt starts the limits of one attempt; total goes on from the beginning.
func (d *deadlines) beginAttempt(now time.Time, limits configs.Timeouts, deployment string, stream bool, promptTokens int) {
	d.scope = "deployments." + deployment + "."
	d.limits = limits
	d.total = instant(d.began, limits.Total)
	d.connect = instant(now, d.limits.Connect)
	d.firstToken = time.Time{}
	if stream {
		d.firstToken = instant(now, d.limits.FirstTokenFor(promptTokens))
	}
}

// instant is now + d; a limit of 0 is no limit.
func instant(now time.Time, d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return now.Add(d)
}

// next is the earliest instant at which something is due in this step.
// lastContent is the last token's stamp.
func (d *deadlines) next(s step, lastContent time.Time) (time.Time, limit) {
	at, which := d.total, limitTotal
	if at.IsZero() {
		which = noLimit
	}
	sooner := func(t time.Time, l limit) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at, which = t, l
		}
	}
	if !d.drained.IsZero() {
		sooner(d.drained, limitDrain)
	}
	switch s {
	case stepConnect:
		sooner(d.connect, limitConnect)
		sooner(d.firstToken, limitFirstToken)
	case stepSend, stepHead, stepContent:
		sooner(d.firstToken, limitFirstToken)
	case stepStream:
		sooner(instant(lastContent, d.limits.Idle), limitIdle)
	case stepBody:
		sooner(d.firstToken, limitFirstToken) // no stream has come of it yet
	case stepUnread:
		if !d.firstToken.IsZero() {
			sooner(instant(lastContent, d.limits.Idle), limitIdle)
		}
	}
	if d.keepalive > 0 && s != stepBody && s != stepUnread {
		sooner(d.lastSign.Add(d.keepalive), limitKeepalive)
	}
	return at, which
}

// due says which limit has passed, noLimit when none has yet.
func (d *deadlines) due(now time.Time, s step, lastContent time.Time) limit {
	at, which := d.next(s, lastContent)
	if which == noLimit || now.Before(at) {
		return noLimit
	}
	return which
}

// fault is what a passed limit means for the request. It names the setting and
// its value, because the operator must know which knob to turn.
func (d *deadlines) fault(l limit, promptTokens int) *fault {
	switch l {
	case limitConnect:
		return d.passed(fallback.TimeoutConnect, trace.TimeoutConnect, "timeouts.connect", d.limits.Connect, d.global.Connect,
			"the upstream did not accept a connection")
	case limitFirstToken:
		return d.passed(fallback.TimeoutFirstToken, trace.TimeoutFirstToken, "timeouts.first_token",
			d.limits.FirstTokenFor(promptTokens), d.global.FirstTokenFor(promptTokens), "the upstream sent no token")
	case limitIdle:
		return d.passed(fallback.TimeoutIdle, trace.TimeoutIdle, "timeouts.idle", d.limits.Idle, d.global.Idle,
			"the upstream sent no further token")
	case limitTotal:
		return d.passed(fallback.TimeoutTotal, trace.TimeoutTotal, "timeouts.total", d.limits.Total, d.global.Total,
			"the answer was not complete")
	default:
		panic("BUG: not a limit that fails a request")
	}
}

func (d *deadlines) passed(kind fallback.Kind, outcome trace.Outcome, key string, value, global time.Duration, what string) *fault {
	switch {
	case value == d.wished && (kind == fallback.TimeoutTotal || kind == fallback.TimeoutFirstToken):
		key = wishHeader
	case value != global:
		key = d.scope + key
	}
	limit := key + "=" + value.String()
	return &fault{status: 504, kind: kind, outcome: outcome, limit: limit, message: what + " within " + limit}
}

// wishHeader lowers total, and first_token where that is longer.
const wishHeader = "x-gateway-timeout-ms"
