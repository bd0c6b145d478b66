package h1

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// closedAddr is an address where nobody listens.
func closedAddr(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	return ln.Addr().String()
}

func TestConnectFailures(t *testing.T) {
	refused := closedAddr(t)
	for _, c := range []struct {
		name, addr, kind, text string
		err                    error
	}{
		{"refused", refused, KindConnect, "cannot connect to upstream addr=" + refused + ": connect: connection refused", nil},
		{"unknown name", "a:1", KindDNS, "cannot connect to upstream addr=a:1: lookup a: no such host", &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "a", IsNotFound: true}}},
		{"slow resolver", "a:1", KindDNS, "cannot connect to upstream addr=a:1: lookup a: timeout", &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "timeout", Name: "a", IsTimeout: true}}},
		{"no route", "a:1", KindConnect, "cannot connect to upstream addr=a:1: connect: no route to host", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}},
		{"kernel gave up", "a:1", KindTimeoutConnect, "cannot connect to upstream addr=a:1: connect: connection timed out", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ETIMEDOUT)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := Target{Addr: c.addr}
			if c.err != nil {
				target.Dial = func(context.Context, string) (net.Conn, error) { return nil, c.err }
			}
			_, _, err := exchange(newPool(t, target), "{}")
			equal(t, "text", wantKind(t, err, c.kind).Error(), c.text)
		})
	}
}

func TestResetBeforeAnAnswer(t *testing.T) {
	up := serve(t, func(c net.Conn, r *bufio.Reader) {
		_, _ = request(r)
		_ = c.(*net.TCPConn).SetLinger(0)
	})
	_, _, err := exchange(newPool(t, Target{Addr: up.addr}), "{}")
	e := wantKind(t, err, KindReset)
	equal(t, "text", e.Error(), "cannot read the answer of upstream addr="+up.addr+": connection reset by peer")
	equal(t, "cause", errors.Is(err, syscall.ECONNRESET), true)
}

// The kernel's own timeout on a connection ends the call: it is not a pause.
func TestKernelTimeoutIsNoPause(t *testing.T) {
	equal(t, "ETIMEDOUT", isDeadline(&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)}), false)
	equal(t, "deadline", isDeadline(&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}), true)
	equal(t, "nil", isDeadline(nil), false)
}

// Errors quote nothing of a head: it may hold anything.
func TestErrorsTellNoHeader(t *testing.T) {
	for _, head := range []string{
		"HTTP/1.1 200 OK\r\nX-Key: secret\x00\r\n\r\n",
		"HTTP/1.1 200 OK\r\nsecret\r\n\r\n",
		"HTTP/1.1 secret\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: secret\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: secret\r\n\r\n",
		"secret",
	} {
		up := serve(t, once(head))
		_, _, err := exchange(newPool(t, Target{Addr: up.addr}), "{}")
		e := wantKind(t, err, KindProtocol)
		if strings.Contains(e.Error(), "secret") {
			t.Errorf("%q: %v", head, e)
		}
	}
}

func TestUnusableAddress(t *testing.T) {
	if _, err := NewPool(Target{Name: "qwen-a", Addr: "upstream"}); err == nil ||
		err.Error() != "cannot reach deployment=qwen-a: cannot use upstream addr=upstream: address upstream: missing port in address" {
		t.Errorf("error: %v", err)
	}
}
