package fakeengine

import "time"

// Slowness is an engine that warms up: caches are cold, kernels are compiled, graphs captured. Steps and
// prefills take Factor times as long at first; what is above 1 falls linearly and is gone after For. A
// Factor up to 1 is none.
type Slowness struct {
	For    time.Duration
	Factor float64
}

// at is the factor so long after the slowness began.
func (s Slowness) at(age time.Duration) float64 {
	if s.Factor <= 1 || age < 0 || age >= s.For {
		return 1
	}
	return 1 + (s.Factor-1)*(1-float64(age)/float64(s.For))
}

// slow begins a slowness now, in place of the one before.
func (s *scheduler) slow(how Slowness) {
	s.mu.Lock()
	s.slowness, s.slowSince = how, time.Now()
	s.mu.Unlock()
}

// slowed is how long a step takes that begins now. The caller holds mu.
func (s *scheduler) slowed(length time.Duration) time.Duration {
	if s.slowness.Factor <= 1 {
		return length
	}
	return time.Duration(float64(length) * s.slowness.at(time.Since(s.slowSince)))
}
