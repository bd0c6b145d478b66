package configs

import (
	"net/url"
	"slices"
	"time"
)

// Model is a public name and the deployments that serve it.
type Model struct {
	// Name is what clients ask for. Names of models, aliases and deployments are unique in the file.
	Name string `yaml:"name" check:"name"`
	// Aliases are further names for the same model.
	Aliases []string `yaml:"aliases" check:"name"`
	// Routing says how one of the deployments is chosen.
	Routing Routing `yaml:"routing"`
	// Deployments are the upstreams that serve the model; at least one.
	Deployments []Deployment `yaml:"deployments"`
	// Fallbacks are other models, tried in this order when no deployment here can answer.
	Fallbacks []string `yaml:"fallbacks"`
	// ContextFallbacks are other models for prompts that are too long here, in order.
	ContextFallbacks []string `yaml:"context_fallbacks"`
	// LongContext sends long prompts to another model before anything is tried.
	LongContext *LongContext `yaml:"long_context"`
	// Canary judges the deployments with track canary against the stable ones.
	Canary *Canary `yaml:"canary"`
	// SLO is the promise that findings and burn rates are measured against.
	SLO *SLO `yaml:"slo"`
	// MaxTokens caps the generation. It is also the value set when the client sends none (a Messages upstream needs one and gets 8192 without this key). Unset = no cap.
	MaxTokens int64 `yaml:"max_tokens" min:"1" optional:"true"`
	// Queue is where requests wait while every deployment is full.
	Queue Queue `yaml:"queue"`
}

// Routing is how a deployment is chosen.
type Routing struct {
	// Strategy is the rule of choice among the deployments that can serve the request.
	Strategy string `yaml:"strategy" enum:"weighted_random|round_robin|least_inflight|least_usage|lowest_latency|prefix_affinity|lowest_cost"`
}

// Deployment is one base URL and the model that it serves.
type Deployment struct {
	// Name of the deployment in answers, metrics, state and timelines.
	Name string `yaml:"name" check:"name"`
	// BaseURL is the upstream's address without /v1; a trailing /v1 is accepted and folded. No query, fragment or user.
	BaseURL string `yaml:"base_url"`
	// Engine is the kind of upstream; it decides the defaults of the keys below. auto means vllm in this version.
	Engine string `yaml:"engine" enum:"auto|vllm|sglang|llamacpp|anthropic|openai|newapi"`
	// Model is the name that the upstream knows; default the model's own name.
	Model string `yaml:"model" default:"the model's name"`
	// APIKey is our credential there. Write ${env:NAME} or ${file:/path} to keep it out of the file.
	APIKey Secret `yaml:"api_key"`
	// Auth says how the credential travels. passthrough sends the client's own, none sends nothing. Default bearer; x-api-key for anthropic.
	Auth string `yaml:"auth" enum:"bearer|x-api-key|passthrough|none" default:"by engine"`
	// Dialects is what the upstream speaks; default by engine. A list without embeddings and other settles the four conversational dialects and leaves those two as the engine has them.
	Dialects []string `yaml:"dialects" enum:"chat|completions|messages|responses|embeddings|other" default:"by engine"`
	// Weight is the share among the deployments of the model; 0 = no requests.
	Weight int `yaml:"weight" max:"1000000"`
	// Track marks a deployment on trial.
	Track string `yaml:"track" enum:"stable|canary"`
	// MaxInflight is our cap on requests sent at once; unset = none, the engine queues.
	MaxInflight int `yaml:"max_inflight" min:"1" optional:"true"`
	// MaxNumSeqs is what the engine was started with, as evidence; unset = inferred from its plateau.
	MaxNumSeqs int `yaml:"max_num_seqs" min:"1" optional:"true"`
	// EngineTopology is the shape of the engine, as evidence.
	EngineTopology string `yaml:"engine_topology" enum:"plain|moe|pd"`
	// Replicas is the declared range of the autoscaler, if there is one.
	Replicas *Replicas `yaml:"replicas"`
	// MaxPromptTokens: requests that are estimated longer go elsewhere; unset = no cap.
	MaxPromptTokens int `yaml:"max_prompt_tokens" min:"1" optional:"true"`
	// Price per million tokens, without a currency.
	Price *Price `yaml:"price"`
	// Probe is the health check.
	Probe Probe `yaml:"probe"`
	// ModelInResponse is the model's name in answers: the one asked for, or the upstream's.
	ModelInResponse string `yaml:"model_in_response" enum:"asked|upstream"`
	// MetricsURL is where the engine's metrics are; default base_url + /metrics for vllm and sglang, otherwise off.
	MetricsURL URL `yaml:"metrics_url" default:"by engine"`
	// GPUs says which GPU series belong to this deployment.
	GPUs *GPUs `yaml:"gpus"`
	// SystemMessages says what becomes of system text in mid-conversation, for templates that refuse it.
	SystemMessages string `yaml:"system_messages" enum:"inline|fold|hoist"`
	// StripWorkspaceMetadata removes Codex's headers and metadata about the workspace; default true for hosted engines.
	StripWorkspaceMetadata bool `yaml:"strip_workspace_metadata" default:"by engine"`
	// StripBillingBlock removes Claude Code's per-conversation system line; default true for vllm, sglang and llamacpp.
	StripBillingBlock bool `yaml:"strip_billing_block" default:"by engine"`
	// TLS is for https base URLs; the system's roots are used without it.
	TLS *ClientTLS `yaml:"tls"`
	// ProxyURL is an HTTP CONNECT proxy on the way to the upstream; default HTTPS_PROXY and NO_PROXY.
	ProxyURL URL `yaml:"proxy_url" default:"HTTPS_PROXY"`
	// DrainOnClientAbort is how long a metered upstream is read on after the client left, to get its usage.
	DrainOnClientAbort time.Duration `yaml:"drain_on_client_abort"`
	// Timeouts override the global ones, key by key.
	Timeouts Timeouts `yaml:"timeouts"`
	// Retry overrides the global one, key by key: max_attempts bounds the tries of one request here,
	// the others apply after a failure here.
	Retry Retry `yaml:"retry"`
	// Cooldown overrides the global one, key by key.
	Cooldown Cooldown `yaml:"cooldown"`

	// URL is the folded BaseURL: no trailing slash and no trailing /v1.
	URL *url.URL `yaml:"-"`
	// Profile is what is known about the engine.
	Profile Profile `yaml:"-"`
}

