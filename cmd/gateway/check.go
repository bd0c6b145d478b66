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
	_, problems, err := load(files[0], sets, stdout)
	if len(problems) == 0 {
		fmt.Fprintf(stdout, "%s: fine\n", files[0])
	}
	return err
}

// load reads a configuration and says its problems on w. Warnings alone are no error.
func load(path string, sets []string, w io.Writer) (*configs.Config, []configs.Problem, error) {
	cfg, problems := configs.Load(path, sets...)
	for _, p := range problems {
		fmt.Fprintln(w, p)
	}
	if cfg == nil {
		return nil, problems, errNo
	}
	return cfg, problems, nil
}
