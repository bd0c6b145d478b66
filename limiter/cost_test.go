package limiter

import (
	"fmt"
	"strings"
	"testing"
)

func TestLookupDoesNotAllocate(t *testing.T) {
	all := tenants(t, fmt.Sprintf("tenants:\n  - {name: team, models: [first], keys: [{sha256: %s}]}\nanonymous: {allow: true}\n",
		digestText(strings.Repeat("k", 200))))
	for name, credential := range map[string]string{
		"a known key": strings.Repeat("k", 200), "an unknown key": "sk-wrong", "no key": "",
	} {
		t.Run(name, func(t *testing.T) {
			bytes := []byte(credential)
			equal(t, "allocations", testing.AllocsPerRun(1000, func() {
				if key, err := all.Lookup(bytes, noon); err == nil {
					key.Tenant.Begin()
					_ = key.Tenant.MayUse("first")
					key.Tenant.End()
				}
			}), 0)
		})
	}
}

func BenchmarkLookup(b *testing.B) {
	var keys strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&keys, "      - {sha256: %s}\n", digestText(fmt.Sprint("sk-", i)))
	}
	all := tenants(b, "tenants:\n  - name: team\n    keys:\n"+keys.String())
	credential := []byte("sk-777")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := all.Lookup(credential, noon); err != nil {
			b.Fatal(err)
		}
	}
}
