package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"tracegate/configs"
	"tracegate/proxy/h1"
	"tracegate/routing"
	"tracegate/wire"
)

// upstream is how one deployment is reached: the parts of every request to it
// that never change.
type upstream struct {
	deployment *routing.Deployment
	spec       *configs.Deployment
	pool       *h1.Pool
	host       string // the Host header
	prefix     string // path of the base URL, without a trailing slash and without /v1
	authLine   string // header line with its CRLF, or ""
}

func newUpstream(d *routing.Deployment, dial dialer) (*upstream, error) {
	u := d.Spec.URL
	target := h1.Target{
		Name:     d.Name(),
		TLS:      u.Scheme == "https",
		Addr:     addressOf(u.Hostname(), u.Port(), u.Scheme),
		ProxyURL: d.Spec.ProxyURL.Reveal(),
		Dial:     dial,

		RedialTimeout: d.Spec.Timeouts.Connect,
	}
	if t := d.Spec.TLS; t != nil {
		target.CAFile, target.ServerName, target.Insecure = t.CA, t.ServerName, t.Insecure
	}
	pool, err := h1.NewPool(target)
	if err != nil {
		return nil, err // it names the deployment
	}
	return &upstream{
		deployment: d, spec: d.Spec, pool: pool,
		host: u.Host, prefix: u.EscapedPath(), authLine: authLine(d.Spec),
	}, nil
}

func addressOf(host, port, scheme string) string {
	if port == "" {
		port = "80"
		if scheme == "https" {
			port = "443"
		}
	}
	return net.JoinHostPort(host, port)
}

// passes says that the client's own credential is sent on, and so what the
// upstream says of it is the client's to hear.
func (u *upstream) passes() bool { return u.spec.Auth == authPassthrough }

// The values of a deployment's auth.
const (
	authBearer      = "bearer"
	authXAPIKey     = "x-api-key"
	authPassthrough = "passthrough"
)

// rid is the engine's name for a request of ours, where the body sets it. A
// response's id begins with resp_.
func (u *upstream) rid(d wire.Dialect, attemptID string) string {
	if d == wire.Responses {
		return "resp_" + attemptID
	}
	return attemptID
}

// abortRequest tells an engine to drop a request, on a connection of its own.
func (u *upstream) abortRequest(ctx context.Context, rid string) error {
	body := []byte(`{"rid":` + strconv.Quote(rid) + `}`)
	head := []byte("POST " + u.prefix + "/abort_request HTTP/1.1\r\nHost: " + u.host + "\r\n" + u.authLine +
		"Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n")
	call := u.pool.NewCall()
	defer context.AfterFunc(ctx, call.Abort)()
	var answer fasthttp.ResponseHeader
	never := time.Time{}
	if err := u.ask(call, never, head, body, &answer); err != nil {
		call.Discard()
		return err
	}
	call.Finish()
	if s := answer.StatusCode(); s >= 300 {
		return fmt.Errorf("cannot abort rid=%s: status %d", rid, s)
	}
	return nil
}

// ask sends a small request and reads its answer to the end.
func (u *upstream) ask(call *h1.Call, until time.Time, head, body []byte, answer *fasthttp.ResponseHeader) error {
	if err := call.Connect(until); err != nil {
		return err
	}
	if err := call.Write(until, head, body); err != nil {
		return err
	}
	if err := call.ReadHead(until, answer); err != nil {
		return err
	}
	for {
		if _, err := call.Next(until); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// path is where a route stands at this upstream.
func (u *upstream) path(r route) string {
	p := r.upstream
	if r.root && !u.spec.Profile.Hosted {
		p = p[len("/v1"):]
	}
	return u.prefix + p
}
