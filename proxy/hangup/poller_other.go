//go:build !linux

package hangup

import "syscall"

// poller does nothing here: every connection is read ahead.
type poller struct{}

type slotRef struct{}

func (*poller) open() error                     { return nil }
func (*poller) add(*Conn, syscall.RawConn) bool { return false }
func (*poller) drop(*Conn)                      {}
func (*poller) shut()                           {}

// StaleEvents is always 0 here.
func (w *Watcher) StaleEvents() uint64 { return 0 }
