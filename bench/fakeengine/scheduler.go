package fakeengine

import (
	"slices"
	"sync"
	"time"
)

// scheduler is the engine core: one goroutine that runs steps while there is work and sleeps on a channel
// while there is none.
type scheduler struct {
	o       Options
	journal *journal

	mu      sync.Mutex
	pool    *blockPool
	waiting []*sequence
	running []*sequence
	frozen  bool
	dead    bool
	gauges  gauges // as of the last step: what the metrics page shows
	meters  *meters

	slowness  Slowness
	slowSince time.Time

	wake chan struct{} // capacity 1
	quit chan struct{}
	done chan struct{}
}

// gauges are the values that the engine publishes at step boundaries; a frozen engine keeps the old ones.
type gauges struct {
	running, waiting int
	kv               float64
}

func newScheduler(o Options, j *journal) *scheduler {
	return &scheduler{
		o: o, journal: j,
		pool:   newBlockPool(o.KVBlocks, !o.NoPrefixCache),
		meters: newMeters(),

		slowness: o.SlowStart, slowSince: time.Now(),

		wake: make(chan struct{}, 1),
		quit: make(chan struct{}),
		done: make(chan struct{}),
	}
}

func (s *scheduler) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run steps until quit is closed.
func (s *scheduler) run() {
	defer close(s.done)
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	var due time.Time // when the running step ends
	for {
		length, work := s.begin()
		if !work {
			due = time.Time{}
			select {
			case <-s.wake:
				continue
			case <-s.quit:
				return
			}
		}
		// A step that started late is shortened by the delay, so that the rate of tokens holds under load.
		now := time.Now()
		if due.IsZero() || now.Sub(due) > length {
			due = now
		}
		due = due.Add(length)
		timer.Reset(due.Sub(now))
		select {
		case <-timer.C:
		case <-s.quit:
			return
		}
		s.complete()
	}
}

// begin frees the aborted, plans one step and returns how long it takes.
func (s *scheduler) begin() (length time.Duration, work bool) {
	s.mu.Lock()
	if s.frozen || s.dead {
		s.mu.Unlock()
		return 0, false
	}
	s.sweep()
	prefill, decodes, context := s.plan()
	length = s.slowed(s.o.StepBase + time.Duration(decodes)*s.o.StepPerSeq +
		time.Duration(float64(context)/1000*float64(s.o.StepPerKiloContext)) +
		time.Duration(float64(prefill)/s.o.PrefillRate*float64(time.Second)))
	s.publish()
	s.mu.Unlock()
	s.journal.poke()
	return length, prefill > 0 || decodes > 0
}

// plan chooses the work of one step: prompt tokens, decoding sequences and their context in tokens.
func (s *scheduler) plan() (prefill, decodes, context int) {
	budget := s.o.ChunkTokens
	if s.o.WholePrefill {
		budget = max(s.o.MaxModelLen, s.o.ChunkTokens)
		if prefill = s.admit(budget); prefill > 0 { // decoding sequences wait
			return prefill, 0, 0
		}
	}
	for i := 0; i < len(s.running); i++ { // grow may shorten running from the end
		q := s.running[i]
		if q.phase == phaseDecode && s.grow(q) {
			decodes++
			context += q.prompt + q.generated
		}
	}
	budget = max(budget-decodes, 1)
	for _, q := range s.running {
		if q.phase == phasePrefill && budget > 0 {
			q.step = min(q.target-q.computed, budget)
			budget -= q.step
			prefill += q.step
		}
	}
	if budget > 0 {
		prefill += s.admit(budget)
	}
	return prefill, decodes, context
}

// admit moves waiting sequences into the batch, first come first served, and returns the prompt tokens
// that they compute in this step.
func (s *scheduler) admit(budget int) (prefill int) {
	now := time.Now()
	for len(s.waiting) > 0 && len(s.running) < s.o.MaxNumSeqs && budget > 0 {
		q := s.waiting[0]
		if !s.place(q) {
			return prefill
		}
		s.waiting = s.waiting[1:]
		s.running = append(s.running, q)
		q.phase = phasePrefill
		q.step = min(q.target-q.computed, budget)
		budget -= q.step
		prefill += q.step
		if q.preempted { // counted only now, as vLLM does
			q.preempted = false
			s.meters.preemptions++
			q.entry.update(func(l *RequestLog) { l.Preemptions++ })
			continue
		}
		q.scheduled = now
		s.meters.queries += int64(q.prompt)
		s.meters.hits += int64(q.cached)
		cached := q.cached
		q.entry.update(func(l *RequestLog) {
			if l.Scheduled.IsZero() {
				l.Scheduled, l.CachedTokens = now, cached
			}
		})
	}
	return prefill
}

