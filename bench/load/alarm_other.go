//go:build !linux

package load

import "time"

// alarm lets one goroutine sleep until a moment and be woken before it, here with the precision of Go's timers.
type alarm struct{ bell chan struct{} }

func monotonic() int64 { return time.Now().UnixNano() } // processes may differ by the clock's steps

func newAlarm() (*alarm, error) { return &alarm{make(chan struct{}, 1)}, nil }

func (a *alarm) own() {}

func (a *alarm) wait(until int64) {
	t := time.NewTimer(time.Duration(until - Now()))
	defer t.Stop()
	select {
	case <-t.C:
	case <-a.bell:
	}
}

func (a *alarm) ring() {
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

func (a *alarm) close() {}
