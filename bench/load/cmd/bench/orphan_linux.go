package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent ends the child when the thread that started it ends, however that happens.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
