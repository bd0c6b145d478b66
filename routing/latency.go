package routing

import (
	"math"
	"time"
)

const (
	// buffer is how much worse than the best may share with it, so that a small
	// difference does not send everything to one.
	buffer = 1.2
	// mostSlower caps how much slower than the fastest one counts: with the same
	// weight nobody gets more than this many times the load of another.
	mostSlower = 4
	// probeChance is the share of requests that look at a deployment that nobody
	// has measured for long; each gets one such request in the time that makes it stale.
	probeChance = 1.0 / 8
	// settling is how long one that has just been found fast gets every second
	// request at most, and which score it has for the others.
	settling  = int64(10 * time.Second)
	passedBy  = 1000
	passShare = 0.5
)

// lowestLatency expects of each candidate TTFT + TPOT x output, both as measured
// lately, times its load: while answers are few and slow to come, the load is
// what says that an engine is getting slower. One that was never measured counts
// as the fastest, and its load limits what it gets; without any measurement the
// load alone decides.
func (p *picking) lowestLatency() int {
	ttft, tpot := p.fastest()
	if ttft == 0 && tpot == 0 {
		return p.leastInflight()
	}
	l := p.lowest()
	output := p.m.Live.expect(&p.a)
	most := mostSlower * (ttft + tpot*output)
	now, pass := clock(), !p.peek && p.m.chance() < passShare
	for i, d := range p.m.Deployments {
		k := &p.considered[i]
		if k.Excluded != "" {
			continue
		}
		took := either(d.Live.ttft.value(), ttft) + either(d.Live.tpot.value(), tpot)*output
		weight := k.Score
		k.Score = min(took, most) * d.loadPer(weight, l.own)
		if pass && now-d.Live.ttft.renewed.Load() < settling {
			k.Score *= passedBy
		}
		l.offer(i, k.Score, weight)
	}
	if p.peek {
		return l.at
	}
	if p.m.chance() < probeChance {
		if i := p.overdue(now); i >= 0 {
			return i
		}
	}
	return p.drawn(buffer * l.score)
}

// fastest are the best measurements among the candidates; 0 where there is none.
func (p *picking) fastest() (ttft, tpot float64) {
	ttft, tpot = math.MaxFloat64, math.MaxFloat64
	for i, d := range p.m.Deployments {
		if p.considered[i].Excluded != "" {
			continue
		}
		if v := d.Live.ttft.value(); v > 0 && v < ttft {
			ttft = v
		}
		if v := d.Live.tpot.value(); v > 0 && v < tpot {
			tpot = v
		}
	}
	if ttft == math.MaxFloat64 {
		ttft = 0
	}
	if tpot == math.MaxFloat64 {
		tpot = 0
	}
	return ttft, tpot
}

// either is v, or what stands in for it where it is unknown.
func either(v, instead float64) float64 {
	if v == 0 {
		return instead
	}
	return v
}

// overdue is the candidate that has been left alone longest since it was
// measured, where that is too long; -1 = none is.
func (p *picking) overdue(now int64) int {
	oldest, at := now-stale, -1
	for i, d := range p.m.Deployments {
		measured := d.Live.ttft.last.Load()
		if p.considered[i].Excluded != "" || measured == 0 {
			continue
		}
		if last := max(measured, d.Live.begun.Load()); last <= oldest {
			oldest, at = last, i
		}
	}
	return at
}
