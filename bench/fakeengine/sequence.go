package fakeengine

import (
	"sync/atomic"
	"time"
)

// phase is where a sequence stands. Guarded by the scheduler's mutex.
type phase int

const (
	phaseQueued phase = iota
	phasePrefill
	phaseDecode
	phaseOver
)

func (p phase) String() string {
	return [...]string{"queued", "prefill", "decode", "over"}[p]
}

// Finish reasons as numbers, for an atomic.
const (
	reasonNone int32 = iota
	reasonStop
	reasonLength
	reasonAbort
	reasonError
	reasonTools
)

var reasonNames = [...]string{"", "stop", "length", "abort", "error", "tool_calls"}

// sequence is one answer in the making. The scheduler produces tokens by raising made; the handler that
// writes them reads made, final and reason without a lock. Everything else is the scheduler's.
type sequence struct {
	entry  *entry
	notify chan struct{} // capacity 1; shared by the sequences of one request
	limit  int           // tokens after which it ends
	ending int32

	made   atomic.Int32 // tokens generated
	final  atomic.Int32 // how many there will ever be; -1 while that is open
	reason atomic.Int32

	prompt int // tokens
	hashes []uint64

	phase       phase
	aborted     bool // to be freed at the next step boundary
	computed    int  // tokens whose KV exists
	target      int  // tokens to compute before the next token can be sampled
	step        int  // prompt tokens computed in the running step
	blocks      []*block
	cached      int
	generated   int
	preempted   bool
	preemptions int

	arrived, scheduled, first, last time.Time
}

func newSequence(n *entry, notify chan struct{}, a *answer) *sequence {
	s := &sequence{entry: n, notify: notify, limit: a.total, ending: a.ending}
	s.final.Store(-1)
	return s
}

// signal tells the handler that there is something new.
func (s *sequence) signal() {
	select {
	case s.notify <- struct{}{}:
	default:
	}
}

// end publishes that no further token comes. The order matters: who sees final also sees reason.
func (s *sequence) end(reason int32) {
	s.phase = phaseOver
	s.reason.Store(reason)
	s.final.Store(int32(s.generated))
}

func (s *sequence) finishReason() string { return reasonNames[s.reason.Load()] }
