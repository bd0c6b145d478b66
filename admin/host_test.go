package admin

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

// withHost sends a request that names another host than the one it is sent to.
func (r *rig) withHost(path, host, authorization string) answer {
	r.t.Helper()
	req := httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, nil)
	req.Host = host
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	resp := w.Result()
	resp.Request = req
	return answer{Response: resp, t: r.t, body: w.Body.String()}
}

// A name that an attacker's DNS server moves to 127.0.0.1 makes the operator's browser take the admin API for a part of
// the attacker's site. What tells the two apart is the name.
func TestWithoutKeysOnlyOwnNamesAreServed(t *testing.T) {
	for _, c := range []struct {
		listen, host string
		served       bool
	}{
		{"127.0.0.1:4001", "localhost:4001", true},
		{"127.0.0.1:4001", "localhost", true},
		{"127.0.0.1:4001", "LocalHost:1", true},
		{"127.0.0.1:4001", "127.0.0.1:4001", true},
		{"127.0.0.1:4001", "127.9.8.7", true},
		{"127.0.0.1:4001", "[::1]:4001", true},
		{"127.0.0.1:4001", "[::1]", true},
		{"127.0.0.1:4001", "evil.example:4001", false},
		{"127.0.0.1:4001", "evil.example", false},
		{"127.0.0.1:4001", "localhost.evil.example", false},
		{"127.0.0.1:4001", "127.0.0.1.evil.example:4001", false},
		{"127.0.0.1:4001", "evil.example:127.0.0.1", false},
		{"127.0.0.1:4001", "10.0.0.5:4001", false},
		{"127.0.0.1:4001", "", false},
		{"gateway.internal:4001", "gateway.internal:4001", true},
		{"gateway.internal:4001", "Gateway.Internal:8080", true},
		{"gateway.internal:4001", "localhost:4001", true},
		{"gateway.internal:4001", "other.internal:4001", false},
		{"10.0.0.5:4001", "10.0.0.5:4001", true},
		{"10.0.0.5:4001", "10.0.0.6:4001", false},
		{"[fd00::5]:4001", "[fd00:0::5]:4001", true},
		// On every address: each of them is its own; a name may still be anybody's.
		{":4001", "10.0.0.5:4001", true},
		{"0.0.0.0:4001", "10.0.0.5", true},
		{"[::]:4001", "[fd00::5]:4001", true},
		{":4001", "evil.example:4001", false},
		{":4001", "", false},
	} {
		t.Run(c.listen+" "+c.host, func(t *testing.T) {
			r := newRigAt(t, c.listen, nil)
			for _, path := range []string{"/", "/api/v1/state", "/metrics", "/debug/pprof/", "/nothing"} {
				a := r.withHost(path, c.host, "")
				if c.served {
					equal(t, path+" refused", a.StatusCode == http.StatusForbidden, false)
				} else {
					a.refused(http.StatusForbidden, "admin.keys", `host="`+c.host+`"`)
				}
			}
			r.withHost("/livez", c.host, "").is(http.StatusOK)
			r.withHost("/readyz", c.host, "").is(http.StatusOK)
		})
	}
}

func TestWithKeysTheHostDoesNotMatter(t *testing.T) {
	r := newRigAt(t, "127.0.0.1:4001", map[string]string{"viewer": "view-key"})
	r.withHost("/api/v1/state", "metrics.example", "Bearer view-key").is(http.StatusOK)
	r.withHost("/api/v1/state", "metrics.example", "").refused(http.StatusUnauthorized)
}
