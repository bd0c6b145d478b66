// Package load answers what a gateway costs: how much time, CPU and memory it adds to a stream that an upstream sends.
//
// It owns the load (Run: closed and open loop, cancelled requests, slow readers; Hold: open idle streams), the scripted upstream
// that the load is measured against (Upstream), the check of every answer byte, and the reading of a process's CPU and memory.
// Both sides share one clock: the upstream writes CLOCK_MONOTONIC nanoseconds into the text of every token, so the delay of a token
// is measured one way, and the time to the first token without the upstream's own part of it.
//
// Run and Hold may be called from any goroutine, several at a time; they return when the load has ended by itself and leave no
// goroutine. An Upstream serves until Close.
//
// It never speaks to an address that is not loopback, never runs without a bound in time and connections, and never averages
// percentiles: all samples are kept and sorted.
package load

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// Plan says what to send. The zero value of every field but Addr is usable.
type Plan struct {
	Addr    string // host:port of the gateway, an IP address of the loopback
	Dialect string // chat (default), messages or responses
	Model   string // default bench-model
	Key     string // sent as a Bearer token when not empty

	Whole   bool          // ask for a whole JSON answer, no stream
	Body    int           // least size of the request body in bytes
	Tokens  int           // tokens of an answer; default 16
	Prefill time.Duration // upstream's wait before the first token
	Gap     time.Duration // upstream's wait between tokens; 0: as fast as the connection takes them

	Conns    int           // closed loop: connections; open loop and Hold: most connections. Default 1
	Rate     float64       // requests a second with Poisson arrivals; 0: closed loop
	Requests int           // stop after this many requests; 0: no limit
	Ramp     time.Duration // closed loop: the first requests are spread over this
	Warm     time.Duration // time before the window
	Window   time.Duration // measured time; default 1 s, at most 10 minutes
	Drain    time.Duration // how long requests under way may go on after the window; then they are abandoned

	CancelFrac  float64 // fraction of the requests that the client gives up
	CancelPhase string  // prefill: within the upstream's Prefill; decode (default): between two tokens
	SlowFrac    float64 // fraction of the connections that read slowly; their tokens count, their delays do not
	SlowRate    int     // bytes a second of a slow reader; default 10,000

	PID int // process whose CPU and memory are read over the window; 0: none
}

const (
	maxConns  = 100_000
	maxWindow = 10 * time.Minute
	maxTokens = 99_999 // the index of a token has five digits
	maxBody   = 64 << 20
)

// complete fills in the defaults and returns the first thing that is wrong with the plan.
func (p *Plan) complete() error {
	if err := checkLoopback(p.Addr); err != nil {
		return err
	}
	p.Dialect = cmp.Or(p.Dialect, "chat")
	p.Model = cmp.Or(p.Model, "bench-model")
	p.CancelPhase = cmp.Or(p.CancelPhase, "decode")
	p.Tokens = cmp.Or(p.Tokens, 16)
	p.Conns = cmp.Or(p.Conns, 1)
	p.Window = cmp.Or(p.Window, time.Second)
	p.SlowRate = cmp.Or(p.SlowRate, 10_000)
	switch {
	case dialectPath(p.Dialect) == "":
		return fmt.Errorf("cannot use dialect=%s: it is not one of %s", p.Dialect, strings.Join(Dialects, ", "))
	case p.Tokens < 1 || p.Tokens > maxTokens:
		return fmt.Errorf("cannot ask for tokens=%d: allowed are 1 to %d", p.Tokens, maxTokens)
	case p.Conns < 1 || p.Conns > maxConns:
		return fmt.Errorf("cannot open conns=%d: allowed are 1 to %d", p.Conns, maxConns)
	case p.Body < 0 || p.Body > maxBody:
		return fmt.Errorf("cannot send body=%d: allowed are 0 to %d bytes", p.Body, maxBody)
	case p.Warm < 0 || p.Window < 0 || p.Drain < 0 || p.Warm+p.Window+p.Drain > maxWindow:
		return fmt.Errorf("cannot run for warm+window+drain=%v: allowed are 0 to %v", p.Warm+p.Window+p.Drain, maxWindow)
	case p.CancelPhase != "prefill" && p.CancelPhase != "decode":
		return fmt.Errorf("cannot cancel in phase=%s: it is not prefill or decode", p.CancelPhase)
	case p.CancelFrac > 0 && p.CancelPhase == "prefill" && p.Prefill <= 0:
		return errors.New("cannot cancel in phase=prefill: prefill=0 leaves no time for it")
	case p.CancelFrac > 0 && p.CancelPhase == "decode" && (p.Whole || p.Gap <= 0 || p.Tokens < 3):
		return errors.New("cannot cancel in phase=decode: it needs a stream, gap > 0 and tokens >= 3")
	case p.Rate < 0 || p.SlowRate < 1:
		return fmt.Errorf("cannot use rate=%g, slow rate=%d: they cannot be negative", p.Rate, p.SlowRate)
	}
	return nil
}

// checkLoopback refuses whatever does not stay on this machine. Names are refused too: what they mean may change.
func checkLoopback(addr string) error {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return fmt.Errorf("cannot use addr=%s: want a loopback IP and a port, like 127.0.0.1:4000", addr)
	}
	if !ap.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("cannot use addr=%s: only loopback addresses may be put under load", addr)
	}
	return nil
}

func dial(addr string) (net.Conn, error) {
	return net.DialTimeout("tcp", addr, 10*time.Second)
}
