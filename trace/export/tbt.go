package export

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tracegate/trace"
)

// gapSeries adds up the gap histograms of finished streams. Their buckets are the metric's, so nothing is lost.
type gapSeries struct {
	counts [trace.Buckets]uint64
	sum    time.Duration
}

func (g *gapSeries) merge(h *trace.Histogram) {
	h.Each(func(bucket int, n uint32) { g.counts[bucket] += uint64(n) })
	g.sum += h.Sum()
}

var tbtDesc = prometheus.NewDesc("llm_tbt_seconds", "Gaps between content events of finished streams.",
	[]string{"model", "deployment"}, nil)

// tbtCollector shows the gap series of a Metrics as constant histograms.
type tbtCollector struct{ m *Metrics }

// Describe implements prometheus.Collector.
func (tbtCollector) Describe(ch chan<- *prometheus.Desc) { ch <- tbtDesc }

// Collect implements prometheus.Collector.
func (c tbtCollector) Collect(ch chan<- prometheus.Metric) {
	var out []prometheus.Metric
	c.m.mu.Lock()
	for key, p := range c.m.pairs {
		if p.gaps != nil {
			out = append(out, p.gaps.metric(key))
		}
	}
	c.m.mu.Unlock() // sending may block
	for _, metric := range out {
		ch <- metric
	}
}

func (g *gapSeries) metric(key pairKey) prometheus.Metric {
	buckets := make(map[float64]uint64, trace.Buckets-1)
	total := uint64(0)
	for i, edge := range trace.Edges() {
		total += g.counts[i]
		buckets[seconds(edge)] = total
	}
	total += g.counts[trace.Buckets-1]
	return prometheus.MustNewConstHistogram(tbtDesc, total, seconds(g.sum), buckets, key.model, key.deployment)
}