// place gives a sequence the blocks of its prompt (and of what it had generated before a preemption).
func (s *scheduler) place(q *sequence) bool {
	q.target = q.prompt + q.generated
	hashes := q.hashes
	if len(hashes) > 0 && len(hashes)*blockTokens >= q.target {
		hashes = hashes[:len(hashes)-1] // the last prompt token is always computed
	}
	found := s.pool.lookup(hashes)
	need := (q.target+blockTokens-1)/blockTokens - len(found)
	fresh, ok := s.pool.take(need)
	if !ok {
		s.pool.release(found)
		return false
	}
	q.blocks = append(found, fresh...)
	q.computed = len(found) * blockTokens
	q.cached = q.computed
	return true
}

// grow makes room for one more token of q, throwing out the newest sequences if it must. False: q itself
// was thrown out.
func (s *scheduler) grow(q *sequence) bool {
	for (q.prompt+q.generated)/blockTokens >= len(q.blocks) {
		if b, ok := s.pool.take(1); ok {
			q.blocks = append(q.blocks, b...)
			break
		}
		victim := s.running[len(s.running)-1]
		s.preempt(victim)
		if victim == q {
			return false
		}
	}
	return true
}

func (s *scheduler) preempt(q *sequence) {
	s.running = s.running[:len(s.running)-1]
	s.pool.release(q.blocks)
	q.blocks, q.computed, q.step = nil, 0, 0
	q.phase, q.preempted = phaseQueued, true
	q.preemptions++
	s.waiting = slices.Insert(s.waiting, 0, q)
}

// complete applies the results of the step that has just ended.
func (s *scheduler) complete() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return
	}
	s.sweep()
	now := time.Now()
	tokens := 0
	whole := s.o.WholePrefill && slices.ContainsFunc(s.running, func(q *sequence) bool { return q.step > 0 })
	for _, q := range s.running {
		switch {
		case q.step > 0:
			tokens += q.step
			q.computed += q.step
			q.step = 0
			if q.computed >= q.target {
				s.pool.publish(q.blocks, q.hashes)
				q.phase = phaseDecode
				s.sample(q, now)
			}
		case q.phase == phaseDecode && !whole:
			tokens++
			s.sample(q, now)
		}
	}
	s.meters.iteration.observe(float64(tokens))
	s.retire(now)
	s.publish()
}

// sample gives q one more token.
func (s *scheduler) sample(q *sequence, now time.Time) {
	q.generated++
	s.meters.generation++
	if q.first.IsZero() {
		q.first = now
		s.meters.firstToken(q, now)
	} else {
		s.meters.itl.observe(now.Sub(q.last).Seconds())
	}
	q.last = now
	switch {
	case q.generated >= q.limit:
		q.end(q.ending)
	case q.prompt+q.generated >= s.o.MaxModelLen:
		q.end(reasonLength)
	}
	q.made.Store(int32(q.generated))
	q.signal()
}

// retire frees what has ended.
func (s *scheduler) retire(now time.Time) {
	s.running = slices.DeleteFunc(s.running, func(q *sequence) bool {
		if q.phase != phaseOver {
			return false
		}
		s.meters.finished(q, now)
		s.free(q, now)
		return true
	})
}

// sweep frees the aborted, waiting ones too.
func (s *scheduler) sweep() {
	now := time.Now()
	gone := func(q *sequence) bool {
		if !q.aborted {
			return false
		}
		q.end(reasonAbort)
		s.meters.aborted++
		s.free(q, now)
		q.signal()
		return true
	}
	s.waiting = slices.DeleteFunc(s.waiting, gone)
	s.running = slices.DeleteFunc(s.running, gone)
}

func (s *scheduler) free(q *sequence, now time.Time) {
	s.pool.release(q.blocks)
	q.blocks = nil
	n := q.generated
	q.entry.update(func(l *RequestLog) {
		l.OutputTokens += n
		l.Freed = now
	})
}

func (s *scheduler) publish() {
	s.gauges = gauges{running: len(s.running), waiting: len(s.waiting), kv: s.pool.used()}
}
