package limiter

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestKeysAreFoundByTheirDigest(t *testing.T) {
	all := tenants(t, fmt.Sprintf(`tenants:
  - name: search
    keys: [{sha256: %s, id: k1}, {sha256: %s}]
    max_tokens: 4096
    max_prompt_tokens: 200000
    trust_request_id: true
  - name: batch
    keys: [{sha256: %s, id: k3}]
`, digestText("sk-1"), digestText("sk-2"), digestText("sk-3")))
	cases := []struct {
		credential, tenant, id string
		err                    error
	}{
		{"sk-1", "search", "k1", nil},
		{"sk-2", "search", digestText("sk-2")[:12], nil},
		{"sk-3", "batch", "k3", nil},
		{"", "", "", ErrNoKey},
		{"sk-4", "", "", ErrUnknownKey},
		{"SK-1", "", "", ErrUnknownKey},
		{"sk-1 ", "", "", ErrUnknownKey},
		{"k1", "", "", ErrUnknownKey},
		{digestText("sk-1"), "", "", ErrUnknownKey},
	}
	for _, c := range cases {
		t.Run(c.credential, func(t *testing.T) {
			key, err := all.Lookup([]byte(c.credential), noon)
			if !errors.Is(err, c.err) || (key == nil) != (c.err != nil) {
				t.Fatalf("got %v, %v; want %v", key, err, c.err)
			}
			if key != nil {
				equal(t, "tenant", key.Tenant.Name, c.tenant)
				equal(t, "id", key.ID, c.id)
			}
		})
	}
	search, _ := all.Lookup([]byte("sk-1"), noon)
	equal(t, "cap on generation", search.Tenant.MaxTokens, 4096)
	equal(t, "cap on prompts", search.Tenant.MaxPromptTokens, 200000)
	equal(t, "may choose ids", search.Tenant.TrustRequestID, true)
	second, _ := all.Lookup([]byte("sk-2"), noon)
	equal(t, "one tenant for both keys", second.Tenant, search.Tenant)
	batch, _ := all.Lookup([]byte("sk-3"), noon)
	equal(t, "no cap", batch.Tenant.MaxTokens, 0)
	equal(t, "no cap on prompts", batch.Tenant.MaxPromptTokens, 0)
	equal(t, "may not choose ids", batch.Tenant.TrustRequestID, false)
}

func TestAKeyExpiresAtItsInstant(t *testing.T) {
	all := tenants(t, fmt.Sprintf("tenants:\n  - {name: team, keys: [{sha256: %s, expires: %s}]}\n",
		digestText("sk-1"), noon.Format(time.RFC3339)))
	for name, c := range map[string]struct {
		now time.Time
		err error
	}{
		"just before":              {noon.Add(-1), nil},
		"at the instant":           {noon, ErrExpiredKey},
		"after":                    {noon.Add(time.Hour), ErrExpiredKey},
		"the same in another zone": {noon.In(time.FixedZone("", 9*3600)), ErrExpiredKey},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := all.Lookup([]byte("sk-1"), c.now)
			if !errors.Is(err, c.err) || (key == nil) != (c.err != nil) {
				t.Errorf("got %v, %v; want %v", key, err, c.err)
			}
		})
	}
}

func TestAnonymousTakesRequestsWithoutAKeyOnly(t *testing.T) {
	all := tenants(t, "anonymous: {allow: true, models: [second], max_tokens: 16, trust_request_id: true}\n")
	key, err := all.Lookup(nil, noon)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "tenant", key.Tenant.Name, "anonymous")
	equal(t, "key id", key.ID, "")
	equal(t, "cap", key.Tenant.MaxTokens, 16)
	equal(t, "trust", key.Tenant.TrustRequestID, true)
	equal(t, "may use second", key.Tenant.MayUse("second"), true)
	equal(t, "may use first", key.Tenant.MayUse("first"), false)
	if _, err := all.Lookup([]byte("sk-wrong"), noon); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("a wrong key where anonymous requests are allowed: %v", err)
	}
}

func TestAnonymousComesLastAndOnlyWhereAllowed(t *testing.T) {
	for _, allow := range []bool{true, false} {
		all := tenants(t, fmt.Sprintf("tenants:\n  - {name: b, keys: [{sha256: %s}]}\n  - {name: a, keys: [{sha256: %s}]}\nanonymous: {allow: %t}\n",
			digestText("sk-1"), digestText("sk-2"), allow))
		got := ""
		for _, tenant := range all.Tenants() {
			got += tenant.Name + " "
		}
		want := "b a "
		if allow {
			want += "anonymous "
		}
		equal(t, "tenants in the order of the file", got, want)
	}
}

func TestModelsThatATenantMayUse(t *testing.T) {
	for _, c := range []struct {
		name, lines   string
		first, second bool
	}{
		{"unset is all", "", true, true},
		{"an empty list is none", "    models: []", false, false},
		{"a list is those", "    models: [second]", false, true},
		{"an alias stands for its model", "    models: [other-name]", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			key, err := oneTenant(t, c.lines).Lookup([]byte("sk-one"), noon)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "first", key.Tenant.MayUse("first"), c.first)
			equal(t, "second", key.Tenant.MayUse("second"), c.second)
		})
	}
}
