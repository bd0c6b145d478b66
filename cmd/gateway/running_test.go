package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"testing"

	"tracegate/trace"
)

func (p *process) gateway(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("gateway", append(args, "--admin", "http://"+p.admin)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%v: %v: %s", cmd.Args, err, out)
	}
	return string(out)
}

func (p *process) record(id string) *trace.Record {
	p.t.Helper()
	r := new(trace.Record)
	if err := json.Unmarshal([]byte(p.gateway("request", "--json", id)), r); err != nil {
		p.t.Fatal(err)
	}
	return r
}

func TestARunningRequestIsDrawnAndAborted(t *testing.T) {
	p, _, stream := held(t, "{delay: 0s, timeout: 1h}")
	contains(t, "the picture", p.gateway("request", "held-request"), "held-request  running  public -> d1", "attempt 1  d1  running", "streaming")
	r := p.record("held-request")
	equal(t, "running", r.Running(), true)
	equal(t, "phase", r.Phase, trace.PhaseStreaming)

	abort := func() int {
		t.Helper()
		resp, err := client(t).Post("http://"+p.admin+"/api/v1/requests/held-request/abort", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	equal(t, "abort", abort(), http.StatusAccepted)
	cut(t, stream)
	await(t, "its end", func() bool { return !p.record("held-request").Running() })
	r = p.record("held-request")
	equal(t, "abort reason", r.Attempts[0].AbortReason, trace.AbortOperator)
	equal(t, "ended well", r.Outcome == trace.OK, false)
	equal(t, "abort of a finished one", abort(), http.StatusConflict)
}
