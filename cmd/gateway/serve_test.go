package main

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"tracegate/bench/fakeengine"
)

func TestServeAnswersOnBothListeners(t *testing.T) {
	_, yaml := engine(t, fakeengine.Options{StepBase: 1e6}, "")
	p, c := serve(t, yaml), client(t)
	equal(t, "data livez", status(t, c, "http://"+p.data+"/livez"), 200)
	equal(t, "admin readyz", status(t, c, "http://"+p.admin+"/readyz"), 200)
	equal(t, "admin state", status(t, c, "http://"+p.admin+"/api/v1/state"), 200)
	equal(t, "no admin on the data listener", status(t, c, "http://"+p.data+"/api/v1/state"), 404)

	resp := chat(t, c, "http://"+p.data, "first-request")
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "answer", string(body), "data: {", "data: [DONE]")
	equal(t, "id", resp.Header.Get("X-Request-Id"), "first-request")
	await(t, "the request's timeline", func() bool { return status(t, c, "http://"+p.admin+"/api/v1/requests/first-request") == 200 })

	resp, err = c.Get("http://" + p.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metrics, _ := io.ReadAll(resp.Body)
	for _, family := range []string{"llm_requests_total", "llm_ttft_seconds", "llm_inflight_requests", "llm_gateway_build_info", "go_goroutines", "process_",
		"llm_gateway_accept_retries_total 0\n", "llm_gateway_timeline_misuse_total 0\n"} {
		contains(t, "metrics", string(metrics), family)
	}
	p.signal(syscall.SIGINT)
	equal(t, "exit code", p.wait(), 0)
}

func TestSIGHUPDoesNotEndTheProcess(t *testing.T) {
	_, yaml := engine(t, fakeengine.Options{}, "")
	p, c := serve(t, yaml), client(t)
	p.signal(syscall.SIGHUP)
	await(t, "a line about SIGHUP", func() bool { return strings.Contains(p.stderr.String(), "SIGHUP") })
	equal(t, "livez", status(t, c, "http://"+p.data+"/livez"), 200)
	equal(t, "readyz", status(t, c, "http://"+p.data+"/readyz"), 200)
}

func TestNothingButTheReadyLineIsOnStdout(t *testing.T) {
	_, yaml := engine(t, fakeengine.Options{StepBase: 1e6}, "log: {level: debug}\n")
	p, c := serve(t, yaml), client(t)
	_, _ = io.Copy(io.Discard, chat(t, c, "http://"+p.data, "some-request").Body)
	equal(t, "unknown path", status(t, c, "http://"+p.data+"/nothing"), http.StatusNotFound)
	p.signal(syscall.SIGINT)
	equal(t, "rest of stdout", p.line(), "")
	equal(t, "exit code", p.wait(), 0)
	contains(t, "stderr", p.stderr.String(), "some-request")
}
