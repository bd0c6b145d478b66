//go:build !unix

package main

import "io"

// terminal: without a way to ask, the output is taken for a file.
func terminal(io.Writer) (width int, color bool) { return plainWidth, false }
