package fallback

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Where says where the next try of a request may go after an attempt failed.
type Where uint8

const (
	// Nowhere: another try cannot help, or must not be made.
	Nowhere Where = iota
	// Elsewhere: another deployment, of this model or of its fallbacks.
	Elsewhere
	// Longer: a model that takes longer prompts.
	Longer
)

// Patience says when the same deployment may be tried again, where there is no other.
type Patience uint8

const (
	// Never: what failed will fail again at once.
	Never Patience = iota
	// Backoff: after retry.backoff.
	Backoff
	// AsAsked: when its cooldown is over.
	AsAsked
)

// NextTry is the column "next try" of the table of failures.
func NextTry(k Kind) (Where, Patience) {
	switch k {
	case Status5xx:
		return Elsewhere, Backoff
	case Pressure:
		return Elsewhere, AsAsked
	case ContextLength:
		return Longer, Never
	}
	switch verdictOf(k) {
	case Fault, None:
		return Elsewhere, Never
	default:
		return Nowhere, Never
	}
}

// Plan is what one request may still try: the models of its chain, and how many
// attempts. It belongs to the request's goroutine.
type Plan struct {
	chain []string
	at    int
	most  int
	made  int
}

// Begin starts a plan at the model that was asked for. next gives a model's
// fallbacks; most is the number of attempts, the first included.
func (p *Plan) Begin(model string, most int, next func(string) []string) {
	*p = Plan{chain: Chain(model, next), most: most}
}

// Chain is the order in which models are tried: the one asked for, its
// fallbacks, then theirs. Each stands in it once, so that a cycle ends.
func Chain(model string, next func(string) []string) []string {
	chain := []string{model}
	for i := 0; i < len(chain); i++ {
		for _, name := range next(chain[i]) {
			if !slices.Contains(chain, name) {
				chain = append(chain, name)
			}
		}
	}
	return chain
}

// Longer goes on with the models for longer prompts, those left out that have
// been tried; false where there are none.
func (p *Plan) Longer(next func(string) []string) bool {
	tried := p.chain[:p.at+1]
	more := slices.DeleteFunc(Chain(p.Model(), next)[1:], func(name string) bool { return slices.Contains(tried, name) })
	if len(more) == 0 {
		return false
	}
	p.chain, p.at = append(slices.Clone(tried), more...), p.at+1
	return true
}

// Model is the one whose turn it is.
func (p *Plan) Model() string { return p.chain[p.at] }

// Rest are the models behind it.
func (p *Plan) Rest() []string { return p.chain[p.at+1:] }

// GoTo makes it the turn of one of Rest.
func (p *Plan) GoTo(model string) {
	i := slices.Index(p.Rest(), model)
	if i < 0 {
		panic("BUG: the plan does not lead to model " + model)
	}
	p.at += i + 1
}

// Attempt counts one.
func (p *Plan) Attempt() { p.made++ }

// Spent says that no attempt is left.
func (p *Plan) Spent() bool { return p.made >= p.most }

// BackoffTime is how long to wait before the nth try of the same deployment, from
// 1: base doubled each time, up to 32 times base, and between a half and the
// whole of that by chance, so that requests that failed together do not come
// back together.
func BackoffTime(base time.Duration, n int) time.Duration {
	d := base << min(max(n-1, 0), 5)
	if d <= 1 {
		return d
	}
	return d/2 + rand.N(d/2+1)
}
