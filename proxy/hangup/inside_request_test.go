package hangup

import (
	"io"
	"testing"
)

// An end after the first byte of a request and before its handler is no end of
// an idle connection.
func TestEndInsideARequestIsUnexpected(t *testing.T) {
	for _, tr := range transports {
		for _, c := range []struct {
			name   string
			served bool // the request was read whole and its handler ran
			want   error
		}{
			{"inside a request", false, io.ErrUnexpectedEOF},
			{"between requests", true, io.EOF},
		} {
			t.Run(tr.name+"/"+c.name, func(t *testing.T) {
				server, client := connect(t, newWatcher(t), tr)
				write(t, client, "POST ")
				read(t, server, "POST ")
				if c.served {
					server.Watch(func() {})
					server.Unwatch()
				}
				must(t, client.Close())
				if n, err := server.Read(make([]byte, 1)); n != 0 || err != c.want {
					t.Errorf("got %d, %v; want 0, %v", n, err, c.want)
				}
			})
		}
	}
}
