package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

// scripted is an upstream that writes what a test tells it to, byte for byte:
// for framings and answers that no engine makes.
type scripted struct {
	url   string
	reply func(c net.Conn, r *http.Request, body []byte) // returns when the answer has been written

	ln    net.Listener
	ended sync.WaitGroup
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// newScripted listens until the test ends. reply is called for one request of
// a connection after the other; it closes the connection where the answer does.
func newScripted(t testing.TB, reply func(c net.Conn, r *http.Request, body []byte)) *scripted {
	t.Helper()
	s := &scripted{reply: reply, ln: must(net.Listen("tcp", "127.0.0.1:0")), conns: map[net.Conn]struct{}{}}
	s.url = "http://" + s.ln.Addr().String()
	s.ended.Add(1)
	go s.accept()
	t.Cleanup(s.close)
	return s
}

func (s *scripted) accept() {
	defer s.ended.Done()
	for {
		c, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.begin(c)
	}
}

func (s *scripted) begin(c net.Conn) {
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	s.ended.Add(1)
	go s.serve(c)
}

// dial is a way to the upstream on which every write of it is one read of the
// gateway. On sockets the kernel joins what comes faster than it is read.
func (s *scripted) dial(context.Context, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	s.begin(theirs)
	return ours, nil
}

func (s *scripted) serve(c net.Conn) {
	defer s.ended.Done()
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		_ = c.Close()
	}()
	br := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.reply(c, r, body)
	}
}

func (s *scripted) close() {
	_ = s.ln.Close()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.ended.Wait()
}
