package proxy

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// How long things take is printed, never asserted. A variable of the
// environment makes a test measure more than the few that say that it works
// (make stamps, make aborts, make limits).

// measurements is how many there are to be.
func measurements(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// figures prints what was measured of something.
func figures(t *testing.T, what string, d []time.Duration) {
	t.Helper()
	if len(d) == 0 {
		t.Errorf("%s: nothing was measured", what)
		return
	}
	slices.Sort(d)
	t.Logf("%-28s n=%-5d p50=%-12s p99=%-12s max=%s", what, len(d), d[len(d)/2], d[len(d)*99/100], d[len(d)-1])
}
