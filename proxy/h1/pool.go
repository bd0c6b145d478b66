package h1

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"sync"
	"time"
)

const (
	// defaultIdle is below the 5 s after which uvicorn (vLLM, SGLang) closes.
	defaultIdle = 4 * time.Second
	// defaultMaxAge makes a busy pool resolve its name again.
	defaultMaxAge = 5 * time.Minute
	// keepAliveMargin is left of a server's own `Keep-Alive: timeout`.
	keepAliveMargin = time.Second
)

// Target says where an upstream is and how to get there.
type Target struct {
	Name string // the deployment, for the errors of NewPool
	Addr string // host:port

	TLS        bool
	CAFile     string // PEM file of the roots to trust; empty: the system's (config key tls.ca)
	ServerName string // the name to verify; empty: Addr's host (tls.server_name)
	Insecure   bool   // do not verify (tls.insecure)

	// ProxyURL is the CONNECT proxy (proxy_url), with user and password if it
	// wants them. Empty: HTTPS_PROXY, HTTP_PROXY and NO_PROXY decide; "off": none.
	ProxyURL string

	IdleTimeout time.Duration // how long a connection may idle before it is closed; 0: 4 s
	MaxAge      time.Duration // how old a connection may get and still be reused, less up to a fifth; 0: 5 min

	// RedialTimeout bounds the re-dial inside ReadHead, which has no step of its own; 0: only `until` does.
	RedialTimeout time.Duration

	// Dial replaces the dialler; for in-memory connections.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
}

// Pool dials one upstream and keeps its idle connections, the newest on top.
type Pool struct {
	target Target
	tls    *tls.Config // nil for plain HTTP
	proxy  *url.URL    // nil for a direct way
	dialer net.Dialer

	mu       sync.Mutex
	idle     []*link            // the last one is reused first
	draining map[*link]struct{} // read to their end in the background
	janitor  *time.Timer        // closes idle connections on time; nil until first used
	sweepAt  time.Time          // when it will; zero: it rests
	closed   bool
}

// NewPool checks t and makes a pool for it. It fails if the CA file cannot be
// read or the proxy's URL is not usable. Close it when no new call will come.
func NewPool(t Target) (*Pool, error) {
	p, err := newPoolOf(t)
	if err != nil {
		return nil, fmt.Errorf("cannot reach deployment=%s: %w", t.Name, err)
	}
	return p, nil
}

func newPoolOf(t Target) (*Pool, error) {
	if _, _, err := net.SplitHostPort(t.Addr); err != nil {
		return nil, fmt.Errorf("cannot use upstream addr=%s: %w", t.Addr, cause(err))
	}
	if t.IdleTimeout <= 0 {
		t.IdleTimeout = defaultIdle
	}
	if t.MaxAge <= 0 {
		t.MaxAge = defaultMaxAge
	}
	p := &Pool{target: t, draining: map[*link]struct{}{}}
	p.dialer.KeepAliveConfig = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 4}
	var err error
	if t.TLS {
		if p.tls, err = tlsConfig(t); err != nil {
			return nil, err
		}
	}
	if p.proxy, err = proxyFor(t); err != nil {
		return nil, err
	}
	return p, nil
}

func tlsConfig(t Target) (*tls.Config, error) {
	c := &tls.Config{
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.Insecure,
		MinVersion:         tls.VersionTLS12,
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
		// NextProtos stays empty: HTTP/2 must not be chosen.
	}
	if c.ServerName == "" {
		c.ServerName, _, _ = net.SplitHostPort(t.Addr)
	}
	if t.CAFile == "" {
		return c, nil
	}
	pem, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read tls.ca=%s: %w", t.CAFile, err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("cannot use tls.ca=%s: %w", t.CAFile, errors.New("no certificate in PEM form"))
	}
	return c, nil
}

// NewCall begins a request. It must end with Finish or Discard, after an Abort too.
func (p *Pool) NewCall() *Call { return &Call{pool: p} }

// Idle is the number of connections that wait for a request.
func (p *Pool) Idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

// Close closes the idle connections and those that are being drained. Running
// calls go on; their connections are closed when they end.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.janitor != nil {
		p.janitor.Stop()
	}
	for _, l := range p.idle {
		l.kill()
	}
	p.idle = nil
	for l := range p.draining {
		l.kill() // its goroutine sees the error and leaves
	}
}

// get takes the newest idle connection that is still good, or nil.
func (p *Pool) get() *link {
	for {
		l := p.pop()
		if l == nil {
			return nil
		}
		now := time.Now()
		if now.Before(l.idleEnd) && now.Before(l.retireAt) && l.settle(now) == nil && l.alive() {
			return l
		}
		l.kill()
	}
}

func (p *Pool) pop() *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	l := p.idle[last]
	p.idle[last] = nil
	p.idle = p.idle[:last]
	return l
}

// put takes a connection whose last answer was read to its exact end.
func (p *Pool) put(l *link) {
	now := time.Now()
	keep := p.target.IdleTimeout
	if l.keepFor > 0 {
		keep = min(keep, l.keepFor-keepAliveMargin)
	}
	l.idleEnd = now.Add(keep)
	if l.retireAt.Before(l.idleEnd) {
		l.idleEnd = l.retireAt
	}
	if l.ended || l.under != nil && len(l.under.unsent) > 0 || !now.Before(l.idleEnd) {
		l.kill()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		l.kill()
		return
	}
	p.idle = append(p.idle, l)
	if p.sweepAt.IsZero() || l.idleEnd.Before(p.sweepAt) {
		p.setJanitor(l.idleEnd, now)
	}
}

func (p *Pool) setJanitor(at, now time.Time) {
	p.sweepAt = at
	if p.janitor == nil {
		p.janitor = time.AfterFunc(at.Sub(now), p.sweep)
		return
	}
	p.janitor.Reset(at.Sub(now))
}

// sweep runs on the janitor's timer. It closes what is due and sets the timer
// for the next; the timer rests while nothing idles, and ends with Close.
func (p *Pool) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	kept := p.idle[:0]
	var next time.Time
	for _, l := range p.idle {
		if !now.Before(l.idleEnd) {
			l.kill()
			continue
		}
		kept = append(kept, l)
		if next.IsZero() || l.idleEnd.Before(next) {
			next = l.idleEnd
		}
	}
	clear(p.idle[len(kept):])
	p.idle = kept
	p.sweepAt = time.Time{}
	if len(kept) > 0 {
		p.setJanitor(next, now)
	}
}

// age is a new connection's lifetime: jittered, or a burst of connections would
// also end as a burst.
func (p *Pool) age() time.Duration {
	return p.target.MaxAge - rand.N(p.target.MaxAge/5+1)
}
