package fallback

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	keptEvents      = 16
	keptGateFaults  = 8
	keptWordsLength = 200
)

// What an Event tells.
const (
	EventOpened   = "opened"   // faults opened the gate
	EventCooling  = "cooling"  // it was asked for patience
	EventDraining = "draining" // it shuts down in order
	EventTrial    = "trial"    // one request tried it out
	EventClosed   = "closed"   // it lets all requests pass again
	EventReset    = "reset"    // an operator did
)

// How a trial went.
const (
	TrialOK           = "ok" // content, or a 4xx: the deployment answers
	TrialFault        = "fault"
	TrialBackpressure = "backpressure"
	TrialDraining     = "draining"
	TrialInconclusive = "inconclusive" // it ended for another reason than the deployment
)

// Event is one turn in a gate's story. What does not apply is left out.
type Event struct {
	Time    time.Time   `json:"time"` // of a trial: when it began
	What    string      `json:"what"`
	Reason  string      `json:"reason,omitempty"`
	Until   time.Time   `json:"until,omitzero"`   // the end of the cooldown as it was set then
	Count   int         `json:"count,omitempty"`  // of cooldowns by backpressure that followed each other
	Faults  []GateFault `json:"faults,omitempty"` // what opened it, newest last
	Result  string      `json:"result,omitempty"` // of a trial, as are all below
	MS      float64     `json:"duration_ms,omitempty"`
	Kind    Kind        `json:"kind,omitempty"`
	Status  int         `json:"status,omitempty"`
	Message string      `json:"message,omitempty"`
}

// GateFault is one fault that counted.
type GateFault struct {
	Time    time.Time `json:"time"`
	Kind    Kind      `json:"kind"`
	Status  int       `json:"status,omitempty"`
	Message string    `json:"message,omitempty"`
}

// story keeps the newest events, and the opening of the cooldown that runs
// however many trials follow it.
type story struct {
	events  []Event
	running bool // an opening is among the events, at index opening, and has not been closed
	opening int
	faults  []GateFault // counted since the gate closed last, newest last, at most keptGateFaults
}

// add keeps an event; the pointer is good until the next one.
func (s *story) add(e Event) *Event {
	if len(s.events) == keptEvents {
		drop := 0
		if s.running && s.opening == 0 {
			drop = 1
		} else {
			s.opening--
		}
		s.events = append(s.events[:drop], s.events[drop+1:]...)
	}
	s.events = append(s.events, e)
	return &s.events[len(s.events)-1]
}

// opens keeps what opened the gate.
func (s *story) opens(e Event) {
	s.add(e)
	s.running, s.opening = true, len(s.events)-1
}

// closes forgets what the breaker forgets when it closes.
func (s *story) closes() { s.running, s.faults = false, nil }

// cools keeps a cooldown; those that follow each other are one event, or a
// deployment at its limit would push everything else out.
func (s *story) cools(e Event) {
	if n := len(s.events); n > 0 && s.events[n-1].What == EventCooling {
		last := &s.events[n-1]
		last.Reason, last.Until = e.Reason, e.Until
		last.Count++
		return
	}
	e.Count = 1
	s.add(e)
}

func (s *story) trial(now time.Time, t *trial, result string, o Outcome) *Event {
	e := Event{
		Time: t.began.UTC(), What: EventTrial, Result: result, Kind: o.Kind, Status: o.Status,
		MS: float64(now.Sub(t.began).Nanoseconds()) / 1e6,
	}
	if o.Verdict != NotTheirs { // there the words may quote the client's request
		e.Message = shortened(o.Message)
	}
	return s.add(e)
}

func (s *story) fault(now time.Time, o Outcome) {
	if len(s.faults) == keptGateFaults {
		s.faults = append(s.faults[:0], s.faults[1:]...)
	}
	s.faults = append(s.faults, GateFault{Time: now.UTC(), Kind: o.Kind, Status: o.Status, Message: shortened(o.Message)})
}

func (s *story) faultsSince(t time.Time) []GateFault {
	i := 0
	for i < len(s.faults) && s.faults[i].Time.Before(t) {
		i++
	}
	return append([]GateFault{}, s.faults[i:]...)
}

// reasonOfFaults says which faults opened the gate.
func reasonOfFaults(c gobreaker.Counts, window time.Duration, last Outcome) string {
	return fmt.Sprintf("%d faults of %d outcomes within %s, the last: %s",
		c.TotalFailures, c.TotalSuccesses+c.TotalFailures, window, inWords(last))
}

func reasonOfTrial(took time.Duration, o Outcome, openings int) string {
	return fmt.Sprintf("the trial failed after %s, cooldown %d in a row: %s", took.Round(time.Millisecond), openings+1, inWords(o))
}

func reasonOfDraining(o Outcome) string { return "it is shutting down: " + inWords(o) }

func reasonOfBackpressure(o Outcome, wait time.Duration) string {
	by := "an error event"
	if o.Status != 0 {
		by = "status " + strconv.Itoa(o.Status)
	}
	switch {
	case o.RetryAfter > wait:
		return fmt.Sprintf("asked for %s by %s, of which %s are granted", o.RetryAfter, by, wait)
	case o.RetryAfter > 0:
		return fmt.Sprintf("asked for %s by %s", wait, by)
	default:
		return fmt.Sprintf("left alone for %s by %s without a Retry-After", wait, by)
	}
}

// inWords is a failure in one line: its kind, its status, its message.
func inWords(o Outcome) string {
	words := string(o.Kind)
	if o.Status != 0 {
		words += " " + strconv.Itoa(o.Status)
	}
	if o.Message != "" {
		words += " " + strconv.Quote(shortened(o.Message))
	}
	return words
}

// shortened bounds a foreign message, at the edge of a character.
func shortened(m string) string {
	return strings.ToValidUTF8(m[:min(len(m), keptWordsLength)], "")
}
