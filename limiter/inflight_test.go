package limiter

import (
	"sync"
	"testing"
)

func TestRequestsUnderWayAreCounted(t *testing.T) {
	tenant := oneTenant(t, "").Tenants()[0]
	equal(t, "before", tenant.Inflight(), 0)
	tenant.Begin()
	tenant.Begin()
	equal(t, "two", tenant.Inflight(), 2)
	tenant.End()
	equal(t, "one", tenant.Inflight(), 1)
	tenant.End()
	equal(t, "after", tenant.Inflight(), 0)
}

func TestRequestsAreCountedFromManyGoroutines(t *testing.T) {
	tenant := oneTenant(t, "").Tenants()[0]
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				tenant.Begin()
				if n := tenant.Inflight(); n < 1 || n > 8 {
					t.Errorf("%d requests of 8 goroutines", n)
				}
				tenant.End()
			}
		})
	}
	all.Wait()
	equal(t, "after", tenant.Inflight(), 0)
}
