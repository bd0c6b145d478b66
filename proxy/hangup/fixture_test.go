package hangup

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"
)

// patience is how long a test waits for what must happen. It decides nothing but when a
// broken test gives up.
const patience = 30 * time.Second

func newWatcher(t testing.TB) *Watcher {
	t.Helper()
	w, err := NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// plainConn hides everything but net.Conn, so that the connection has to be read ahead.
type plainConn struct{ net.Conn }

type plainListener struct{ net.Listener }

func (l plainListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return plainConn{c}, nil
}

// transport is one way in which a client can be connected.
type transport struct {
	name string
	open func(t testing.TB) (ln net.Listener, dial func() (net.Conn, error))
}

func tcpTransport(t testing.TB) (net.Listener, func() (net.Conn, error)) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln, func() (net.Conn, error) { return net.Dial("tcp", ln.Addr().String()) }
}

func unixTransport(t testing.TB) (net.Listener, func() (net.Conn, error)) {
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return ln, func() (net.Conn, error) { return net.Dial("unix", path) }
}

func plainTransport(t testing.TB) (net.Listener, func() (net.Conn, error)) {
	ln, dial := tcpTransport(t)
	return plainListener{ln}, dial
}

func memoryTransport(testing.TB) (net.Listener, func() (net.Conn, error)) {
	ln := fasthttputil.NewInmemoryListener()
	return ln, ln.Dial
}

var transports = []transport{
	{"tcp", tcpTransport},
	{"unix", unixTransport},
	{"tcp_read_ahead", plainTransport},
	{"memory", memoryTransport},
}

// sockets are the transports whose writes go to a descriptor.
var sockets = transports[:2]

// onEach runs f with both ends of a new connection over each transport.
func onEach(t *testing.T, over []transport, f func(t *testing.T, server *Conn, client net.Conn)) {
	w := newWatcher(t)
	for _, tr := range over {
		t.Run(tr.name, func(t *testing.T) {
			server, client := connect(t, w, tr)
			f(t, server, client)
		})
	}
}

// connect returns both ends of a new connection over tr.
func connect(t testing.TB, w *Watcher, tr transport) (server *Conn, client net.Conn) {
	t.Helper()
	inner, dial := tr.open(t)
	ln := NewListener(inner, w)
	defer ln.Close()
	return connectOver(t, ln, dial)
}

func connectOver(t testing.TB, ln net.Listener, dial func() (net.Conn, error)) (server *Conn, client net.Conn) {
	t.Helper()
	dialled := make(chan net.Conn, 1)
	go func() {
		c, err := dial()
		if err != nil {
			t.Error(err)
		}
		dialled <- c
	}()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server, client = Of(c), <-dialled
	t.Cleanup(func() { server.Close(); client.Close() })
	return server, client
}

// inMemory opens a connection inside a synctest bubble.
func inMemory(t *testing.T) (server *Conn, client net.Conn) {
	return connect(t, newWatcher(t), transport{"memory", memoryTransport})
}

// inPipe is inMemory over net.Pipe: no buffer, and a Write may be taken in parts.
func inPipe(t *testing.T) (server *Conn, client net.Conn) {
	s, client := net.Pipe()
	server = newConn(s, newWatcher(t))
	t.Cleanup(func() { server.Close(); client.Close() })
	return server, client
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// arrives waits for ch.
func arrives[T any](t testing.TB, what string, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(patience):
		t.Fatalf("%s did not happen", what)
	}
	return v
}

// eventually waits for a condition that nothing announces.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for start := time.Now(); !holds(); runtime.Gosched() {
		if time.Since(start) > patience {
			t.Fatalf("%s did not happen", what)
		}
	}
}

// backgroundReadEnds waits until nothing reads ahead any more.
func backgroundReadEnds(t testing.TB, c *Conn) {
	t.Helper()
	eventually(t, "end of the background read", func() bool { return !readsAhead(c) })
}

func readsAhead(c *Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead != nil && c.ahead.done != nil
}

// waits says whether a Write of c waits for its client.
func waits(c *Conn) bool {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return !c.out.since.IsZero()
}

// signal returns a leave function and the channel that gets one value per call of it.
func signal() (leave func(), left chan struct{}) {
	left = make(chan struct{}, 8)
	return func() { left <- struct{}{} }, left
}

// notLeft fails if leave was called.
func notLeft(t testing.TB, left chan struct{}) {
	t.Helper()
	select {
	case <-left:
		t.Fatal("leave was called")
	default:
	}
}

func write(t testing.TB, c net.Conn, s string) {
	t.Helper()
	if _, err := c.Write([]byte(s)); err != nil {
		t.Fatalf("write %q: %v", s, err)
	}
}

// read reads exactly len(want) bytes.
func read(t testing.TB, c net.Conn, want string) {
	t.Helper()
	buf := make([]byte, len(want))
	for n := 0; n < len(buf); {
		m, err := c.Read(buf[n:])
		n += m
		if err != nil {
			t.Fatalf("read %q after %q: %v", want, buf[:n], err)
		}
	}
	if string(buf) != want {
		t.Fatalf("read %q, want %q", buf, want)
	}
}

var serverTLS = sync.OnceValue(func() *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(1<<33, 0), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
})

// handshake puts TLS on both ends.
func handshake(t testing.TB, server, client net.Conn) (s, c *tls.Conn) {
	t.Helper()
	s = tls.Server(server, serverTLS())
	c = tls.Client(client, &tls.Config{InsecureSkipVerify: true})
	done := make(chan error, 1)
	go func() { done <- c.Handshake() }()
	if err := s.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := arrives(t, "handshake", done); err != nil {
		t.Fatal(err)
	}
	return s, c
}
