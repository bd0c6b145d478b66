package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent ends the child when the thread that started it ends, however that happens.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// openFiles is how many files and connections a process may have open.
func openFiles() (uint64, error) {
	var l syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
	return uint64(l.Cur), err
}
