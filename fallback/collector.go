package fallback

import "github.com/prometheus/client_golang/prometheus"

var fallbacksDesc = prometheus.NewDesc("llm_fallbacks_total",
	"Requests that went on from one model to another, by why and by whether that one answered.",
	[]string{"from", "to", "reason", "result"}, nil)

// Describe implements prometheus.Collector.
func (e *Edges) Describe(ch chan<- *prometheus.Desc) { ch <- fallbacksDesc }

// Collect implements prometheus.Collector.
func (e *Edges) Collect(ch chan<- prometheus.Metric) {
	e.Each(func(from, to string, reason Kind, answered bool, n int64) {
		result := "fail"
		if answered {
			result = "ok"
		}
		ch <- prometheus.MustNewConstMetric(fallbacksDesc, prometheus.CounterValue, float64(n), from, to, string(reason), result)
	})
}
