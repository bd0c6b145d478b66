package load

import "time"

// clockBase ties Go's monotonic reading to CLOCK_MONOTONIC, which all processes of a machine share. Reading it this way costs no
// system call, which matters at one reading per token.
var (
	clockStart = time.Now()
	clockBase  = monotonic()
)

// Now is CLOCK_MONOTONIC in nanoseconds.
func Now() int64 { return clockBase + int64(time.Since(clockStart)) }
