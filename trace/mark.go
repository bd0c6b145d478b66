package trace

import "strings"

// Mark is a named instant in the life of a request. The zero value is Enqueue.
type Mark uint8

// The marks, in the order of an undisturbed stream.
const (
	Enqueue    Mark = iota // the last byte of the request was read
	Admit                  // the limiter let it pass
	Pick                   // a deployment was chosen
	Send                   // the attempt was dispatched: dial or reuse, then the request's bytes
	Headers                // the answer's head was read
	FirstByte              // the first byte of the answer's body was read
	Commit                 // the answer to the client has begun; no longer ours to replace
	FirstToken             // the first event with generated content was read
	LastToken              // the newest such event, at the end the last one
	Finish                 // the dialect's terminal event, or the failure
	numMarks

	opened = numMarks // the state before the first mark
)

var markNames = [numMarks + 1]string{"enqueue", "admit", "pick", "send", "headers", "first_byte", "commit",
	"first_token", "last_token", "finish", "open"}

// String returns the word that documents and errors use, such as "first_token".
func (m Mark) String() string {
	if int(m) < len(markNames) {
		return markNames[m]
	}
	return "unknown"
}

// next is the only definition of the order of marks: what may follow what. A mark that repeats the present state is
// always fine and changes nothing. Commit is a side step: it is legal where it is listed, once, and leaves the
// state where it was, because a keep-alive may begin the answer at any moment after the admission while attempts go
// on. The way back to Pick is the next attempt; there is none after the first token.
var next = map[Mark][]Mark{
	opened:     {Enqueue, Finish},
	Enqueue:    {Admit, Finish},
	Admit:      {Pick, Commit, Finish},
	Pick:       {Send, Commit, Finish},
	Send:       {Headers, Pick, Commit, Finish},
	Headers:    {FirstByte, FirstToken, Pick, Commit, Finish},
	FirstByte:  {FirstToken, Pick, Commit, Finish},
	FirstToken: {LastToken, Commit, Finish},
	LastToken:  {Commit, Finish},
	Commit:     {},
	Finish:     {},
}

// steps is next as bit sets, for the request's path.
var steps = func() (s [numMarks + 1]uint16) {
	for from, tos := range next {
		for _, to := range tos {
			s[from] |= 1 << to
		}
	}
	return s
}()

// phaseAfter says where a request stands once a mark was stamped; marks without an entry leave the phase alone.
// Between Send and Headers the owner moves it from connect to waiting_headers itself: only it sees the connection.
var phaseAfter = map[Mark]Phase{
	Admit: PhaseQueue, Pick: PhaseConnect, Headers: PhaseWaitingFirstToken, FirstToken: PhaseStreaming,
}

// Mermaid renders the state machine as a mermaid state diagram, generated from the table that the code obeys.
func Mermaid() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    [*] --> open\n")
	for m := range numMarks {
		writeSteps(&b, m)
	}
	writeSteps(&b, opened)
	b.WriteString("    finish --> [*]\n")
	b.WriteString("    note right of commit: a side step, once, then on from where it was\n")
	return b.String()
}

func writeSteps(b *strings.Builder, from Mark) {
	for _, to := range next[from] {
		b.WriteString("    " + from.String() + " --> " + to.String() + "\n")
	}
}
