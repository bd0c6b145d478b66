package h1

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
)

// identity makes a certificate for upstream.test that is its own authority, and
// the PEM file that holds it.
var identity = sync.OnceValues(func() (tls.Certificate, []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"upstream.test"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
})

func caFile(t testing.TB) string {
	_, ca := identity()
	name := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(name, ca, 0o600))
	return name
}

func serverTLS() *tls.Config {
	cert, _ := identity()
	return &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}}
}

func serveTLS(t testing.TB, script func(net.Conn, *bufio.Reader)) *upstream {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return serveOn(t, tls.NewListener(ln, serverTLS()), script)
}

func TestTLSExchange(t *testing.T) {
	up := serveTLS(t, echo)
	p := newPool(t, Target{Addr: up.addr, TLS: true, CAFile: caFile(t), ServerName: "upstream.test"})
	body := strings.Repeat("0123456789", 200_000)
	for i := range 5 {
		got, c, err := exchange(p, body)
		must(t, err)
		equal(t, "body", got == body, true)
		equal(t, "reused", c.Reused, i > 0)
	}
	equal(t, "connections", up.conns.Load(), 1)
}

func TestTLSFailures(t *testing.T) {
	up, plain := serveTLS(t, echo), serve(t, func(c net.Conn, r *bufio.Reader) {
		_, _ = r.ReadByte()
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
	})
	for _, c := range []struct {
		name, addr, text string
		target           Target
	}{
		{"unknown authority", up.addr, "certificate signed by unknown authority", Target{ServerName: "upstream.test"}},
		{"another name", up.addr, "not other.test", Target{CAFile: caFile(t), ServerName: "other.test"}},
		{"not TLS", plain.addr, "first record does not look like a TLS handshake", Target{Insecure: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.target.Addr, c.target.TLS = c.addr, true
			_, _, err := exchange(newPool(t, c.target), "{}")
			e := wantKind(t, err, KindTLS)
			if !strings.Contains(e.Error(), c.text) || !strings.Contains(e.Error(), "addr="+c.addr) {
				t.Errorf("text: %v", e)
			}
		})
	}
	got, _, err := exchange(newPool(t, Target{Addr: up.addr, TLS: true, Insecure: true}), "{}")
	must(t, err)
	equal(t, "insecure", got, "{}")
}

func TestUnusableCAFile(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	must(t, os.WriteFile(empty, []byte("nothing"), 0o600))
	for _, file := range []string{empty, empty + ".missing"} {
		_, err := NewPool(Target{Addr: "a:443", TLS: true, CAFile: file, ProxyURL: "off"})
		if err == nil || !strings.Contains(err.Error(), "tls.ca="+file) {
			t.Errorf("error: %v", err)
		}
	}
}

// A record that could not be sent in time is not lost, and does not break TLS.
func TestTLSWritePauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan string, 1)
		target := piped(t, func(c net.Conn, _ *bufio.Reader) {
			config := serverTLS()
			config.SessionTicketsDisabled = true // both sides would write at once, into a pipe without a buffer
			s := tls.Server(&slowReader{Conn: c}, config)
			body, _ := request(bufio.NewReader(s))
			got <- body
			_, _ = io.WriteString(s, ok)
			_, _ = io.Copy(io.Discard, s)
		})
		target.TLS, target.Insecure = true, true
		p := newPool(t, target)
		c := p.NewCall()
		must(t, c.Connect(time.Time{}))
		body := strings.Repeat("0123456789", 10_000)
		pauses := 0
		for {
			// Some steps end before the first byte is taken, some after a part.
			step := time.Duration(700+600*(pauses%2)) * time.Millisecond
			err := writePost(c, time.Now().Add(step), body)
			if err == nil {
				break
			}
			equal(t, "write", err, ErrPaused)
			pauses++
		}
		if pauses < 20 {
			t.Errorf("only %d pauses", pauses)
		}
		equal(t, "body", <-got == body, true)
		h := new(fasthttp.ResponseHeader)
		for err := ErrPaused; err != nil; err = c.ReadHead(time.Now().Add(700*time.Millisecond), h) {
			equal(t, "head", err, ErrPaused)
		}
		b, err := c.Next(time.Time{})
		must(t, err)
		equal(t, "answer", string(b), "ok")
		c.Finish()
		equal(t, "idle", p.Idle(), 1)
	})
}

// slowReader takes at most 3,000 bytes a second.
type slowReader struct{ net.Conn }

func (s *slowReader) Read(b []byte) (int, error) {
	<-time.After(time.Second)
	return s.Conn.Read(b[:min(len(b), 3000)])
}

// Reads under TLS pause inside records, on a connection without a descriptor.
func TestTLSReadsPauseInsideRecords(t *testing.T) {
	up := serveTLS(t, echo)
	near := make(chan *trickle, 1)
	p := newPool(t, Target{Addr: up.addr, TLS: true, Insecure: true, Dial: func(ctx context.Context, addr string) (net.Conn, error) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return nil, err
		}
		conn := &trickle{Conn: c}
		near <- conn
		return conn, nil
	}})
	c := p.NewCall()
	must(t, c.Connect(soon()))
	(<-near).starve = true
	body := strings.Repeat("0123456789", 300)
	got, err := patiently(c, body)
	must(t, err)
	equal(t, "body", got, body)
	c.Finish()
	equal(t, "idle", p.Idle(), 1)
}

// trickle hides the descriptor, gives seven bytes a read and times out every
// second time.
type trickle struct {
	net.Conn
	starve, odd bool
}

func (s *trickle) Read(b []byte) (int, error) {
	if !s.starve {
		return s.Conn.Read(b)
	}
	if s.odd = !s.odd; s.odd {
		return 0, os.ErrDeadlineExceeded
	}
	return s.Conn.Read(b[:min(len(b), 7)])
}

// A TLS connection that the server closed while it idled is not reused.
func TestDeadIdleTLSConnectionIsNotReused(t *testing.T) {
	conns := make(chan net.Conn, 2)
	up := serveTLS(t, func(c net.Conn, r *bufio.Reader) {
		conns <- c
		each(ok)(c, r)
	})
	p := newPool(t, Target{Addr: up.addr, TLS: true, Insecure: true})
	first := idleCall(t, p)
	l := first.link
	first.Finish()
	equal(t, "alive", l.alive(), true)
	_ = (<-conns).(*tls.Conn).CloseWrite() // the goodbye alone, without a FIN
	for l.alive() {                        // until the kernel has told
	}
	_, second, err := exchange(p, "{}")
	must(t, err)
	equal(t, "redialled", second.Redialled, false)
	equal(t, "reused", second.Reused, false)
}
