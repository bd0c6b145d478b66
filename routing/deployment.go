package routing

import (
	"sync"
	"sync/atomic"
	"time"

	"tracegate/configs"
	"tracegate/fallback"
	"tracegate/trace"
)

// Deployment is one base URL with one served model. Spec never changes; Live
// is shared by every table that names the deployment, so counts and requests
// in flight outlive a reload.
type Deployment struct {
	Spec  *configs.Deployment
	Model string // the public model it serves
	Live  *Live
}

// Name is the deployment's name in the file.
func (d *Deployment) Name() string { return d.Spec.Name }

// ResultOf names the result of a failed attempt.
func ResultOf(k fallback.Kind, v fallback.Verdict) trace.Result {
	switch {
	case k == fallback.ClientGone:
		return trace.ResultClientAbort
	case v == fallback.Fault:
		return trace.ResultFault
	case v == fallback.Backpressure:
		return trace.ResultBackpressure
	default:
		return trace.ResultNotTheirs
	}
}

// Live is what a deployment is doing: requests in flight and how attempts
// ended. All methods may be called from any goroutine.
type Live struct {
	inflight atomic.Int64
	requests atomic.Int64
	tokens   atomic.Int64 // generated, where that is known
	told     atomic.Int64 // attempts whose generated tokens are known
	ok       atomic.Int64
	fault    atomic.Int64
	pressure atomic.Int64
	client   atomic.Int64
	abort    atomic.Int64
	since    time.Time

	mu     sync.Mutex
	faults []LastFault // newest last, at most keptFaults; guarded by mu
}

// LastFault is one remembered failure of a deployment.
type LastFault struct {
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	Status  *int      `json:"status"`
	Message string    `json:"message"`
}

const (
	keptFaults      = 8
	keptFaultLength = 200
)

// Permit is one request's place at a deployment. Its owner calls End exactly once.
type Permit struct {
	live *Live
}

// Begin takes a place; ok is false where max_inflight has been reached.
func (d *Deployment) Begin() (p Permit, ok bool) {
	most := int64(d.Spec.MaxInflight)
	for {
		n := d.Live.inflight.Load()
		if most > 0 && n >= most {
			return Permit{}, false
		}
		if d.Live.inflight.CompareAndSwap(n, n+1) {
			break
		}
	}
	d.Live.requests.Add(1)
	return Permit{live: d.Live}, true
}

// End gives the place back and counts how the attempt ended; tokens are the
// generated ones, negative where nobody told them. A second call is a bug.
func (p *Permit) End(r trace.Result, tokens int64) {
	if p.live == nil {
		panic("BUG: a permit was returned twice")
	}
	l := p.live
	p.live = nil
	l.inflight.Add(-1)
	if tokens >= 0 {
		l.tokens.Add(tokens)
		l.told.Add(1)
	}
	switch r {
	case trace.ResultOK:
		l.ok.Add(1)
	case trace.ResultFault:
		l.fault.Add(1)
	case trace.ResultBackpressure:
		l.pressure.Add(1)
	case trace.ResultNotTheirs:
		l.client.Add(1)
	case trace.ResultClientAbort:
		l.abort.Add(1)
	}
}

// Inflight is how many requests are at the deployment now.
func (l *Live) Inflight() int64 { return l.inflight.Load() }

// Remember keeps a failure for the state page.
func (l *Live) Remember(kind string, status int, message string) {
	f := LastFault{Time: time.Now().UTC(), Kind: kind, Message: bounded(message)}
	if status != 0 {
		f.Status = &status
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults) == keptFaults {
		copy(l.faults, l.faults[1:])
		l.faults = l.faults[:keptFaults-1]
	}
	l.faults = append(l.faults, f)
}

// bounded cuts a message at a rune's boundary.
func bounded(s string) string {
	if len(s) <= keptFaultLength {
		return s
	}
	cut := keptFaultLength
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}

func (l *Live) lastFaults() []LastFault {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]LastFault{}, l.faults...)
}
