package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// version and commit are set by the linker (see the Makefile).
var (
	version = "dev"
	commit  = "unknown"
)

func runVersion(args []string, stdout, stderr io.Writer) error {
	fs := newFlags("version", "", stdout, stderr)
	if _, err := fs.parse(args, 0); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "tracegate %s\ncommit %s\ngo %s %s/%s\n", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			fmt.Fprintf(stdout, "%s %s\n", d.Path, d.Version)
		}
	}
	return nil
}
