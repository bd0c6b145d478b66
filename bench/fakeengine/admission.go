package fakeengine

import (
	"slices"
	"time"
)

// submit queues the sequences of one request. False: an admission limit forbids it.
func (s *scheduler) submit(seqs []*sequence) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.MaxQueuedReqs > 0 && len(s.waiting)+len(s.running)+len(seqs) > s.o.MaxQueuedReqs {
		s.meters.rejectedReqs++
		return false
	}
	if s.o.MaxQueuedTokens > 0 && s.prefilling()+seqs[0].prompt > s.o.MaxQueuedTokens {
		s.meters.rejectedTokens++
		return false
	}
	now := time.Now()
	for _, q := range seqs {
		q.arrived = now
		s.waiting = append(s.waiting, q)
	}
	s.nudge()
	return true
}

// prefilling counts the prompt tokens that are still to be computed.
func (s *scheduler) prefilling() (n int) {
	for _, q := range s.waiting {
		n += q.prompt
	}
	for _, q := range s.running {
		if q.phase == phasePrefill {
			n += q.target - q.computed
		}
	}
	return n
}

// abort marks sequences for the next step boundary.
func (s *scheduler) abort(seqs []*sequence) {
	s.mu.Lock()
	for _, q := range seqs {
		if q.phase != phaseOver {
			q.aborted = true
		}
	}
	s.mu.Unlock()
	s.nudge()
}

// phaseOf says where the furthest of the sequences stands.
func (s *scheduler) phaseOf(seqs []*sequence) phase {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := phaseQueued
	for _, q := range seqs {
		p = max(p, q.phase)
	}
	return p
}

// abortIDs aborts by external ids; without any it aborts nobody.
func (s *scheduler) abortIDs(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range slices.Concat(s.waiting, s.running) {
		l := q.entry.snapshot()
		if slices.Contains(ids, l.AnswerID) || l.BodyID != "" && slices.Contains(ids, l.BodyID) {
			q.aborted = true
		}
	}
	s.nudge()
}

func (s *scheduler) setFrozen(frozen bool) {
	s.mu.Lock()
	s.frozen = frozen
	s.mu.Unlock()
	s.nudge()
	s.journal.poke()
}

// drop ends everything at once with a reason: a death, a restart.
func (s *scheduler) drop(reason int32, dead bool) {
	s.mu.Lock()
	now := time.Now()
	for _, q := range slices.Concat(s.waiting, s.running) {
		q.end(reason)
		s.free(q, now)
		q.signal()
	}
	s.waiting, s.running = nil, nil
	s.dead = dead
	s.publish()
	s.mu.Unlock()
	s.nudge()
	s.journal.poke()
}

// restart empties cache and counters, as a new process has them.
func (s *scheduler) restart() {
	s.drop(reasonError, false)
	s.mu.Lock()
	s.pool = newBlockPool(s.o.KVBlocks, !s.o.NoPrefixCache)
	s.meters = newMeters()
	s.frozen, s.dead = false, false
	s.slowness, s.slowSince = s.o.SlowStart, time.Now()
	s.publish()
	s.mu.Unlock()
	s.nudge()
}
