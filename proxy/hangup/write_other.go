//go:build !unix

package hangup

import "os"

// canWriteRaw: writes go through the connection, limited piece by piece.
const canWriteRaw = false

// errDeadline is the owner's own write deadline.
var errDeadline = os.ErrDeadlineExceeded

func (c *Conn) writeStep(uintptr) bool { panic("BUG: no raw writes on this system") }
