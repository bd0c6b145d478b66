//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package h1

import "syscall"

// Without the unix calls a connection is read through net.Conn, with a buffer
// held while it waits, and its liveness is judged by its idle time alone.

func (l *link) bind() {}

func (l *link) alive() bool { return true }

func (l *link) fillSocket(*inbox) (int, error) { panic("BUG: a link without a descriptor") }

func (l *link) waitSocket() error { panic("BUG: a link without a descriptor") }

func (u *underTLS) poll(syscall.RawConn) {}
