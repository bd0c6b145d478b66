package fallback

import "time"

// Outcome is how an attempt ended: what its gate, its deployment's memory and
// the next try are told.
type Outcome struct {
	Kind       Kind // "" = it was answered
	Verdict    Verdict
	Status     int           // the upstream's; 0 = none came
	Message    string        // for the operator
	RetryAfter time.Duration // what the upstream asked for; 0 = it asked for nothing
}

// Failed says that the attempt gave no answer, or not a whole one.
func (o Outcome) Failed() bool { return o.Kind != "" }
