//go:build unix

package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// terminal tells the width of the output and whether it shows colours.
func terminal(w io.Writer) (width int, color bool) {
	f, ok := w.(*os.File)
	if !ok {
		return plainWidth, false
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return plainWidth, false
	}
	return int(size.Col), os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
