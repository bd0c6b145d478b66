package configs

import "time"

// Tenant is a caller.
type Tenant struct {
	// Name of the tenant in metrics, state and timelines.
	Name string `yaml:"name" check:"name"`
	// Keys that belong to it.
	Keys   []Key `yaml:"keys"`
	Grants `yaml:",inline"`
}

// Key is one key of a tenant.
type Key struct {
	// SHA256 is the lower-case hex digest of the whole key text.
	SHA256 string `yaml:"sha256" check:"digest"`
	// ID names the key without revealing it; default the digest's first 12 digits.
	ID string `yaml:"id" check:"name" default:"the digest's first 12 digits"`
	// Expires is when the key stops working, RFC 3339; unset = never.
	Expires time.Time `yaml:"expires"`
}

// Grants is what a caller may do.
type Grants struct {
	// Models that it may use; unset = all, [] = none.
	Models []string `yaml:"models" default:"all"`
	// Limits per minute, at once, and of spending.
	Limits TenantLimits `yaml:"limits"`
	// MaxTokens caps the generation; unset = no cap.
	MaxTokens int64 `yaml:"max_tokens" min:"1" optional:"true"`
	// MaxPromptTokens refuses longer prompts; unset = no cap.
	MaxPromptTokens int `yaml:"max_prompt_tokens" min:"1" optional:"true"`
	// Priority in the queue, lower first.
	Priority int `yaml:"priority" min:"any"`
	// Weight shares the queue among callers of one priority.
	Weight int `yaml:"weight" min:"1" max:"1000000"`
	// TrustRequestID lets the caller set request ids and continue traces.
	TrustRequestID bool `yaml:"trust_request_id"`
}

// Allows reports whether the caller may use the model, given by its name or an alias
// that the list has. cfg resolves aliases.
func (g *Grants) Allows(cfg *Config, model string) bool {
	if g.Models == nil {
		return true
	}
	asked := cfg.Model(model)
	for _, name := range g.Models {
		if name == model || asked != nil && cfg.Model(name) == asked {
			return true
		}
	}
	return false
}

// TenantLimits bound one caller. Unset = no limit.
type TenantLimits struct {
	// RPM is requests per minute: a bucket of so many, refilled so many per minute.
	RPM int64 `yaml:"rpm" min:"1" optional:"true"`
	// TPM is tokens per minute, prompt and generation together.
	TPM int64 `yaml:"tpm" min:"1" optional:"true"`
	// Inflight is requests at once.
	Inflight int `yaml:"inflight" min:"1" optional:"true"`
	// Budget is spending per calendar time in UTC.
	Budget *Budget `yaml:"budget"`
}

// Budget is spending per calendar time in UTC, in the unit of the prices.
type Budget struct {
	// Amount that may be spent.
	Amount float64 `yaml:"amount" above:"0"`
	// Per is the calendar time after which it starts anew.
	Per string `yaml:"per" enum:"day|week|month"`
}

// Anonymous is what a request without a key may do.
type Anonymous struct {
	// Allow: requests without a key belong to the tenant "anonymous".
	Allow  bool `yaml:"allow"`
	Grants `yaml:",inline"`
}
