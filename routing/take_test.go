package routing

import (
	"sync"
	"sync/atomic"
	"testing"

	"tracegate/trace"
)

// However many ask at once, a deployment never has more than max_inflight.
func TestMaxInflightHoldsUnderContention(t *testing.T) {
	const most = 4
	m := model(t, table(t, nil, "max_inflight: 4"))
	var worst, taken atomic.Int64
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			for range 200 {
				c, p := m.Take(&Ask{Dialect: "chat"})
				if c.Deployment == nil {
					if c.Considered[0].Excluded != ExcludedFull {
						t.Errorf("excluded for %q, want full", c.Considered[0].Excluded)
					}
					continue
				}
				taken.Add(1)
				for n := c.Deployment.Live.Inflight(); n > worst.Load(); {
					worst.Store(n)
				}
				end(&p, trace.ResultOK, 0)
			}
		})
	}
	group.Wait()
	if worst.Load() > most || taken.Load() == 0 {
		t.Errorf("%d at once, at most %d are allowed; %d in all", worst.Load(), most, taken.Load())
	}
}
