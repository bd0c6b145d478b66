// Command gateway is Tracegate: a streaming gateway for LLM inference that can
// say why it is slow. This package answers: how are the parts put together,
// started and stopped? It also holds the terminal views.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// Exit codes, the same for every command.
const (
	exitFine  = 0
	exitNo    = 1 // the answer is no
	exitUsage = 2 // wrong use
)

// command is one word of the command line.
type command struct {
	name, args, about string
	run               func(args []string, stdout, stderr io.Writer) error
}

var commands = []command{
	{"serve", "--config FILE", "run the gateway", runServe},
	{"demo", "", "run the gateway with two simulated engines on loopback", runDemo},
	{"check", "FILE", "check a configuration and print every problem", runCheck},
	{"explain", "FILE --model M", "say which deployments a request would be sent to, and by which limits", runExplain},
	{"request", "ID", "draw the timeline of a request", runRequest},
	{"version", "", "print version, commit, Go and dependencies", runVersion},
}

// errUsage is wrong use of a command: exit code 2. What was wrong has been said.
var errUsage = errors.New("wrong use")

// errNo is the answer no, which has been said: exit code 1.
var errNo = errors.New("no")

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stderr)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(stdout)
		return exitFine
	case "-version", "--version":
		args = []string{"version"}
	}
	for _, c := range commands {
		if c.name == args[0] {
			return exitCode(c.run(args[1:], stdout, stderr), stderr)
		}
	}
	fmt.Fprintf(stderr, "gateway: there is no command %q\n\n", args[0])
	usage(stderr)
	return exitUsage
}

func exitCode(err error, stderr io.Writer) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitFine
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.Is(err, errNo):
		return exitNo
	default:
		fmt.Fprintf(stderr, "gateway: %v\n", err)
		return exitNo
	}
}

func usage(w io.Writer) {
	fmt.Fprint(w, "Tracegate: a streaming gateway for LLM inference that can say why it is slow\n\n")
	for _, c := range commands {
		fmt.Fprintf(w, "  gateway %-8s %-16s %s\n", c.name, c.args, c.about)
	}
	fmt.Fprint(w, "\ngateway COMMAND -h shows the flags of a command\n")
}
