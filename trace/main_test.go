package trace

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	SetStrict(true)
	goleak.VerifyTestMain(m)
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC)

// pass lets d of a synctest bubble's time go by.
func pass(d time.Duration) { <-time.After(d) }

// loose counts misuse instead of panicking for the length of a test.
func loose(t *testing.T) {
	SetStrict(false)
	t.Cleanup(func() { SetStrict(true) })
}

func mustPanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := recover(); got != want {
			t.Errorf("panic = %v, want %q", got, want)
		}
	}()
	f()
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}
