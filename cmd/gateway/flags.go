package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// flags is the flag set of a command. Help that was asked for goes to stdout,
// what was wrong to stderr.
type flags struct {
	*flag.FlagSet
	args           string // what stands besides the flags, for the help
	stdout, stderr io.Writer
}

func newFlags(name, args string, stdout, stderr io.Writer) *flags {
	fs := &flags{FlagSet: flag.NewFlagSet("gateway "+name, flag.ContinueOnError), args: args, stdout: stdout, stderr: stderr}
	fs.SetOutput(io.Discard) // parse says what was wrong
	return fs
}

// parse reads flags that may stand before and after the arguments, and wants
// exactly n arguments, none of them empty.
func (fs *flags) parse(args []string, n int) ([]string, error) {
	var rest []string
	for {
		err := fs.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			fs.help(fs.stdout)
			return nil, err
		}
		if err != nil {
			return nil, fs.wrong(err.Error())
		}
		if fs.NArg() == 0 {
			break
		}
		rest = append(rest, fs.Arg(0))
		args = fs.Args()[1:]
	}
	if len(rest) != n {
		return nil, fs.wrong(fmt.Sprintf("%d arguments, want %d", len(rest), n))
	}
	if slices.Contains(rest, "") {
		return nil, fs.wrong("an argument is empty")
	}
	return rest, nil
}

// wrong says what was wrong with the use of the command.
func (fs *flags) wrong(what string) error {
	fmt.Fprintf(fs.stderr, "%s: %s\n", fs.Name(), what)
	fs.help(fs.stderr)
	return errUsage
}

func (fs *flags) help(w io.Writer) {
	line := "usage: " + fs.Name() + " [flags] " + fs.args
	fmt.Fprintln(w, strings.TrimSpace(line))
	fs.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		fmt.Fprintln(w, strings.TrimRight("  --"+f.Name+" "+value, " "))
		if f.DefValue != "" && f.DefValue != "false" {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintln(w, "        "+usage)
	})
}

// list is a flag that may be given more than once.
type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }
