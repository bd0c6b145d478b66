package main

import (
	"fmt"
	"io"

	"tracegate/configs"
)

// runCheck prints every problem of a configuration. Warnings alone are fine.
func runCheck(args []string, stdout, stderr io.Writer) error {
	fs := newFlags("check", "FILE", stdout, stderr)
	var sets list
	fs.Var(&sets, "set", "override `path=value`, as for serve; may be repeated")
	files, err := fs.parse(args, 1)
	if err != nil {
		return err
	}
	cfg, problems := configs.Load(files[0], sets...)
	for _, p := range problems {
		fmt.Fprintln(stdout, p)
	}
	if cfg == nil {
		return errNo
	}
	if len(problems) == 0 {
		fmt.Fprintf(stdout, "%s: fine\n", files[0])
	}
	return nil
}

// load reads a configuration for a command that runs it: warnings are said,
// errors end it.
func load(path string, sets []string, stderr io.Writer) (*configs.Config, error) {
	cfg, problems := configs.Load(path, sets...)
	for _, p := range problems {
		fmt.Fprintln(stderr, p)
	}
	if cfg == nil {
		return nil, errNo
	}
	return cfg, nil
}
