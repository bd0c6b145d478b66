//go:build unix

package load

import "syscall"

func writeOnce(fd int, b []byte) (int, error) { return syscall.Write(fd, b) }
