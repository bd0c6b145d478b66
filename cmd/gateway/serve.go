package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"tracegate/configs"
)

// runServe runs the gateway until a signal.
func runServe(args []string, stdout, stderr io.Writer) error {
	fs := newFlags("serve", "", stdout, stderr)
	config := fs.String("config", "gateway.yaml", "configuration `file`")
	listen := fs.String("listen", "", "data `address`, instead of the file's")
	adminListen := fs.String("admin-listen", "", "admin `address`, instead of the file's")
	var sets list
	fs.Var(&sets, "set", "override `path=value`, such as timeouts.idle=5s; may be repeated")
	if _, err := fs.parse(args, 0); err != nil {
		return err
	}
	if *listen != "" {
		sets = append(sets, "listen="+*listen)
	}
	if *adminListen != "" {
		sets = append(sets, "admin.listen="+*adminListen)
	}
	cfg, _, err := load(*config, sets, stderr)
	if err != nil {
		return err
	}
	return runUntilStopped(cfg, stdout, stderr, func(*app) {})
}

// runUntilStopped runs the gateway until a signal. begun is called after the ready line.
func runUntilStopped(cfg *configs.Config, stdout, stderr io.Writer, begun func(*app)) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	a, err := start(cfg, stderr)
	if err != nil {
		return err
	}
	a.printReady(stdout)
	begun(a)
	return a.untilStopped(signals)
}

func (a *app) printReady(stdout io.Writer) {
	fmt.Fprintf(stdout, "ready data=%s admin=%s\n", a.data.Addr(), a.admin.Addr())
}
