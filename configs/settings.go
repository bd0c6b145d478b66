package configs

import (
	"math"
	"time"
)

// Admin is the admin listener.
type Admin struct {
	// Listen is its address, host:port.
	Listen string `yaml:"listen" check:"address"`
	// Keys are Bearer keys. None are needed while the listener is on loopback; once there is one, every call needs one.
	Keys []AdminKey `yaml:"keys"`
	// TLS turns the admin listener to HTTPS; off unless set.
	TLS *ServerTLS `yaml:"tls"`
}

// AdminKey is one key of the admin API.
type AdminKey struct {
	// Name tells the readers of this file whose key it is.
	Name string `yaml:"name" check:"name"`
	// SHA256 is the lower-case hex digest of the whole key text.
	SHA256 string `yaml:"sha256" check:"digest"`
	// Role: a viewer reads, an operator also acts.
	Role string `yaml:"role" enum:"viewer|operator"`
}

// ServerTLS is the certificate of a listener.
type ServerTLS struct {
	// Cert is a PEM file with the certificate chain.
	Cert string `yaml:"cert" check:"file"`
	// Key is a PEM file with the private key.
	Key string `yaml:"key" check:"file"`
	// ClientCA is a PEM file; with it every client needs a certificate signed by one of its roots.
	ClientCA string `yaml:"client_ca" check:"file"`
}

// Timeouts bound the phases of a request. 0 = no limit.
type Timeouts struct {
	// Connect bounds name look-up, TCP, proxy and TLS together.
	Connect time.Duration `yaml:"connect"`
	// FirstToken bounds one attempt from its dispatch to its first content event; streams only.
	FirstToken time.Duration `yaml:"first_token"`
	// FirstTokenPer1kTokens is added to first_token for every 1000 estimated prompt tokens.
	FirstTokenPer1kTokens time.Duration `yaml:"first_token_per_1k_tokens"`
	// Idle bounds the silence between two content events.
	Idle time.Duration `yaml:"idle"`
	// Total bounds the whole client request over all attempts.
	Total time.Duration `yaml:"total"`
	// WriteStall bounds how long the client's socket may accept no byte.
	WriteStall time.Duration `yaml:"write_stall"`
}

// FirstTokenFor is the first-token limit of a prompt of so many estimated tokens;
// 0 = no limit. It saturates instead of overflowing.
func (t Timeouts) FirstTokenFor(tokens int) time.Duration {
	if t.FirstToken == 0 || t.FirstTokenPer1kTokens == 0 || tokens <= 0 {
		return t.FirstToken
	}
	extra := float64(t.FirstTokenPer1kTokens) * (float64(tokens) / 1000)
	if extra >= float64(math.MaxInt64-t.FirstToken) {
		return math.MaxInt64
	}
	return t.FirstToken + time.Duration(extra)
}

// Retry is how often and how soon an attempt is followed by another.
type Retry struct {
	// MaxAttempts is the most attempts of one request, the first included.
	MaxAttempts int `yaml:"max_attempts" min:"1" max:"100"`
	// BudgetRatio bounds attempts after the first over requests of the model in the last 10 s, with a floor of 10.
	BudgetRatio float64 `yaml:"budget_ratio" max:"100"`
	// Backoff before the same deployment is tried again; it doubles.
	Backoff time.Duration `yaml:"backoff"`
	// SuspectGrace is how long open streams live on when their deployment refuses connects.
	SuspectGrace time.Duration `yaml:"suspect_grace"`
}

// Cooldown is when a failing deployment is left alone.
type Cooldown struct {
	// AllowedFails is the number of faults within window from which the gate may open.
	AllowedFails int `yaml:"allowed_fails" min:"1"`
	// Window in which faults are counted.
	Window time.Duration `yaml:"window" above:"0"`
	// Time of the first cooldown; it doubles up to max_time.
	Time time.Duration `yaml:"time" above:"0"`
	// MaxTime is the longest cooldown; without this key it is never shorter than time.
	MaxTime time.Duration `yaml:"max_time" above:"0"`
	// MinRequests is the number from which error_ratio is judged.
	MinRequests int `yaml:"min_requests" min:"1"`
	// ErrorRatio is the share of faults in window that opens the gate.
	ErrorRatio float64 `yaml:"error_ratio" above:"0" max:"1"`
	// WhenAllCooling: probe the one that is due soonest, fail at once, or wait.
	WhenAllCooling string `yaml:"when_all_cooling" enum:"probe_soonest|fail|wait"`
}

// Limits bound what the process accepts at once.
type Limits struct {
	// MaxBody is the largest request body.
	MaxBody int64 `yaml:"max_body" unit:"size" min:"1"`
	// MaxHeader is the largest request head.
	MaxHeader int64 `yaml:"max_header" unit:"size" min:"1024"`
	// MaxStreams is the number of requests in progress at once.
	MaxStreams int `yaml:"max_streams" min:"1"`
	// BodyBudget is the memory for request bodies held at once; without this key it is never smaller than max_body.
	BodyBudget int64 `yaml:"body_budget" unit:"size" min:"1"`
}

