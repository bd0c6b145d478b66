package admin

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

func TestUnknownPathsAndMethods(t *testing.T) {
	r := newRig(t, nil)
	for _, path := range []string{"/nothing", "/api", "/api/v1/", "/api/v2/state", "/api/v1/states", "/api/v1/requests/a/b", "/metrics/x"} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			r.call(method, path).refused(http.StatusNotFound, "path="+path)
		}
	}
	for request, allow := range map[string]string{
		"POST /": "GET, HEAD", "PUT /api/v1/state": "GET, HEAD", "POST /api/v1/requests": "GET, HEAD",
		"DELETE /api/v1/requests/x": "GET, HEAD", "PATCH /metrics": "GET, HEAD", "POST /livez": "GET, HEAD", "POST /readyz": "GET, HEAD",
		"OPTIONS /api/v1/state": "GET, HEAD", "POST /debug/pprof/heap": "GET, HEAD",
		"GET /api/v1/requests/x/abort": "POST", "HEAD /api/v1/requests/x/abort": "POST", "PUT /api/v1/requests/x/abort": "POST",
	} {
		method, path, _ := strings.Cut(request, " ")
		a := r.call(method, path)
		equal(t, request+" Allow", a.Header.Get("Allow"), allow)
		if method == http.MethodHead {
			a.is(http.StatusMethodNotAllowed)
			continue
		}
		a.refused(http.StatusMethodNotAllowed, allow)
	}
}

// TestTheIndexListsWhatExists, and nothing else does.
func TestTheIndexListsWhatExists(t *testing.T) {
	r := newRig(t, nil)
	a := r.get("/").is(http.StatusOK)
	equal(t, "content type", a.Header.Get("Content-Type"), "text/plain; charset=utf-8")
	listed := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^(GET|POST|PATCH) +(/[^\n]*)$`).FindAllStringSubmatch(a.body, -1) {
		for _, path := range regexp.MustCompile(`/[^ ,]+`).FindAllString(line[2], -1) {
			listed[line[1]+" "+path] = true
			got := r.call(line[1], strings.ReplaceAll(path, "{id}", "unknown"))
			if got.StatusCode == http.StatusMethodNotAllowed || strings.Contains(got.body, "there is nothing at") {
				t.Errorf("%s %s does not exist: %s", line[1], path, got.body)
			}
		}
	}
	for _, route := range []string{"GET /api/v1/state", "GET /api/v1/requests", "GET /api/v1/requests/{id}",
		"POST /api/v1/requests/{id}/abort", "GET /api/v1/route", "GET /api/v1/audit",
		"POST /api/v1/deployments/{name}/drain", "POST /api/v1/deployments/{name}/enable", "POST /api/v1/deployments/{name}/reset",
		"PATCH /api/v1/deployments/{name}", "GET /metrics", "GET /livez", "GET /readyz", "GET /debug/pprof/"} {
		if !listed[route] {
			t.Errorf("%s is not listed", route)
		}
		delete(listed, route)
	}
	if len(listed) > 0 {
		t.Errorf("listed, but not in this test: %v", listed)
	}
	for name := range known {
		if !strings.Contains(a.body, name) {
			t.Errorf("the parameter %s is not listed", name)
		}
	}
	for _, term := range []string{"enqueue", "first token", "last token", "finish", "TTFT", "TBT", "TPOT"} {
		if !regexp.MustCompile(`(?m)^` + term + ` +\S`).MatchString(a.body) {
			t.Errorf("%s is not defined", term)
		}
	}
}
