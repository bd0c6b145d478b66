package trace

import "time"

// BeginAttempt opens the next attempt and returns its number, from 1. It is also Mark(Pick), unless that was just
// stamped. The attempt before must have ended.
func (t *Timeline) BeginAttempt(deployment string) (n int) {
	if t.state != Pick {
		t.Mark(Pick)
	}
	start := max(time.Since(t.base), time.Duration(t.latest-1), 0)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done.Load() != nil {
		t.book.misuse("attempt after finish")
		return len(t.rec.Attempts)
	}
	if a := t.current(); a != nil && a.End < 0 {
		t.book.misuse("attempt begun before the last one ended")
		a.End = start
	}
	n = len(t.rec.Attempts) + 1
	if n == 1 {
		t.rec.Attempts = make([]Attempt, 0, 1)
	}
	t.rec.Attempts = append(t.rec.Attempts, Attempt{N: n, Deployment: deployment, Start: start, Connect: Unknown,
		Sent: Unknown, Headers: Unknown, FirstByte: Unknown, FirstToken: Unknown, End: Unknown, AbortSent: Unknown})
	t.deployment.Store(&deployment)
	return n
}

// EditAttempt lets the owner fill in the current attempt. f must not keep it. Without one, and after Finish, it is a
// misuse and f is not called.
func (t *Timeline) EditAttempt(f func(*Attempt)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.current()
	if a == nil || t.done.Load() != nil {
		t.book.misuse("edit of no attempt")
		return
	}
	f(a)
}

// EndAttempt closes the current attempt with the verdict, the kind of failure (empty: none) and the upstream's status
// (0: none came, or EditAttempt has set it).
func (t *Timeline) EndAttempt(result Result, fault string, status int) {
	d := time.Since(t.base)
	t.EditAttempt(func(a *Attempt) {
		if a.End >= 0 {
			t.book.misuse("attempt ended twice")
			return
		}
		a.End = max(d, a.Start)
		a.Result, a.Fault = result, fault
		if status != 0 {
			a.Status = status
		}
	})
}

// AbortSent notes that the current attempt's connection is being closed by us, now, and why. The first call wins.
// Any goroutine; without a running attempt it does nothing.
func (t *Timeline) AbortSent(reason AbortReason) {
	d := time.Since(t.base)
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.current()
	if a == nil || t.done.Load() != nil || a.AbortSent >= 0 || a.End >= 0 {
		return
	}
	a.AbortSent, a.AbortReason = max(d, a.Start), reason
}

// Deployment is where the current attempt went; empty before the first.
func (t *Timeline) Deployment() string {
	if p := t.deployment.Load(); p != nil {
		return *p
	}
	return ""
}

func (t *Timeline) current() *Attempt {
	if n := len(t.rec.Attempts); n > 0 {
		return &t.rec.Attempts[n-1]
	}
	return nil
}

// closeAttempt ends an attempt that the request's own end cut short.
func (t *Timeline) closeAttempt(outcome Outcome) {
	a := t.current()
	if a == nil || a.End >= 0 {
		return
	}
	a.End = max(time.Duration(t.marks[Finish].Load()-1), a.Start)
	if a.Result != "" {
		return
	}
	switch outcome {
	case OK:
		a.Result = ResultOK
	case ClientAbort:
		a.Result = ResultClientAbort
	case ClientError, WriteStall, Refused, QueueTimeout:
		a.Result = ResultNotTheirs
	default:
		a.Result = ResultFault
	}
}
