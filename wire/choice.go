package wire

// maxChoice bounds the memory of a choiceSet; choices with a larger index are not followed.
const maxChoice = 1 << 16

// choiceSet follows which choices of an answer have begun and which have their finish reason.
type choiceSet struct {
	begun, finished [2]uint64
	more            []uint64 // choices from 128 on: begun and finished words in turn
}

// begin notes that choice i exists; finish that it has its finish reason.
func (s *choiceSet) begin(i int64)  { s.set(i, 0) }
func (s *choiceSet) finish(i int64) { s.set(i, 0); s.set(i, 1) }

func (s *choiceSet) set(i int64, which int) {
	if i < 0 || i >= maxChoice {
		return
	}
	word, bit := int(i/64), uint64(1)<<(i%64)
	if word < len(s.begun) {
		if which == 0 {
			s.begun[word] |= bit
		} else {
			s.finished[word] |= bit
		}
		return
	}
	at := (word-len(s.begun))*2 + which
	for len(s.more) <= at {
		s.more = append(s.more, 0)
	}
	s.more[at] |= bit
}

// complete reports whether at least one choice began and all that began are finished.
func (s *choiceSet) complete() bool {
	some := s.begun[0] | s.begun[1]
	if s.begun != s.finished {
		return false
	}
	for i := 0; i < len(s.more); i += 2 {
		finished := uint64(0)
		if i+1 < len(s.more) {
			finished = s.more[i+1]
		}
		if s.more[i] != finished {
			return false
		}
		some |= finished
	}
	return some != 0
}

func (s *choiceSet) emptied() choiceSet { return choiceSet{more: s.more[:0]} }
