package configs

import "time"

// Default is the configuration of an empty file: no model, no tenant, and the
// documented value everywhere else.
func Default() *Config {
	return &Config{
		Listen:    "127.0.0.1:4000",
		Admin:     Admin{Listen: "127.0.0.1:4001"},
		Keepalive: 15 * time.Second,
		Timeouts: Timeouts{
			Connect: 2 * time.Second, FirstToken: 120 * time.Second, Idle: 60 * time.Second,
			Total: 10 * time.Minute, WriteStall: 30 * time.Second,
		},
		Retry: Retry{MaxAttempts: 3, BudgetRatio: 0.2, Backoff: 100 * time.Millisecond, SuspectGrace: 2 * time.Second},
		Cooldown: Cooldown{
			AllowedFails: 3, Window: 60 * time.Second, Time: 5 * time.Second, MaxTime: 60 * time.Second,
			MinRequests: 5, ErrorRatio: 0.5, WhenAllCooling: "probe_soonest",
		},
		Limits:    Limits{MaxBody: 64 << 20, MaxHeader: 64 << 10, MaxStreams: 20000, BodyBudget: 1 << 30},
		Anonymous: Anonymous{Grants: Grants{Weight: 1}},
		Timelines: Timelines{
			Store: "sqlite", Dir: "./data", MaxAge: 72 * time.Hour, MaxSize: 20 << 30, Sample: 1, Memory: 20000,
			RedisTTL: 15 * time.Minute,
			VictoriaLogs: VictoriaLogs{
				InsertURL: "http://127.0.0.1:9428", SelectURL: "http://127.0.0.1:9428", Account: "0:0",
			},
		},
		Capture:   "none",
		Telemetry: Telemetry{Metrics: Metrics{Histograms: "classic"}},
		Log:       Log{Level: "info", Format: "json", Requests: true},
		Drain:     Drain{Delay: 15 * time.Second, Timeout: 600 * time.Second},
		Diagnose: Diagnose{
			Window: 60 * time.Second, Baseline: 60 * time.Minute, Every: 5 * time.Second, MinSamples: 20,
		},
	}
}

// prime fills a new element of the tree with its defaults, before the keys that the
// file has for it are read. A deployment starts from the global timeouts, retry and
// cooldown: that is how its overrides work key by key.
func prime(target any, cfg *Config) {
	switch t := target.(type) {
	case *Model:
		t.Routing.Strategy = "least_inflight"
		t.Queue = Queue{MaxWaiting: 200, MaxWait: 30 * time.Second}
	case *Deployment:
		t.Engine, t.Weight, t.Track, t.EngineTopology = "auto", 1, "stable", "plain"
		t.ModelInResponse, t.SystemMessages = "asked", "inline"
		t.Probe.Interval = 5 * time.Second
		t.Timeouts, t.Retry, t.Cooldown = cfg.Timeouts, cfg.Retry, cfg.Cooldown
	case *Canary:
		*t = Canary{MaxTTFTRatio: 1.5, MaxErrorDelta: 0.02, MinRequests: 200, Action: "pause"}
	case *SLO:
		t.Objective = 0.99
	case *Replicas:
		t.Min = 1
	case *AdminKey:
		t.Role = "viewer"
	case *Tenant:
		t.Weight = 1
	case *Budget:
		t.Per = "day"
	case *Redis:
		t.Timeout, t.OnError, t.Replicas, t.ShareState = 50*time.Millisecond, "local", 1, true
	case *OTLP:
		t.Sample, t.Semconv = 0.1, "v1.41"
	}
}
