package routing

import (
	"github.com/prometheus/client_golang/prometheus"

	"tracegate/fallback"
)

// states are all that a deployment can be in; one series each, so that a query
// for one of them finds a deployment that never was in it.
var states = []fallback.State{fallback.Ready, fallback.Cooling, fallback.Open, fallback.HalfOpen,
	fallback.DrainingState, "starting", "down"}

// Collector exports what the deployments of the table that current returns are doing.
type Collector struct {
	current  func() *Table
	inflight *prometheus.Desc
	state    *prometheus.Desc
	depth    *prometheus.Desc
	cooldown *prometheus.Desc
}

// NewCollector makes a collector over the table in force.
func NewCollector(current func() *Table) *Collector {
	return &Collector{
		current: current,
		inflight: prometheus.NewDesc("llm_inflight_requests",
			"Requests that a deployment is working on now.", []string{"model", "deployment"}, nil),
		state: prometheus.NewDesc("llm_deployment_state",
			"1 for the state that a deployment is in, 0 for the others.", []string{"deployment", "state"}, nil),
		depth: prometheus.NewDesc("llm_queue_depth",
			"Requests that wait because every deployment of the model is full.", []string{"model"}, nil),
		cooldown: prometheus.NewDesc("llm_cooldowns_total",
			"Cooldowns that began, by what began them.", []string{"deployment", "reason"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.inflight
	ch <- c.state
	ch <- c.depth
	ch <- c.cooldown
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	table := c.current()
	for _, m := range table.Models() {
		ch <- prometheus.MustNewConstMetric(c.depth, prometheus.GaugeValue, float64(m.Live.Queue.Waiting()), m.Name())
	}
	table.Deployments(func(d *Deployment) {
		ch <- prometheus.MustNewConstMetric(c.inflight, prometheus.GaugeValue,
			float64(d.Live.Inflight()), d.Model, d.Name())
		began := d.Live.Gate.Cooldowns()
		for _, x := range []struct {
			reason string
			n      int64
		}{{"breaker", began.Breaker}, {"backpressure", began.Backpressure}, {"draining", began.Draining}} {
			ch <- prometheus.MustNewConstMetric(c.cooldown, prometheus.CounterValue, float64(x.n), d.Name(), x.reason)
		}
		now := d.standing().State
		for _, s := range states {
			is := 0.0
			if s == now {
				is = 1
			}
			ch <- prometheus.MustNewConstMetric(c.state, prometheus.GaugeValue, is, d.Name(), string(s))
		}
	})
}
