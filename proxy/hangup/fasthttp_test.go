package hangup

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"testing"

	"github.com/valyala/fasthttp"
)

// TestUnderFasthttp serves pipelined requests with bodies, watched in the handler as a
// proxy does it, and then a client that leaves in the middle.
func TestUnderFasthttp(t *testing.T) {
	w := newWatcher(t)
	for _, tr := range transports {
		for _, secure := range []bool{false, true} {
			t.Run(tr.name+map[bool]string{false: "/plain", true: "/tls"}[secure], func(t *testing.T) {
				inner, dial := tr.open(t)
				left := make(chan struct{}, 1)
				ln := NewListener(inner, w)
				defer ln.Close()
				server, client := connectOver(t, ln, dial)
				served := serveFasthttp(t, server, secure, left)
				if secure {
					client = tls.Client(client, &tls.Config{InsecureSkipVerify: true})
					defer client.Close()
				}
				r := bufio.NewReader(client)
				// The second request arrives while the first one is watched.
				request := "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n"
				bodies := []string{"one.", "two.", "six."}
				write(t, client, request+bodies[0])
				for i, body := range bodies {
					if i+1 < len(bodies) {
						write(t, client, request+bodies[i+1])
					}
					var res fasthttp.Response
					must(t, res.Read(r))
					if got := string(res.Body()); got != body {
						t.Fatalf("answer %q, want %q", got, body)
					}
				}
				write(t, client, "GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
				client.Close()
				arrives(t, "leave", left)
				arrives(t, "end of the connection", served)
			})
		}
	}
}

// serveFasthttp answers /echo with the body that it reads while watching; /wait lasts
// until the client has left. It serves one connection, as fasthttp's workers do: they
// would outlive the test.
func serveFasthttp(t *testing.T, c net.Conn, secure bool, left chan struct{}) (served chan error) {
	if secure {
		c = tls.Server(c, serverTLS())
	}
	handler := func(ctx *fasthttp.RequestCtx) {
		c := Of(ctx.Conn())
		gone := make(chan struct{})
		if c.Watch(func() { close(gone) }) {
			close(gone)
		}
		defer c.Unwatch()
		if string(ctx.Path()) == "/wait" {
			<-gone
			left <- struct{}{}
			return
		}
		body, err := io.ReadAll(ctx.RequestBodyStream())
		if err != nil {
			t.Error(err)
		}
		ctx.SetBody(body)
	}
	s := &fasthttp.Server{Handler: handler, StreamRequestBody: true, ReduceMemoryUsage: true,
		ReadTimeout: patience, NoDefaultDate: true}
	served = make(chan error, 1)
	go func() {
		served <- s.ServeConn(c)
		c.Close()
	}()
	return served
}
