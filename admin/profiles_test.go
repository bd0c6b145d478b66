package admin

import (
	"net/http"
	"testing"
)

func TestProfilesAreForOperators(t *testing.T) {
	r := newRig(t, map[string]string{"viewer": "view-key", "operator": "ops-key"})
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/profile?seconds=1", "/debug/pprof/symbol", "/debug/pprof/trace?seconds=1"} {
		r.call(http.MethodGet, path, "Authorization: Bearer view-key").refused(http.StatusForbidden, "viewer", "operator")
		r.call(http.MethodGet, path).refused(http.StatusUnauthorized)
	}
	r.call(http.MethodGet, "/debug/pprof/", "Authorization: Bearer ops-key").is(http.StatusOK)
	r.call(http.MethodGet, "/debug/pprof/goroutine?debug=1", "Authorization: Bearer ops-key").is(http.StatusOK)
	r.call(http.MethodGet, "/debug/pprof/symbol", "Authorization: Bearer ops-key").is(http.StatusOK)
}

// The command line holds what was given by --set, keys too.
func TestTheCommandLineIsNotShown(t *testing.T) {
	r := newRig(t, nil)
	r.get("/debug/pprof/cmdline").refused(http.StatusNotFound, "path=/debug/pprof/cmdline")
}
