package h1

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"

	"golang.org/x/net/http/httpproxy"
)

// maxProxyHead bounds the proxy's answer to CONNECT.
const maxProxyHead = 16 << 10

// proxyFor decides once, when the pool is made, whether a proxy is on the way.
// The environment never puts one before loopback or what NO_PROXY names; a
// proxy_url is taken at its word.
func proxyFor(t Target) (*url.URL, error) {
	key, raw := "proxy_url", t.ProxyURL
	if raw == "off" {
		return nil, nil
	}
	if raw == "" {
		to := &url.URL{Scheme: "http", Host: t.Addr}
		key = "HTTP_PROXY"
		if t.TLS {
			to.Scheme, key = "https", "HTTPS_PROXY"
		}
		u, err := httpproxy.FromEnvironment().ProxyFunc()(to)
		if err != nil {
			return nil, fmt.Errorf("cannot use %s: %w", key, errors.New("not a URL")) // the text may hold a password
		}
		if u == nil {
			return nil, nil
		}
		raw = u.String()
	}
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return nil, fmt.Errorf("cannot use %s: %w", key, errors.New("not a URL like http://proxy:3128"))
	}
	if u.Scheme != "http" {
		return nil, fmt.Errorf("cannot use %s=%s://%s: only http:// proxies are spoken to", key, u.Scheme, u.Host)
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), "80")
	}
	return u, nil
}

// tunnel connects to the proxy and asks it for a connection to the upstream.
func (p *Pool) tunnel(ctx context.Context) (net.Conn, error) {
	addr := p.proxy.Host
	conn, err := p.dialAddr(ctx, addr)
	if err != nil {
		return nil, &Error{Kind: KindProxy, Verb: "connect to proxy", Addr: addr, Err: cause(err)}
	}
	// A tunnel has no step that can pause, so cancelling closes the connection.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := p.askTunnel(conn); err != nil {
		_ = conn.Close()
		return nil, &Error{Kind: KindProxy, Verb: "tunnel to " + p.target.Addr + " through proxy", Addr: addr, Err: cause(err)}
	}
	return conn, nil
}

func (p *Pool) askTunnel(conn net.Conn) error {
	ask := append([]byte("CONNECT "), p.target.Addr...)
	ask = append(append(append(ask, " HTTP/1.1\r\nHost: "...), p.target.Addr...), "\r\n"...)
	if u := p.proxy.User; u != nil {
		password, _ := u.Password()
		ask = append(ask, "Proxy-Authorization: Basic "...)
		ask = base64.StdEncoding.AppendEncode(ask, []byte(u.Username()+":"+password))
		ask = append(ask, "\r\n"...)
	}
	if _, err := conn.Write(append(ask, "\r\n"...)); err != nil {
		return err
	}
	return readTunnelAnswer(conn)
}

// readTunnelAnswer reads the proxy's head. The upstream speaks only when spoken
// to, so a byte behind the head means that this is not a tunnel.
func readTunnelAnswer(conn net.Conn) error {
	buf := make([]byte, 0, 1<<10)
	for {
		if len(buf) == cap(buf) {
			if len(buf) >= maxProxyHead {
				return errors.New("its answer's head is larger than 16 KiB")
			}
			buf = append(make([]byte, 0, maxProxyHead), buf...)
		}
		n, err := conn.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		end := bytes.Index(buf, []byte("\r\n\r\n"))
		if end < 0 {
			if err != nil {
				return fmt.Errorf("its answer ended early: %w", cause(err))
			}
			continue
		}
		line, _, _ := bytes.Cut(buf, []byte("\r\n"))
		if !tunnelOpen(line) {
			return fmt.Errorf("it answered %s", strconv.QuoteToASCII(string(line[:min(len(line), 200)])))
		}
		if end+4 != len(buf) {
			return errors.New("it sent data before the tunnel was used")
		}
		return nil
	}
}

// tunnelOpen: the status line says 2xx.
func tunnelOpen(line []byte) bool {
	proto, rest, _ := bytes.Cut(line, []byte(" "))
	return bytes.HasPrefix(proto, []byte("HTTP/1.")) && len(rest) >= 3 && rest[0] == '2' &&
		(len(rest) == 3 || rest[3] == ' ')
}
