// Package limiter answers: may this tenant send this now?
//
// It owns the keys: who a credential belongs to, by the SHA-256 digest of the
// whole key text, so that no key is ever in memory longer than its request.
//
// A Tenants value never changes but for the counts of requests under way; it may
// be used from any goroutine.
//
// It never logs, stores or returns the text of a key.
package limiter

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync/atomic"
	"time"

	"tracegate/configs"
)

// Tenant is who pays: its name and what it may use.
type Tenant struct {
	Name            string
	MaxTokens       int64 // cap on generation; 0 = none
	MaxPromptTokens int   // longest estimated prompt; 0 = no cap
	TrustRequestID  bool  // may choose request ids and continue traces
	Priority        int   // in a queue, lower first
	Weight          int   // shares a queue among tenants of one priority

	models   map[string]bool // public model names; nil = all
	inflight atomic.Int64
}

// Begin counts a request of the tenant in; its owner calls End exactly once.
func (t *Tenant) Begin() { t.inflight.Add(1) }

// End counts it out.
func (t *Tenant) End() { t.inflight.Add(-1) }

// Inflight is how many requests of the tenant are under way.
func (t *Tenant) Inflight() int64 { return t.inflight.Load() }

// MayUse says whether the tenant may use a model, by its public name.
func (t *Tenant) MayUse(model string) bool { return t.models == nil || t.models[model] }

// Key is one credential of a tenant.
type Key struct {
	ID      string // public; default the digest's first 12 digits; empty for anonymous requests
	Tenant  *Tenant
	expires time.Time // zero = never
}

// Reasons why a credential is refused.
var (
	ErrNoKey      = errors.New("no API key was sent")
	ErrUnknownKey = errors.New("the API key is not known")
	ErrExpiredKey = errors.New("the API key has expired")
)

type digest = [sha256.Size]byte

// Tenants is every key of one configuration.
type Tenants struct {
	keys      map[digest]*Key
	tenants   []*Tenant
	anonymous *Key // nil = requests without a key are refused
}

// AnonymousTenant is the name that requests without a key are counted under.
const AnonymousTenant = "anonymous"

// NewTenants reads the keys of a checked configuration.
func NewTenants(cfg *configs.Config) *Tenants {
	t := &Tenants{keys: map[digest]*Key{}}
	for i := range cfg.Tenants {
		spec := &cfg.Tenants[i]
		tenant := newTenant(cfg, spec.Name, &spec.Grants)
		t.tenants = append(t.tenants, tenant)
		for _, k := range spec.Keys {
			t.keys[digestOf(k.SHA256)] = &Key{ID: k.ID, Tenant: tenant, expires: k.Expires}
		}
	}
	if cfg.Anonymous.Allow {
		tenant := newTenant(cfg, AnonymousTenant, &cfg.Anonymous.Grants)
		t.tenants = append(t.tenants, tenant)
		t.anonymous = &Key{Tenant: tenant}
	}
	return t
}

// newTenant resolves the list of models, which may name aliases, to public names.
func newTenant(cfg *configs.Config, name string, g *configs.Grants) *Tenant {
	t := &Tenant{Name: name, MaxTokens: g.MaxTokens, MaxPromptTokens: g.MaxPromptTokens, TrustRequestID: g.TrustRequestID,
		Priority: g.Priority, Weight: g.Weight}
	if g.Models == nil {
		return t
	}
	t.models = map[string]bool{}
	for i := range cfg.Models {
		if m := cfg.Models[i].Name; g.Allows(cfg, m) {
			t.models[m] = true
		}
	}
	return t
}

func digestOf(hexDigits string) (d digest) {
	if n, err := hex.Decode(d[:], []byte(hexDigits)); err != nil || n != len(d) {
		panic("BUG: an unchecked key digest reached the limiter")
	}
	return d
}

// Lookup finds who a credential belongs to; an empty one is a request without
// a key. It does not allocate. The digest, not the key, is compared, so the
// time it takes says nothing about the key's text.
func (t *Tenants) Lookup(credential []byte, now time.Time) (*Key, error) {
	if len(credential) == 0 {
		if t.anonymous == nil {
			return nil, ErrNoKey
		}
		return t.anonymous, nil
	}
	k := t.keys[sha256.Sum256(credential)]
	switch {
	case k == nil:
		return nil, ErrUnknownKey
	case !k.expires.IsZero() && !now.Before(k.expires):
		return nil, ErrExpiredKey
	default:
		return k, nil
	}
}

// Tenants are all tenants in the order of the file, the anonymous one last.
func (t *Tenants) Tenants() []*Tenant { return t.tenants }
