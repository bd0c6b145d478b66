// Package configs answers: what did the operator ask for, and is it sane?
//
// It owns the configuration tree, its defaults, the strict reading of the YAML
// file, the checks with their positions, and the engine profiles as plain values.
//
// Load and Parse may be called from any goroutine. A *Config that they return is
// never written again: every goroutine may read it, and a reload makes a new one.
//
// It never opens a network connection, never logs, and never shows a secret:
// only Reveal gives the text of a Secret or a URL.
package configs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

//go:generate go run ./docgen

// maxFile is the size limit of a configuration file in bytes.
const maxFile = 4 << 20

// Config is the whole configuration, in the order of the YAML file. After Load
// every value is effective: defaults are filled in and overrides are merged.
type Config struct {
	// Listen is the address of the data plane, host:port. Port 0 lets the system choose.
	Listen string `yaml:"listen" check:"address"`
	// Admin is the listener for metrics, state, timelines and operator actions.
	Admin Admin `yaml:"admin"`
	// TLS turns the data listener to HTTPS; off unless set.
	TLS *ServerTLS `yaml:"tls"`
	// Models are the names that clients ask for, each with the deployments that serve it.
	Models []Model `yaml:"models"`
	// Timeouts bound the phases of a request. A deployment may override single ones.
	Timeouts Timeouts `yaml:"timeouts"`
	// Retry says how often and how soon a failed attempt is followed by another.
	Retry Retry `yaml:"retry"`
	// Cooldown says when a failing deployment is left alone and for how long.
	Cooldown Cooldown `yaml:"cooldown"`
	// Keepalive is the silence after which a streamed answer gets a sign of life in its dialect; 0 = never.
	Keepalive time.Duration `yaml:"keepalive"`
	// Limits bound what the process accepts at once.
	Limits Limits `yaml:"limits"`
	// Tenants are the callers, known by the digests of their keys.
	Tenants []Tenant `yaml:"tenants"`
	// Anonymous is what a request without a key may do.
	Anonymous Anonymous `yaml:"anonymous"`
	// Redis is what replicas share; off unless set.
	Redis *Redis `yaml:"redis"`
	// Timelines says where the timelines of finished requests are kept.
	Timelines Timelines `yaml:"timelines"`
	// Capture says what is kept of prompts and answers. Nothing is kept unless asked for.
	Capture string `yaml:"capture" enum:"none|hash|full"`
	// Telemetry says what leaves the process for other observers.
	Telemetry Telemetry `yaml:"telemetry"`
	// Log is the process's own log on stderr.
	Log Log `yaml:"log"`
	// Drain is how the process stops.
	Drain Drain `yaml:"drain"`
	// Diagnose is how findings are looked for.
	Diagnose Diagnose `yaml:"diagnose"`

	// written has the position of every key that the file or --set named.
	written map[string]mark
	file    string
}

// Load reads and checks the file. sets are overrides of the form path=value, applied
// before the checks. The problems are sorted by position, errors and warnings
// together; the Config is nil if one of them is an error.
func Load(path string, sets ...string) (*Config, []Problem) {
	data, err := readFile(path, maxFile)
	if err != nil {
		return nil, []Problem{{File: path, Message: err.Error()}}
	}
	return Parse(path, data, os.LookupEnv, sets...)
}

// Parse is Load for bytes in memory. name is shown in problems and its directory is
// the base of relative file names; env looks up ${env:NAME}, nil knows none.
func Parse(name string, data []byte, env func(string) (string, bool), sets ...string) (*Config, []Problem) {
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	d := &decoder{file: name, dir: filepath.Dir(name), env: env, written: map[string]mark{}, bad: map[string]bool{}}
	cfg := Default()
	cfg.file, cfg.written = name, d.written
	if root := d.document(data); root != nil {
		root = d.override(root, sets)
		d.root(root, cfg)
		v := &validator{cfg: cfg, d: d}
		v.resolve()
		v.validate()
		for _, p := range pending(cfg) {
			if !d.bad[p.Path] {
				d.report(p)
			}
		}
	}
	problems := sorted(d.problems)
	if hasErrors(problems) {
		return nil, problems
	}
	return cfg, problems
}

// Model finds a model by its name or one of its aliases; nil if there is none.
func (c *Config) Model(name string) *Model {
	for i := range c.Models {
		m := &c.Models[i]
		if m.Name == name || slices.Contains(m.Aliases, name) {
			return m
		}
	}
	return nil
}

func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read file %s: %w", path, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("cannot read file %s: it is larger than %s", path, formatSize(limit))
	}
	return data, nil
}
