package routing

import (
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

	// What Pick reads of every deployment, in one place: Spec is large.
	name    string
	speaks  uint64 // a bit for each dialect, by its place in Model.dialects
	seed    uint64 // its name in the order of prefix_affinity
	weight  int
	most    int64 // requests in flight; 0 = no limit
	longest int   // prompt; 0 = no limit
	price   *configs.Price
	gate    *fallback.Gate
	model   *Model
}

// Name is the deployment's name in the file.
func (d *Deployment) Name() string { return d.name }

// Weight is its share among the deployments of the model: what an operator set,
// else the file's. 0 = no requests.
func (d *Deployment) Weight() int {
	if n := d.Live.weight.Load(); n > 0 {
		return int(n - 1)
	}
	return d.weight
}

// drained says that the file or an operator wants no requests here.
func (d *Deployment) drained() bool { return d.Weight() <= 0 || d.Live.drain.Load() }

// Estimate is a prompt of n estimated tokens in the upstream's own, by what it
// reported for others.
func (d *Deployment) Estimate(n int) int { return d.Live.ratio.scale(n) }

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

// Permit is one request's place at a deployment and its way through the
// deployment's gate. Its owner calls End exactly once.
type Permit struct {
	live    *Live
	shared  *ModelLive
	pass    fallback.Pass
	begun   int64
	prompt  int   // as estimated, and counted in the minute
	load    int64 // that the deployment bears for it now
	content bool
}

// Begin takes a place; ok is false where max_inflight has been reached, or the
// gate does not let it pass.
func (d *Deployment) Begin() (p Permit, ok bool) { return d.begin(&Ask{}) }

func (d *Deployment) begin(a *Ask) (p Permit, ok bool) {
	if !d.enter() {
		return p, false
	}
	pass, ok := d.Live.Gate.Allow()
	return d.permit(a, pass, ok)
}

// probe is begin for one that goes before the gate's time.
func (d *Deployment) probe(a *Ask) (p Permit, ok bool) {
	if !d.enter() {
		return p, false
	}
	pass, ok := d.Live.Gate.Probe()
	return d.permit(a, pass, ok)
}

// enter counts a request in flight, where there is room.
func (d *Deployment) enter() bool {
	for {
		n := d.Live.inflight.Load()
		if d.most > 0 && n >= d.most {
			return false
		}
		if d.Live.inflight.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// permit is for one that has entered; one that the gate stopped leaves again.
func (d *Deployment) permit(a *Ask, pass fallback.Pass, ok bool) (Permit, bool) {
	l := d.Live
	if !ok {
		l.inflight.Add(-1)
		return Permit{}, false
	}
	p := Permit{live: l, shared: d.model.Live, pass: pass, begun: clock(), prompt: a.Prompt, load: loadOf(a.Prompt, prefillScale)}
	l.requests.Add(1)
	l.load.Add(p.load)
	l.begun.Store(p.begun)
	l.mu.Lock()
	l.tokens60.add(int64(p.prompt), p.begun)
	l.mu.Unlock()
	return p, true
}

// Content says that the first token, or a whole answer, has come; ttft is
// negative where it is not the time to a first token. Only the first call counts.
func (p *Permit) Content(ttft time.Duration) {
	if p.content {
		return
	}
	p.content = true
	l := p.live
	_, blocked := l.Gate.Blocked()
	p.pass.Content()
	if _, still := l.Gate.Blocked(); blocked && !still {
		p.shared.Queue.Signal() // its gate has closed, long before this stream may end
	}
	now := loadOf(p.prompt, decodeScale)
	l.load.Add(now - p.load)
	p.load = now
	if ttft >= 0 {
		l.mu.Lock()
		l.ttft.add(milliseconds(ttft), clock())
		l.mu.Unlock()
	}
}

// End is how an attempt ended, for its deployment.
type End struct {
	Result  trace.Result
	Outcome fallback.Outcome
	Prompt  int64         // input tokens that the upstream reported, cached ones included; negative = unknown
	Guess   int           // what they had been estimated at
	Output  int64         // generated tokens; negative = unknown
	Decode  time.Duration // from the first to the last token; 0 = unknown
}

// End gives the place back, counts how the attempt ended and tells the queue
// that there is room. A second call is a bug.
func (p *Permit) End(e End) {
	if p.live == nil {
		panic("BUG: a permit was returned twice")
	}
	l := p.live
	p.live = nil
	l.inflight.Add(-1)
	l.load.Add(-p.load)
	p.pass.End(e.Outcome)
	if v := e.Outcome.Verdict; e.Outcome.Failed() && (v == fallback.Fault || v == fallback.Backpressure) {
		l.Remember(string(e.Outcome.Kind), e.Outcome.Status, e.Outcome.Message)
	}
	p.learn(l, &e)
	if e.Output >= 0 {
		l.tokens.Add(e.Output)
		l.told.Add(1)
	}
	switch e.Result {
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
	p.shared.Queue.Signal()
}

// learn keeps what the attempt told about the deployment's speed and tokens.
func (p *Permit) learn(l *Live, e *End) {
	if e.Result == trace.ResultOK && e.Output > 0 {
		p.shared.answered(e.Output)
	}
	now := clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	used := max(e.Output, 0)
	if e.Prompt >= 0 {
		used += e.Prompt - int64(p.prompt)
	}
	l.tokens60.add(used, now)
	if e.Prompt > 0 && e.Guess > 0 {
		l.ratio.add(e.Prompt, e.Guess)
	}
	if e.Output > 1 && e.Decode > 0 {
		l.tpot.add(milliseconds(e.Decode)/float64(e.Output-1), now)
	}
	// Its first token would have taken longer still; without this one that hangs
	// would look as fast as it last was.
	if waited := time.Duration(now - p.begun); e.Outcome.Kind == fallback.TimeoutFirstToken {
		l.ttft.add(max(milliseconds(waited), l.ttft.value()), now)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
