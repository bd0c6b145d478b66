package proxy

import "tracegate/routing"

// rest closes every gate, for tests whose next request must not wait for what
// the last one's upstream asked for.
func (r *rig) rest() {
	r.gateway.Table().Deployments(func(d *routing.Deployment) { d.Live.Gate.Reset() })
}