// Speaks reports whether the upstream takes the dialect as it is.
func (d *Deployment) Speaks(dialect string) bool {
	return slices.Contains(d.Dialects, dialect)
}

// Replicas is a range of replicas.
type Replicas struct {
	// Min is the smallest number of replicas.
	Min int `yaml:"min"`
	// Max is the largest number of replicas; default min.
	Max int `yaml:"max" default:"min"`
}

// Price is per million tokens, without a currency.
type Price struct {
	// Input tokens that were not cached.
	Input float64 `yaml:"input"`
	// Output tokens.
	Output float64 `yaml:"output"`
	// CacheRead is for input tokens read from the cache; default input.
	CacheRead float64 `yaml:"cache_read" default:"input"`
	// CacheWrite is for input tokens written to the cache; default input.
	CacheWrite float64 `yaml:"cache_write" default:"input"`
	// Reasoning tokens; default output.
	Reasoning float64 `yaml:"reasoning" default:"output"`
}

// Probe is the health check of a deployment.
type Probe struct {
	// Interval between two probes; 0 = none. Metrics are scraped every diagnose.every.
	Interval time.Duration `yaml:"interval"`
}

// GPUs maps GPU series to a deployment.
type GPUs struct {
	// DCGMURL is the metrics page of a dcgm-exporter.
	DCGMURL URL `yaml:"dcgm_url"`
	// Match has the labels that a series must carry, for example pod or gpu.
	Match map[string]string `yaml:"match"`
}

// ClientTLS is how the gateway verifies an https upstream.
type ClientTLS struct {
	// CA is a PEM file of roots; the system's roots without it.
	CA string `yaml:"ca" check:"file"`
	// ServerName replaces the host of base_url in the certificate check.
	ServerName string `yaml:"server_name"`
	// Insecure turns the certificate check off.
	Insecure bool `yaml:"insecure"`
}

// LongContext splits by prompt length.
type LongContext struct {
	// OverTokens: a prompt estimated longer goes to the other model.
	OverTokens int `yaml:"over_tokens" min:"1"`
	// Model is the one that takes the long prompts.
	Model string `yaml:"model"`
}

// Canary is the trial of the deployments with track canary.
type Canary struct {
	// MaxTTFTRatio is the canary's median TTFT over the stable one's that is still accepted.
	MaxTTFTRatio float64 `yaml:"max_ttft_ratio" above:"0"`
	// MaxErrorDelta is the accepted difference of the error shares.
	MaxErrorDelta float64 `yaml:"max_error_delta" max:"1"`
	// MinRequests is how many each side needs before there is a verdict.
	MinRequests int `yaml:"min_requests" min:"1"`
	// Action after a bad verdict.
	Action string `yaml:"action" enum:"pause|rollback|none"`
}

// SLO is a promise about latency.
type SLO struct {
	// TTFT that a good request stays within; unset = not judged.
	TTFT time.Duration `yaml:"ttft" default:"none"`
	// TBT that a good request's gaps stay within; unset = not judged.
	TBT time.Duration `yaml:"tbt" default:"none"`
	// Objective is the share of good requests, between 0 and 1.
	Objective float64 `yaml:"objective" above:"0" below:"1"`
}

// Queue is the waiting room of a model.
type Queue struct {
	// MaxWaiting is how many requests may wait; 0 = nobody waits.
	MaxWaiting int `yaml:"max_waiting"`
	// MaxWait is how long one may wait; 0 = nobody waits.
	MaxWait time.Duration `yaml:"max_wait"`
}
