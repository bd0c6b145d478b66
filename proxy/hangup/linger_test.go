package hangup

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// TestLingerLetsTheClientReadTheRefusal: the client is still sending when it is refused.
// Closing with its bytes unread would reset the connection and take the answer along.
func TestLingerLetsTheClientReadTheRefusal(t *testing.T) {
	w := newWatcher(t)
	for _, tr := range transports[:3] {
		for _, onClose := range []bool{false, true} {
			t.Run(tr.name+map[bool]string{false: "/before close", true: "/on close"}[onClose], func(t *testing.T) {
				server, client := connect(t, w, tr)
				write(t, client, "head")
				read(t, server, "head")
				sent := make(chan error, 1)
				go func() {
					_, err := client.Write(make([]byte, 8<<20))
					sent <- err
				}()
				write(t, server, "refused")
				closed := make(chan error, 1)
				go func() {
					if onClose {
						server.LingerOnClose(64<<20, patience)
					} else {
						server.Linger(64<<20, patience)
					}
					closed <- server.Close()
				}()
				if err := arrives(t, "end of the client's body", sent); err != nil {
					t.Errorf("the client's write: %v", err)
				}
				read(t, client, "refused")
				if tr.name != "tcp_read_ahead" { // which cannot half-close
					if n, err := client.Read(make([]byte, 1)); n != 0 || err != io.EOF {
						t.Errorf("after the answer the client read %d, %v; want EOF", n, err)
					}
				}
				client.Close()
				if err := arrives(t, "Close", closed); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestLingerEndsAtItsBounds(t *testing.T) {
	t.Run("time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server, _ := inMemory(t)
			start := time.Now()
			server.Linger(1<<20, 3*time.Second)
			if time.Since(start) != 3*time.Second {
				t.Errorf("lingered %v, want 3s", time.Since(start))
			}
		})
	})
	t.Run("bytes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server, client := inPipe(t)
			go client.Write(make([]byte, 1000))
			start := time.Now()
			server.Linger(100, time.Hour)
			if time.Since(start) != 0 {
				t.Errorf("lingered %v", time.Since(start))
			}
		})
	})
	t.Run("first close only", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server, _ := inMemory(t)
			server.LingerOnClose(1<<20, time.Hour)
			start := time.Now()
			closed := make(chan error)
			go func() { closed <- server.Close() }()
			<-time.After(time.Second)
			server.Close() // ends the lingering one
			<-closed
			if time.Since(start) != time.Second {
				t.Errorf("closing took %v, want 1s", time.Since(start))
			}
		})
	})
	t.Run("the client leaves", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server, client := inMemory(t)
			server.LingerOnClose(1<<20, time.Hour)
			start := time.Now()
			time.AfterFunc(time.Second, func() { client.Close() })
			server.Close()
			if time.Since(start) != time.Second {
				t.Errorf("closing took %v, want 1s", time.Since(start))
			}
		})
	})
}

func TestCloseWrite(t *testing.T) {
	w := newWatcher(t)
	for _, tr := range transports {
		t.Run(tr.name, func(t *testing.T) {
			server, client := connect(t, w, tr)
			err := server.CloseWrite()
			if errors.Is(err, errors.ErrUnsupported) {
				if tr.name == "tcp" || tr.name == "unix" {
					t.Errorf("CloseWrite: %v", err)
				}
				return
			}
			must(t, err)
			if _, err := client.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("the client's read: %v, want EOF", err)
			}
			write(t, client, "still sending")
			read(t, server, "still sending")
			if server.Gone() {
				t.Error("our own half-close was taken for a departure")
			}
		})
	}
}
