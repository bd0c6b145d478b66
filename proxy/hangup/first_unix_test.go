//go:build unix

package hangup

import (
	"io"
	"strings"
	"testing"
)

// The server asks for one byte and then for the rest: nothing is lost or
// doubled, whatever came along with the byte.
func TestBytesThatComeWithTheFirstAreKept(t *testing.T) {
	for _, size := range []int{1, 2, 100, firstRead - 1, firstRead, firstRead + 1, 3*firstRead + 7} {
		server, client := connect(t, newWatcher(t), transports[0])
		sent := strings.Repeat("0123456789abcdef", size/16+1)[:size]
		write(t, client, sent)
		must(t, client.Close())
		got := make([]byte, 1)
		if n, err := server.Read(got); n != 1 || err != nil {
			t.Fatalf("%d bytes: first read gave %d, %v", size, n, err)
		}
		rest, err := io.ReadAll(server)
		if err != io.ErrUnexpectedEOF { // the client left inside its request
			t.Fatal(err)
		}
		if string(got)+string(rest) != sent {
			t.Errorf("%d bytes were sent, others were read", size)
		}
		if server.first.buf != nil {
			t.Errorf("%d bytes: a buffer is held after everything was read", size)
		}
	}
}

func TestFirstByteOfAClosedConnectionIsTheEnd(t *testing.T) {
	server, client := connect(t, newWatcher(t), transports[0])
	must(t, client.Close())
	if n, err := server.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("got %d, %v; want 0, EOF", n, err)
	}
	if server.first.buf != nil {
		t.Error("a buffer is held after the end")
	}
}
