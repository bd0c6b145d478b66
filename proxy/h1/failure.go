package h1

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// ErrPaused says that `until` passed, or Wake was called, before the step was
// done. Nothing is lost: call the same step again with a later `until`.
var ErrPaused = errors.New("paused")

// ErrAborted says that Abort ended the call. The connection is closed.
var ErrAborted = errors.New("aborted")

// Kinds of Error.
const (
	KindConnect        = "connect"         // refused, unreachable, no route
	KindDNS            = "dns"             // the name did not resolve
	KindTLS            = "tls"             // the handshake failed
	KindTimeoutConnect = "timeout_connect" // the operating system gave up connecting
	KindProxy          = "proxy"           // the CONNECT proxy was not reached, or refused
	KindReset          = "reset"           // the connection was reset before an answer
	KindCut            = "cut"             // the connection ended before the answer did
	KindProtocol       = "protocol"        // the answer is not HTTP/1.1 as it should be
)

// Error is a failure on the way to an upstream or back. The text names the
// address and never a header's value or a credential.
type Error struct {
	Kind string // one of the Kind constants
	Verb string // what could not be done: "connect to upstream"
	Addr string // the upstream's host:port, or the proxy's
	Err  error  // the cause; io.ErrUnexpectedEOF is in its chain for a cut
}

func (e *Error) Error() string {
	return "cannot " + e.Verb + " addr=" + e.Addr + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// cause drops the wrapping of package net, whose text repeats the address.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// isDeadline tells a passed deadline from a connection that the kernel gave up
// (ETIMEDOUT also calls itself a timeout, but is final).
func isDeadline(err error) bool {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	var no syscall.Errno
	if errors.As(err, &no) {
		return false
	}
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// isHangup: the peer ended the connection. It is what a server's idle timeout
// looks like to a request that raced it.
func isHangup(err error) bool {
	return err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, io.ErrClosedPipe)
}
