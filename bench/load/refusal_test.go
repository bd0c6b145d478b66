package load

import (
	"strings"
	"testing"
	"time"
)

func TestOnlyLoopback(t *testing.T) {
	for _, addr := range []string{"", "10.0.0.1:80", "0.0.0.0:80", "192.0.2.1:80", "localhost:80", "example.com:443", "[2001:db8::1]:80", "127.0.0.1"} {
		if _, err := Run(t.Context(), Plan{Addr: addr}); err == nil || !strings.Contains(err.Error(), "loopback") {
			t.Errorf("Run %q: %v", addr, err)
		}
		if err := Hold(t.Context(), Plan{Addr: addr}, []int{1}, nil); err == nil || !strings.Contains(err.Error(), "loopback") {
			t.Errorf("Hold %q: %v", addr, err)
		}
		if _, err := ListenUpstream(addr); err == nil || !strings.Contains(err.Error(), "loopback") {
			t.Errorf("ListenUpstream %q: %v", addr, err)
		}
	}
	for _, addr := range []string{"127.0.0.1:80", "127.8.8.8:1", "[::1]:80", "[::ffff:127.0.0.1]:80"} {
		if err := checkLoopback(addr); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestRefusedPlans(t *testing.T) {
	for want, p := range map[string]Plan{
		"dialect=x":      {Dialect: "x"},
		"tokens=100000":  {Tokens: 100_000},
		"conns=100001":   {Conns: 100_001},
		"body=-1":        {Body: -1},
		"allowed are 0":  {Window: time.Hour},
		"phase=later":    {CancelPhase: "later"},
		"phase=prefill":  {CancelFrac: 1, CancelPhase: "prefill"},
		"phase=decode":   {CancelFrac: 1, Gap: time.Second, Tokens: 2},
		"rate=-1":        {Rate: -1},
		"needs a stream": {CancelFrac: 1, Whole: true, Gap: time.Second},
	} {
		p.Addr = "127.0.0.1:9"
		if _, err := Run(t.Context(), p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
