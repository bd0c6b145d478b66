package h1

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// dial is one attempt to connect, running in its own goroutine so that the
// owner can pause while it goes on. Its fields are guarded by the Call's mu
// until done is closed.
type dial struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when link or err is there
	poke   chan struct{} // Abort and Wake end the owner's wait
	link   *link
	err    error
	took   time.Duration
}

// startDial begins to connect. The goroutine ends when connecting succeeds or
// fails, or when cancel is called, which Abort, Discard and Finish do. A
// connection that comes after that is closed by the goroutine.
func (c *Call) startDial() {
	ctx, cancel := context.WithCancel(context.Background())
	if limit := c.pool.target.RedialTimeout; c.Redialled && limit > 0 {
		ctx, cancel = context.WithTimeout(context.Background(), limit)
	}
	d := &dial{cancel: cancel, done: make(chan struct{}), poke: make(chan struct{}, 1)}
	c.mu.Lock()
	c.dial = d
	if c.over || c.aborted.Load() {
		cancel() // nobody else will
	}
	c.mu.Unlock()
	go func() {
		began := time.Now()
		l, err := c.pool.connect(ctx)
		c.mu.Lock()
		wanted := c.dial == d && !c.aborted.Load()
		if wanted {
			d.link, d.err, d.took = l, err, time.Since(began)
		}
		c.mu.Unlock()
		if !wanted && l != nil {
			l.kill()
		}
		cancel()
		close(d.done)
	}()
}

// awaitDial waits for the running dial and takes its connection.
func (c *Call) awaitDial(until time.Time) error {
	d := c.dial
	var expired <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		expired = t.C
	}
	for {
		if err := c.interrupted(); err != nil {
			return err
		}
		select {
		case <-d.done:
			return c.takeDial(d)
		case <-d.poke: // Abort or Wake: looked at above
		case <-expired:
			return ErrPaused
		}
	}
}

func (c *Call) takeDial(d *dial) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.aborted.Load() {
		return ErrAborted
	}
	c.dial = nil
	if d.err != nil {
		return d.err
	}
	c.link = d.link
	c.ConnectTime += d.took
	return nil
}

// connect dials, directly or through the proxy, and does the TLS handshake.
func (p *Pool) connect(ctx context.Context) (*link, error) {
	raw, err := p.reach(ctx)
	if err != nil {
		return nil, err
	}
	l := newLink(raw)
	if p.tls != nil {
		if err := p.handshake(ctx, l); err != nil {
			l.kill()
			return nil, &Error{Kind: KindTLS, Verb: "do the TLS handshake with upstream", Addr: p.target.Addr, Err: cause(err)}
		}
	}
	l.retireAt = time.Now().Add(p.age())
	return l, nil
}

func (p *Pool) reach(ctx context.Context) (net.Conn, error) {
	if p.proxy != nil {
		return p.tunnel(ctx)
	}
	raw, err := p.dialAddr(ctx, p.target.Addr)
	if err != nil {
		return nil, &Error{Kind: dialKind(err), Verb: "connect to upstream", Addr: p.target.Addr, Err: cause(err)}
	}
	return raw, nil
}

func (p *Pool) dialAddr(ctx context.Context, addr string) (net.Conn, error) {
	if p.target.Dial != nil {
		return p.target.Dial(ctx, addr)
	}
	return p.dialer.DialContext(ctx, "tcp", addr)
}

func dialKind(err error) string {
	var dns *net.DNSError
	var t interface{ Timeout() bool }
	switch {
	case errors.As(err, &dns):
		return KindDNS
	case errors.As(err, &t) && t.Timeout():
		return KindTimeoutConnect
	}
	return KindConnect
}

func (p *Pool) handshake(ctx context.Context, l *link) error {
	l.under = &underTLS{Conn: l.raw}
	conn := tls.Client(l.under, p.tls)
	if err := conn.HandshakeContext(ctx); err != nil {
		return err
	}
	l.conn = conn
	if l.sock != nil {
		l.under.poll(l.sock)
	}
	return nil
}
