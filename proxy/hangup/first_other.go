//go:build !unix

package hangup

// first: without descriptors a byte is read by itself.
type first struct{ rest []byte }

func (c *Conn) readFirst(p []byte) (int, error) { return c.Conn.Read(p) }

func (c *Conn) takeFirst([]byte) int { panic("BUG: nothing was read along") }
