package routing

import (
	"math/rand/v2"
	"time"
)

// The strategies, in the words of the configuration. The score in Considered is,
// the lower the better:
//
//	weighted_random  the chance that the request goes elsewhere, 0 to 1
//	round_robin      how far its turn is away, in rounds; 0 or less = it has come
//	least_inflight   load with this request over weight (see loadOf)
//	least_usage      tokens over weight: of the last minute, of this request, and
//	                 those that the requests in flight are expected to generate
//	lowest_latency   expected milliseconds to the last token, times load over weight
//	lowest_cost      the expected price of this request; unpriced = 1e9
//	prefix_affinity  its place in the session's order; 1000 and more = it has its
//	                 share of the load
const (
	WeightedRandom = "weighted_random"
	RoundRobin     = "round_robin"
	LeastInflight  = "least_inflight"
	LeastUsage     = "least_usage"
	LowestLatency  = "lowest_latency"
	LowestCost     = "lowest_cost"
	PrefixAffinity = "prefix_affinity"
)

// best gives every candidate its score and returns the index of the chosen one.
// There is at least one candidate.
func (p *picking) best() int {
	switch p.m.Spec.Routing.Strategy {
	case WeightedRandom:
		return p.weightedRandom()
	case RoundRobin:
		return p.roundRobin()
	case LeastUsage:
		return p.leastUsage()
	case LowestLatency:
		return p.lowestLatency()
	case LowestCost:
		return p.lowestCost()
	case PrefixAffinity:
		if p.a.Affinity != 0 {
			return p.prefixAffinity()
		}
	}
	return p.leastInflight()
}

// lowest is the best candidate so far. Of those with the same score the one with
// less load per weight is better; of those alike in both, the one whose turn is
// longest ago.
type lowest struct {
	m     *Model
	own   int64 // the request's load
	at    int
	score float64
	found bool

	weight   float64 // of at; what follows is needed in ties only
	load     float64
	turn     uint64
	compared bool // load and turn are those of at
	tied     bool
}

func (l *lowest) offer(i int, score, weight float64) {
	switch {
	case !l.found || score < l.score:
		*l = lowest{m: l.m, own: l.own, at: i, score: score, weight: weight, found: true}
	case score == l.score:
		l.tie(i, weight)
	}
}

func (l *lowest) tie(i int, weight float64) {
	if !l.compared {
		old := l.m.Deployments[l.at]
		l.load, l.turn, l.compared = old.loadPer(l.weight, l.own), old.Live.turn.Load(), true
	}
	d := l.m.Deployments[i]
	load, turn := d.loadPer(weight, l.own), d.Live.turn.Load()
	switch {
	case load < l.load:
		l.at, l.load, l.turn, l.tied = i, load, turn, false
	case load == l.load:
		l.tied = true
		if turn < l.turn {
			l.at, l.turn = i, turn
		}
	}
}

// chosen ends the search. A turn passes only where there was a tie: a request
// that had no choice takes nobody's turn.
func (p *picking) chosen(l *lowest) int {
	if l.tied && !p.peek {
		p.m.Deployments[l.at].Live.turn.Store(p.m.Live.turn.Add(1))
	}
	return l.at
}

// lowest begins a search.
func (p *picking) lowest() lowest { return lowest{m: p.m, own: loadOf(p.a.Prompt, prefillScale)} }

// loadPer is the score of least_inflight.
func (d *Deployment) loadPer(weight float64, own int64) float64 {
	return float64(d.Live.load.Load()+own) / (loadUnit * weight)
}

func (p *picking) leastInflight() int {
	l := p.lowest()
	for i, d := range p.m.Deployments {
		if k := &p.considered[i]; k.Excluded == "" {
			weight := k.Score
			k.Score = d.loadPer(weight, l.own)
			l.offer(i, k.Score, weight)
		}
	}
	return p.chosen(&l)
}

// leastUsage counts the answers under way with what they are expected to
// generate: usage is told at their end, and until then all would go to one.
func (p *picking) leastUsage() int {
	l := p.lowest()
	each, second := p.m.Live.meanOutput(), clock()/int64(time.Second)
	mine := float64(p.a.Prompt) + p.m.Live.expect(&p.a)
	for i, d := range p.m.Deployments {
		if k := &p.considered[i]; k.Excluded == "" {
			weight, used := k.Score, float64(d.Live.tokensPerMinute(second))+float64(d.Live.Inflight())*each
			k.Score = (used + mine) / weight
			l.offer(i, k.Score, weight)
		}
	}
	return p.chosen(&l)
}

// unpriced is a cost that no price reaches: what is unknown may be dear.
const unpriced = 1e9

// lowestCost takes the prompt as estimated for all alike. What is learned of one
// deployment's tokens is too noisy to decide between equal prices.
func (p *picking) lowestCost() int {
	l := p.lowest()
	prompt, output := float64(p.a.Prompt), p.m.Live.expect(&p.a)
	for i, d := range p.m.Deployments {
		if k := &p.considered[i]; k.Excluded == "" {
			weight := k.Score
			k.Score = unpriced
			if price := d.price; price != nil {
				k.Score = (price.Input*prompt + price.Output*output) / 1e6
			}
			l.offer(i, k.Score, weight)
		}
	}
	return p.chosen(&l)
}

func (p *picking) weightedRandom() int {
	sum := p.weights()
	ticket, at := p.m.chance()*sum, -1
	for i := range p.considered {
		if k := &p.considered[i]; k.Excluded == "" {
			if ticket >= 0 {
				ticket, at = ticket-k.Score, i
			}
			k.Score = 1 - k.Score/sum
		}
	}
	return at
}

// weights is the sum of the candidates' weights, before they have scores.
func (p *picking) weights() float64 {
	sum := 0.0
	for i := range p.considered {
		if k := &p.considered[i]; k.Excluded == "" {
			sum += k.Score
		}
	}
	return sum
}

// drawn draws one of the candidates whose score is at most limit, by weight.
func (p *picking) drawn(limit float64) int {
	sum := 0.0
	for i, d := range p.m.Deployments {
		if k := &p.considered[i]; k.Excluded == "" && k.Score <= limit {
			sum += float64(d.Weight())
		}
	}
	ticket, at := p.m.chance()*sum, -1
	for i, d := range p.m.Deployments {
		if k := &p.considered[i]; k.Excluded == "" && k.Score <= limit {
			at = i // the last one stays where the weights have changed meanwhile
			if ticket -= float64(d.Weight()); ticket < 0 {
				break
			}
		}
	}
	return at
}

// chance is a number in [0, 1).
func (m *Model) chance() float64 {
	if m.random != nil {
		return m.random.Float64()
	}
	return rand.Float64()
}

// roundRobin is the smooth weighted kind: every candidate earns its weight, the
// one with most credit is chosen and pays what all have earned. So weights 5 1 1
// give a a b a c a a, not five of the first in a row.
func (p *picking) roundRobin() int {
	sum := p.weights()
	m := p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	best, most := -1, 0.0
	for i := range p.considered {
		k := &p.considered[i]
		if k.Excluded != "" {
			continue
		}
		// The bounds are for a weight that has become smaller: the old debt would last for ages.
		earned := min(max(m.credit[i], -sum), sum) + k.Score
		k.Score = 1 - earned/sum
		if best < 0 || earned > most {
			best, most = i, earned
		}
		if !p.peek {
			m.credit[i] = earned
		}
	}
	if !p.peek {
		m.credit[best] -= sum
	}
	return best
}
