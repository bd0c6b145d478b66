package routing

import (
	"sync"
	"sync/atomic"
	"time"

	"tracegate/fallback"
)

// Live is what a deployment is doing: requests in flight, how attempts ended,
// how fast it was lately, and what an operator decided about it. It survives a
// reload, not a restart. All methods may be called from any goroutine.
type Live struct {
	Gate *fallback.Gate

	// Pick reads these, of every deployment.
	inflight atomic.Int64
	load     atomic.Int64  // of the requests in flight, in loadUnit
	drain    atomic.Bool   // an operator's
	weight   atomic.Int64  // an operator's, plus 1; 0 = the file's
	turn     atomic.Uint64 // when it was last chosen in a tie, as the model counts
	begun    atomic.Int64  // when the newest attempt began
	ttft     timed         // milliseconds to the first token
	tpot     timed         // milliseconds per token after it
	ratio    ratio
	tokens60 minute

	requests atomic.Int64
	tokens   atomic.Int64 // generated, where that is known
	told     atomic.Int64 // attempts whose generated tokens are known
	ok       atomic.Int64
	fault    atomic.Int64
	pressure atomic.Int64
	client   atomic.Int64
	abort    atomic.Int64
	since    time.Time

	mu      sync.Mutex
	changed time.Time   // when it last began or ceased to drain; zero = never
	faults  []LastFault // newest last, at most keptFaults
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

// The load of a request is 1 + prompt/scale, at most mostLoad. Until its first
// token it counts in steps of the engine: vLLM computes 2048 tokens of a prompt
// in one, and everybody waits for it. From then on it counts for what it holds
// of the cache until its end, so a long stream counts as long as it lasts.
const (
	prefillScale = 2048
	decodeScale  = 32768
	mostLoad     = 8
	loadUnit     = 1024 // load is kept as an integer, to be exactly 0 in the end
)

func loadOf(prompt, scale int) int64 {
	return loadUnit + min(int64(max(prompt, 0))*loadUnit/int64(scale), (mostLoad-1)*loadUnit)
}

// Inflight is how many requests are at the deployment now.
func (l *Live) Inflight() int64 { return l.inflight.Load() }

// Drain takes the deployment out: no new requests, those under way go on.
func (l *Live) Drain() { l.setDrain(true) }

// Enable undoes Drain.
func (l *Live) Enable() { l.setDrain(false) }

func (l *Live) setDrain(drain bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drain.Swap(drain) != drain {
		l.changed = time.Now().UTC()
	}
}

// SetWeight overrides the file's weight; nil gives it back its say, and 0 or less
// means no requests.
func (l *Live) SetWeight(n *int) {
	kept := int64(0)
	if n != nil {
		kept = int64(max(*n, 0)) + 1
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.weight.Swap(kept); (old == 1) != (kept == 1) {
		l.changed = time.Now().UTC()
	}
}

// reloaded notes that the file's weight begins or ceases to drain the deployment.
func (l *Live) reloaded(before, after int) {
	if (before <= 0) == (after <= 0) || l.weight.Load() != 0 {
		return
	}
	l.mu.Lock()
	l.changed = time.Now().UTC()
	l.mu.Unlock()
}

// tokensPerMinute are the tokens of the last minute before a second of the clock.
func (l *Live) tokensPerMinute(second int64) int64 {
	if l.tokens60.second.Load() < second {
		l.mu.Lock()
		l.tokens60.advance(second)
		l.mu.Unlock()
	}
	return max(l.tokens60.sum.Load(), 0)
}

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
