package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"text/template"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/configs"
)

// demo.yaml is the configuration of the demo; the engines' addresses are filled in.
//
//go:embed demo.yaml
var demoConfig string

// try is printed below the ready line: what a person can do next.
const try = `
Try, in another terminal:

  curl -sN http://{{.Data}}/v1/chat/completions -H 'authorization: Bearer sk-demo' -H 'x-request-id: my-first-request' -d '{"model":"demo","stream":true,"messages":[{"role":"user","content":"Hello"}]}'
  {{.Gateway}} request my-first-request{{.Admin}}
  ANTHROPIC_BASE_URL=http://{{.Data}} ANTHROPIC_AUTH_TOKEN=sk-demo ANTHROPIC_MODEL=demo claude -p 'Say hello'

Ctrl-C ends it.
`

// runDemo runs the gateway before two simulated engines, without a file.
func runDemo(args []string, stdout, stderr io.Writer) error {
	fs := newFlags("demo", "", stdout, stderr)
	listen := fs.String("listen", configs.Default().Listen, "data `address`")
	adminListen := fs.String("admin-listen", configs.Default().Admin.Listen, "admin `address`")
	if _, err := fs.parse(args, 0); err != nil {
		return err
	}
	var engines []string
	for i := range 2 {
		e := fakeengine.New(fakeengine.Options{
			Model: "demo", UsageDetails: true, Seed: uint64(i + 1), DefaultTokens: 120,
			StepBase: 20 * time.Millisecond, PrefillRate: 8000,
		})
		addr, err := e.Start()
		if err != nil {
			return fmt.Errorf("cannot start a simulated engine: %w", err)
		}
		defer e.Close()
		engines = append(engines, addr)
	}
	cfg, err := demoConfiguration(engines, *listen, *adminListen)
	if err != nil {
		return err
	}
	err = runUntilStopped(cfg, stdout, stderr, func(a *app) { printTry(stdout, a.data.Addr().String(), a.admin.Addr().String()) })
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w\n(is another one running? --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 takes free ports)", err)
	}
	return err
}

func demoConfiguration(engines []string, listen, adminListen string) (*configs.Config, error) {
	yaml, err := demoYAML(engines)
	if err != nil {
		return nil, err
	}
	cfg, problems := configs.Parse("demo.yaml", yaml, os.LookupEnv, "listen="+listen, "admin.listen="+adminListen)
	for _, p := range problems {
		if !p.Warning {
			return nil, fmt.Errorf("cannot run the demo: %s", p)
		}
	}
	return cfg, nil
}

// demoYAML fills the engines' addresses into the demo's configuration.
func demoYAML(engines []string) ([]byte, error) {
	var yaml bytes.Buffer
	err := template.Must(template.New("demo.yaml").Parse(demoConfig)).Execute(&yaml, engines)
	return yaml.Bytes(), err
}

// printTry prints the commands to try. The one that asks the admin listener names
// it, unless it would be found without.
func printTry(stdout io.Writer, data, admin string) {
	flag := ""
	if url := "http://" + admin; url != adminURL(adminBase()) {
		flag = " --admin " + url
	}
	t := template.Must(template.New("try").Parse(try))
	_ = t.Execute(stdout, map[string]string{ // a closed stdout is no reason to stop
		"Data": data, "Gateway": os.Args[0], "Admin": flag,
	})
}