// Redis is what replicas share.
type Redis struct {
	// URL: redis://, rediss:// for TLS; a cluster by further addr= query values.
	URL URL `yaml:"url"`
	// Sentinel instead of url.
	Sentinel *Sentinel `yaml:"sentinel"`
	// Timeout of one call.
	Timeout time.Duration `yaml:"timeout" above:"0"`
	// OnError: each replica limits alone, admit everything, or refuse with 503.
	OnError string `yaml:"on_error" enum:"local|open|closed"`
	// Replicas is the number of gateways; the local limiter's share of a limit is 1/replicas.
	Replicas int `yaml:"replicas" min:"1"`
	// ShareState exchanges cooldown hints and running requests.
	ShareState bool `yaml:"share_state"`
}

// Sentinel finds a Redis master.
type Sentinel struct {
	// Master is its name.
	Master string `yaml:"master"`
	// Addrs are the sentinels, host:port.
	Addrs []string `yaml:"addrs" check:"address"`
}

// Timelines is where finished timelines are kept.
type Timelines struct {
	// Store: embedded, a fleet's store, or only the ring in memory.
	Store string `yaml:"store" enum:"sqlite|victorialogs|memory"`
	// Dir is the directory of the embedded store, relative to the working directory.
	Dir string `yaml:"dir"`
	// MaxAge is the age at which a timeline is deleted.
	MaxAge time.Duration `yaml:"max_age" above:"0"`
	// MaxSize is the size of the embedded store.
	MaxSize int64 `yaml:"max_size" unit:"size" min:"1"`
	// Sample is the share of ordinary ones kept on disk; errors and slow ones always are.
	Sample float64 `yaml:"sample" max:"1"`
	// Memory is the number of newest finished ones in the ring.
	Memory int `yaml:"memory" min:"1" max:"10000000"`
	// RedisTTL: with Redis, running and newest timelines are found from any replica for so long.
	RedisTTL time.Duration `yaml:"redis_ttl" above:"0"`
	// VictoriaLogs is used with store victorialogs.
	VictoriaLogs VictoriaLogs `yaml:"victorialogs"`
}

// VictoriaLogs is a fleet's store of timelines.
type VictoriaLogs struct {
	// InsertURL takes the writes.
	InsertURL URL `yaml:"insert_url"`
	// SelectURL takes the queries.
	SelectURL URL `yaml:"select_url"`
	// Account is two numbers, account:project.
	Account string `yaml:"account"`
}

// Telemetry is what leaves the process for other observers.
type Telemetry struct {
	// OTLP sends spans; off unless set.
	OTLP *OTLP `yaml:"otlp"`
	// Metrics is the shape of /metrics.
	Metrics Metrics `yaml:"metrics"`
}

// OTLP sends spans over HTTP.
type OTLP struct {
	// Endpoint is the collector's base URL.
	Endpoint URL `yaml:"endpoint"`
	// Sample is the share of requests with a span.
	Sample float64 `yaml:"sample" max:"1"`
	// Semconv is the version of the semantic conventions.
	Semconv string `yaml:"semconv" enum:"v1.41"`
}

// Metrics is the shape of /metrics.
type Metrics struct {
	// Histograms with fixed buckets, native ones, or both.
	Histograms string `yaml:"histograms" enum:"classic|native|both"`
	// LegacyMS adds llm_ttft_ms and llm_tbt_ms.
	LegacyMS bool `yaml:"legacy_ms"`
}

// Log is the process's own log.
type Log struct {
	// Level from which lines are written.
	Level string `yaml:"level" enum:"debug|info|warn|error"`
	// Format of a line.
	Format string `yaml:"format" enum:"json|text"`
	// Requests writes one line per finished request.
	Requests bool `yaml:"requests"`
}

// Drain is how the process stops.
type Drain struct {
	// Delay: requests are still served while readiness fails.
	Delay time.Duration `yaml:"delay"`
	// Timeout for the running requests; after it they are cut.
	Timeout time.Duration `yaml:"timeout"`
}

// Diagnose is how findings are looked for.
type Diagnose struct {
	// Window is the time that is judged.
	Window time.Duration `yaml:"window" above:"0"`
	// Baseline is the time that it is compared with.
	Baseline time.Duration `yaml:"baseline" above:"0"`
	// Every is the pace of judging and of scraping the engines' metrics.
	Every time.Duration `yaml:"every" above:"0"`
	// MinSamples is how many a window needs before anything is said about it.
	MinSamples int `yaml:"min_samples" min:"1"`
	// TreesDir has further trees; none unless set.
	TreesDir string `yaml:"trees_dir" check:"dir"`
	// Webhook gets findings; off unless set.
	Webhook Webhook `yaml:"webhook"`
}

// Webhook gets findings as POST.
type Webhook struct {
	// URL that is called; empty = off. It is treated as a secret, for many carry their credential in the path.
	URL Secret `yaml:"url"`
	// Secret signs the body.
	Secret Secret `yaml:"secret"`
}
