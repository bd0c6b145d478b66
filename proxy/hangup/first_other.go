//go:build !unix

package hangup

// first: without descriptors a byte is read by itself.
type first struct{ rest []byte }

func (c *Conn) readFirst(p []byte) (int, error) { return c.Conn.Read(p) }

// Opening is not known here.
func (c *Conn) Opening() []byte { return nil }

func (c *Conn) takeFirst([]byte) int { panic("BUG: nothing was read along") }
