package main

import (
	"bytes"
	"net"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"tracegate/configs"
)

// TestAStartThatFailsLeavesNothing: neither goroutines nor a listener.
func TestAStartThatFailsLeavesNothing(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for name, spoil := range map[string]func(*configs.Config){
		"no upstream":                 func(c *configs.Config) { c.Models[0].Deployments[0].TLS.CA = filepath.Join(t.TempDir(), "none.pem") },
		"the data address is taken":   func(c *configs.Config) { c.Listen = busy.Addr().String() },
		"the admin address is taken":  func(c *configs.Config) { c.Admin.Listen = busy.Addr().String() },
		"the data certificate is bad": func(c *configs.Config) { c.TLS = &configs.ServerTLS{Cert: "none.pem", Key: "none.key"} },
	} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			yaml := "models:\n  - {name: public, deployments: [{name: d1, base_url: \"https://127.0.0.1:1\", tls: {server_name: x}}]}\nanonymous: {allow: true}\ntimelines: {store: memory}\n"
			cfg, problems := configs.Parse("test.yaml", []byte(yaml), nil, "listen=127.0.0.1:0", "admin.listen=127.0.0.1:0")
			if cfg == nil {
				t.Fatal(problems)
			}
			spoil(cfg)
			var stderr bytes.Buffer
			if a, err := start(cfg, &stderr); err == nil {
				a.close()
				t.Fatal("it started")
			}
			if err := goleak.Find(before); err != nil {
				t.Error(err)
			}
		})
	}
}
