package configs

import (
	"slices"
	"time"
)

// How an answer that nobody wants any more is given up.
const (
	// AbortClose closes the upstream connection; the engine frees the request.
	AbortClose = "close"
	// AbortRequest also posts the request's id to /abort_request, for closing alone takes seconds there.
	AbortRequest = "abort_request"
)

// Profile is what is known about a kind of engine, as plain values.
type Profile struct {
	// Engine is the kind, never "auto".
	Engine string
	// HeadersFirst: a stream's headers come right after validation, before the queue and the prefill.
	HeadersFirst bool
	// Abort is AbortClose or AbortRequest.
	Abort string
	// RequestIDFields names, by dialect, the body field that sets the engine's request id.
	RequestIDFields map[string]string
	// Dialects that it speaks.
	Dialects []string
	// Auth is how it wants its credential.
	Auth string
	// MetricsPath below the base URL; "" = off.
	MetricsPath string
	// HealthPath below the base URL; "" = none.
	HealthPath string
	// HealthTimeout of one probe: SGLang generates a token for it and may take 20 s.
	HealthTimeout time.Duration
	// UsageByOption: usage on chat and completions streams comes only with stream_options.include_usage.
	UsageByOption bool
	// Hosted: a metered service of somebody else.
	Hosted bool
}

// RequestIDField is the body field that sets the engine's request id in this
// dialect; "" = there is none.
func (p Profile) RequestIDField(dialect string) string { return p.RequestIDFields[dialect] }

// profileOf gives the profile of an engine key. "auto" and an unknown one mean vllm.
// The caller owns the result.
func profileOf(engine string) Profile {
	p, ok := profiles[engine]
	if !ok {
		engine = "vllm"
		p = profiles[engine]
	}
	p.Engine = engine
	p.Dialects = slices.Clone(p.Dialects)
	return p
}

// The maps in here are shared by all copies and never written.
var profiles = map[string]Profile{
	"vllm": {
		HeadersFirst: true, Abort: AbortClose,
		RequestIDFields: map[string]string{"responses": "request_id"},
		Dialects:        []string{"chat", "completions", "messages", "responses", "embeddings", "other"},
		Auth:            "bearer", MetricsPath: "/metrics",
		HealthPath: "/health", HealthTimeout: 2 * time.Second, UsageByOption: true,
	},
	"sglang": {
		Abort: AbortRequest,
		RequestIDFields: map[string]string{
			"chat": "rid", "completions": "rid", "messages": "rid", "responses": "request_id",
		},
		Dialects: []string{"chat", "completions", "messages", "responses", "embeddings", "other"},
		Auth:     "bearer", MetricsPath: "/metrics",
		HealthPath: "/health", HealthTimeout: 25 * time.Second, UsageByOption: true,
	},
	"llamacpp": {
		Abort:    AbortClose,
		Dialects: []string{"chat", "completions", "messages", "responses", "embeddings", "other"},
		Auth:     "bearer", HealthPath: "/health", HealthTimeout: 2 * time.Second, UsageByOption: true,
	},
	"anthropic": {
		Abort: AbortClose, Dialects: []string{"messages", "other"}, Auth: "x-api-key", Hosted: true,
	},
	"openai": {
		Abort: AbortClose, Dialects: []string{"chat", "completions", "responses", "embeddings", "other"},
		Auth: "bearer", UsageByOption: true, Hosted: true,
	},
	"newapi": {
		Abort: AbortClose, Dialects: []string{"chat", "completions", "messages", "responses", "embeddings", "other"},
		Auth: "bearer", UsageByOption: true, Hosted: true,
	},
}
