package admin

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestProbes(t *testing.T) {
	r := newRig(t, nil)
	equal(t, "live", r.get("/livez").is(http.StatusOK).body, "ok\n")
	ready := r.get("/readyz").is(http.StatusOK)
	equal(t, "ready", ready.body, "ok\n")
	equal(t, "content type", ready.Header.Get("Content-Type"), "text/plain; charset=utf-8")
	r.ready.Store(false)
	r.get("/readyz").refused(http.StatusServiceUnavailable, "not ready")
	r.get("/livez").is(http.StatusOK)
	r.call(http.MethodHead, "/livez").is(http.StatusOK)
	r.call(http.MethodHead, "/readyz").is(http.StatusServiceUnavailable)
}

func TestMetricsAreInPrometheusText(t *testing.T) {
	r := newRig(t, nil)
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "llm_example_total", Help: "An example."})
	r.registry.MustRegister(c)
	c.Add(3)
	a := r.get("/metrics").is(http.StatusOK)
	if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("content type %q", a.Header.Get("Content-Type"))
	}
	equal(t, "body", a.body, "# HELP llm_example_total An example.\n# TYPE llm_example_total counter\nllm_example_total 3\n")
}

func TestProfilesAreThere(t *testing.T) {
	r := newRig(t, nil)
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/symbol", "/debug/pprof/goroutine?debug=1", "/debug/pprof/heap"} {
		a := r.get(path).is(http.StatusOK)
		if a.Header.Get("Content-Type") == "" {
			t.Errorf("%s has no content type", path)
		}
	}
}
