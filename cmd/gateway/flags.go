package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// newFlags makes the flag set of a command. Its errors and its help go to stderr.
func newFlags(name, args string, stderr io.Writer) *flag.FlagSet {
	fs := flag.NewFlagSet("gateway "+name, flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprintf(stderr, "usage: gateway %s [flags] %s\n", name, args)
		fs.PrintDefaults()
	}
	return fs
}

// errHelp is not an error: help was asked for.
var errHelp = flag.ErrHelp

// parse reads flags that may stand before and after the arguments, and wants
// exactly n arguments.
func parse(fs *flag.FlagSet, args []string, n int) ([]string, error) {
	var rest []string
	for {
		if err := fs.Parse(args); err != nil {
			if errors.Is(err, errHelp) {
				return nil, errHelp
			}
			return nil, errUsage
		}
		if fs.NArg() == 0 {
			break
		}
		rest = append(rest, fs.Arg(0))
		args = fs.Args()[1:]
	}
	if len(rest) != n {
		fmt.Fprintf(fs.Output(), "%s: %d arguments, want %d\n", fs.Name(), len(rest), n)
		fs.Usage()
		return nil, errUsage
	}
	return rest, nil
}

// list is a flag that may be given more than once.
type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }
