package fallback

import (
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"
)

// windowBuckets is how finely the window rolls: what is counted is between 95 % and all of it.
const windowBuckets = 20

// What gobreaker is told; it knows an outcome only as an error.
var (
	errFault        = errors.New("fault")
	errInconclusive = errors.New("inconclusive")
)

// breaker counts the outcomes of a window in gobreaker's two-step form and
// keeps its half-open permit. The gate's lock is held around every call.
//
// In the closed state both steps are made when the outcome is known, for two
// reasons. gobreaker drops an outcome whose first step is older than the
// window, so a deployment that takes longer than that to say nothing would
// never be found out; and one request can have two outcomes, a first token and
// then a cut. Only a trial holds its permit from its beginning.
type breaker struct {
	steps  *gobreaker.TwoStepCircuitBreaker[struct{}]
	window time.Duration

	forced bool             // open at the next fault, whatever the rule says
	opened bool             // the last fault opened it
	judged gobreaker.Counts // as they were at the last fault: they are gone when it has opened
}

func newBreaker(window time.Duration, trips func(outcomes, faults, inARow int) bool) *breaker {
	b := &breaker{window: window}
	window = min(window, 365*24*time.Hour) // gobreaker rounds it up, which must not overflow
	b.steps = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Interval:     window,
		BucketPeriod: max(window/windowBuckets, 1),
		// The gate knows how long it stays open; gobreaker is half-open as soon as the gate wants a trial.
		Timeout: 1,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			b.judged = c
			// Requests would count those of which nothing is known yet.
			outcomes := int(c.TotalSuccesses) + int(c.TotalFailures)
			b.opened = b.forced || trips(outcomes, int(c.TotalFailures), int(c.ConsecutiveFailures))
			return b.opened
		},
		IsExcluded: func(err error) bool { return errors.Is(err, errInconclusive) },
	})
	return b
}

// success counts one, in the closed state.
func (b *breaker) success() { b.count(nil) }

// fault counts one, in the closed state, and says whether it opened the breaker.
func (b *breaker) fault() bool {
	b.opened = false
	b.count(errFault)
	return b.opened
}

// open opens a closed breaker for another reason than the rule.
func (b *breaker) open() {
	b.forced = true
	b.count(errFault)
	b.forced = false
}

func (b *breaker) count(outcome error) {
	done, err := b.steps.Allow()
	if err != nil {
		panic("BUG: an outcome was counted while the breaker was not closed")
	}
	done(outcome)
}

// trial takes the half-open permit. It is nil in the very nanosecond in which
// the breaker opened, for gobreaker leaves that state only when time has passed.
func (b *breaker) trial() func(error) {
	done, err := b.steps.Allow()
	if err != nil {
		return nil
	}
	return done
}

// ended gives a trial's permit back with its outcome.
func (t *trial) ended(outcome error) {
	if t.done != nil {
		t.done(outcome)
	}
}
