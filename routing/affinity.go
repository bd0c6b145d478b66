package routing

import (
	"math"
	mathbits "math/bits"
)

// boundedLoad is how far above the mean a deployment's requests in flight may be
// before a session's next requests go to the next one in its order.
const boundedLoad = 1.25

// hasItsShare is added, times how full it is, to the score of one that has.
const hasItsShare = 1000

// prefixAffinity puts the deployments into an order that is each session's own:
// a weighted rendezvous hash of the session and the deployment's name, the same
// in every replica and after every restart. The first one is chosen that has less
// than its share: ceil(1.25 x weight x mean), where the mean is of the candidates'
// requests in flight per weight, this one included.
func (p *picking) prefixAffinity() int {
	flying, sum := int64(1), p.weights()
	for i, d := range p.m.Deployments {
		if p.considered[i].Excluded == "" {
			flying += d.Live.Inflight()
		}
	}
	l := p.lowest()
	mean := boundedLoad * float64(flying) / sum
	for i, d := range p.m.Deployments {
		k := &p.considered[i]
		if k.Excluded != "" {
			continue
		}
		weight := k.Score
		k.Score = exponential(mixed(p.a.Affinity^d.seed)) / weight
		if n := float64(d.Live.Inflight()); n >= mean*weight {
			if share := math.Ceil(mean * weight); n >= share {
				k.Score += hasItsShare * n / share
			}
		}
		l.offer(i, k.Score, weight)
	}
	return p.chosen(&l)
}

// exponential turns 64 random bits into an exponentially distributed number: how
// often a whole has to be halved to get there, which is -log2. The smallest of
// several, each divided by its weight, is each one's in proportion to its weight;
// a removed one's sessions go to the others, and no other session moves. The
// polynomial is within 0.001 of the logarithm, at a tenth of the price.
func exponential(bits uint64) float64 {
	zeros := mathbits.LeadingZeros64(bits | 1)
	x := math.Float64frombits(0x3ff<<52 | bits<<zeros<<1>>12) // the rest, from 1 to 2
	return float64(zeros) + 3.1543 - x*(3.047884161-x*(1.051875031-x*0.158248739))
}

// hashed is FNV-1a. It must stay as it is: a change would move every session.
func hashed(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mixed(h)
}

// mixed spreads every bit over all of them (the finalizer of splitmix64).
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
