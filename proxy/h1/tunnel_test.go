package h1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// connectProxy tunnels everything to upstream and tells what it was asked.
func connectProxy(t *testing.T, to string, asked chan<- *http.Request) *upstream {
	return serve(t, func(c net.Conn, r *bufio.Reader) {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		asked <- req
		up, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer up.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n")
		go func() {
			_, _ = io.Copy(up, r)
			_ = up.(*net.TCPConn).CloseWrite()
		}()
		_, _ = io.Copy(c, up)
	})
}

func TestTunnel(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%v", secure), func(t *testing.T) {
			up := serve(t, echo)
			if secure {
				up = serveTLS(t, echo)
			}
			asked := make(chan *http.Request, 1)
			proxy := connectProxy(t, up.addr, asked)
			p := newPool(t, Target{Addr: "upstream.test:8443", TLS: secure, CAFile: caFile(t), ProxyURL: "http://user:secret@" + proxy.addr})
			for range 3 {
				body, _, err := exchange(p, "hello")
				must(t, err)
				equal(t, "body", body, "hello")
			}
			req := <-asked
			equal(t, "method", req.Method, "CONNECT")
			equal(t, "target", req.RequestURI, "upstream.test:8443")
			equal(t, "host", req.Host, "upstream.test:8443")
			equal(t, "credentials", req.Header.Get("Proxy-Authorization"), "Basic dXNlcjpzZWNyZXQ=")
			equal(t, "connections", proxy.conns.Load(), 1)
		})
	}
}

func TestTunnelFailures(t *testing.T) {
	refused := closedAddr(t)
	for _, c := range []struct{ name, answer, text string }{
		{"refuses", "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n", `"HTTP/1.1 407 Proxy Authentication Required"`},
		{"leaves", "", "ended early"},
		{"speaks something else", "SSH-2.0-x\r\n\r\n", `"SSH-2.0-x"`},
		{"sends more than a head", "HTTP/1.1 200 OK\r\n\r\nhello", "before the tunnel was used"},
		{"has no end", "HTTP/1.1 200 " + strings.Repeat("x", 20<<10), "larger than 16 KiB"},
		{"status with four digits", "HTTP/1.1 2000 OK\r\n\r\n", "2000"},
		{"not there", "", "connection refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr := serve(t, once(c.answer)).addr
			if c.name == "not there" {
				addr = refused
			}
			_, _, err := exchange(newPool(t, Target{ProxyURL: "http://user:secret@" + addr}), "{}")
			e := wantKind(t, err, KindProxy)
			for _, part := range []string{c.text, "addr=" + addr} {
				if !strings.Contains(e.Error(), part) {
					t.Errorf("text %q lacks %q", e, part)
				}
			}
			if strings.Contains(e.Error(), "secret") {
				t.Errorf("text tells the password: %v", e)
			}
		})
	}
}

func TestProxyFromEnvironment(t *testing.T) {
	for _, c := range []struct {
		name, addr, proxyURL, want string
		tls                        bool
		env                        map[string]string
	}{
		{name: "none", addr: "upstream.test:80", want: "upstream.test:80"},
		{name: "plain", addr: "upstream.test:80", env: map[string]string{"HTTP_PROXY": "http://p:1"}, want: "p:1"},
		{name: "plain is not asked for TLS", addr: "upstream.test:80", env: map[string]string{"HTTPS_PROXY": "http://p:1"}, want: "upstream.test:80"},
		{name: "TLS", addr: "upstream.test:443", tls: true, env: map[string]string{"HTTPS_PROXY": "p:2", "HTTP_PROXY": "http://p:1"}, want: "p:2"},
		{name: "default port", addr: "upstream.test:443", tls: true, env: map[string]string{"HTTPS_PROXY": "http://p"}, want: "p:80"},
		{name: "no proxy", addr: "upstream.test:80", env: map[string]string{"HTTP_PROXY": "http://p:1", "NO_PROXY": ".test"}, want: "upstream.test:80"},
		{name: "loopback", addr: "127.0.0.1:80", env: map[string]string{"HTTP_PROXY": "http://p:1"}, want: "127.0.0.1:80"},
		{name: "localhost", addr: "localhost:80", env: map[string]string{"HTTP_PROXY": "http://p:1"}, want: "localhost:80"},
		{name: "configured wins", addr: "upstream.test:80", proxyURL: "http://q:3", env: map[string]string{"HTTP_PROXY": "http://p:1", "NO_PROXY": "*"}, want: "q:3"},
		{name: "off", addr: "upstream.test:80", proxyURL: "off", env: map[string]string{"HTTP_PROXY": "http://p:1"}, want: "upstream.test:80"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "REQUEST_METHOD"} {
				t.Setenv(name, c.env[name])
				t.Setenv(strings.ToLower(name), "")
			}
			var dialled string
			p, err := NewPool(Target{Addr: c.addr, TLS: c.tls, ProxyURL: c.proxyURL, Dial: func(_ context.Context, addr string) (net.Conn, error) {
				dialled = addr
				return nil, errors.New("enough")
			}})
			must(t, err)
			defer p.Close()
			call := p.NewCall()
			defer call.Discard()
			if call.Connect(soon()) == nil {
				t.Fatal("connected")
			}
			equal(t, "dialled", dialled, c.want)
		})
	}
}

func TestUnusableProxy(t *testing.T) {
	for _, raw := range []string{"socks5://user:secret@p:1", "https://user:secret@p:1", "p:3128", "http://", "http://user:secret@p:x"} {
		_, err := NewPool(Target{Addr: "a:80", ProxyURL: raw})
		if err == nil || !strings.Contains(err.Error(), "cannot use proxy_url") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
