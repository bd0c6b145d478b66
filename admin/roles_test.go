package admin

import (
	"net/http"
	"strings"
	"testing"

	"tracegate/trace"
)

func TestRoles(t *testing.T) {
	r := newRig(t, map[string]string{"viewer": "view-key", "operator": "ops-key"})
	r.finished("done", 1, nil)
	const read, act = "GET /api/v1/state", "POST /api/v1/requests/done/abort"
	for _, c := range []struct {
		name, request, authorization string
		want                         int
	}{
		{"no key", read, "", 401},
		{"no key, acting", act, "", 401},
		{"no key, unknown path", "GET /nothing", "", 401},
		{"no key, the index", "GET /", "", 401},
		{"no key, metrics", "GET /metrics", "", 401},
		{"no key, pprof", "GET /debug/pprof/", "", 401},
		{"wrong key", read, "Bearer wrong", 401},
		{"empty key", read, "Bearer ", 401},
		{"another scheme", read, "Basic view-key", 401},
		{"no scheme", read, "view-key", 401},
		{"viewer reads", read, "Bearer view-key", 200},
		{"viewer reads metrics", "GET /metrics", "Bearer view-key", 200},
		{"the scheme's case does not matter", read, "bearer view-key", 200},
		{"viewer acts", act, "Bearer view-key", 403},
		{"viewer, unknown path", "GET /nothing", "Bearer view-key", 404},
		{"viewer, wrong method", "DELETE /api/v1/state", "Bearer view-key", 405},
		{"operator reads", read, "Bearer ops-key", 200},
		{"operator acts", act, "Bearer ops-key", 409},
		{"livez needs none", "GET /livez", "", 200},
		{"readyz needs none", "GET /readyz", "", 200},
		{"livez minds none", "GET /livez", "Bearer wrong", 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			method, path, _ := strings.Cut(c.request, " ")
			r := *r
			r.t = t
			var headers []string
			if c.authorization != "" {
				headers = append(headers, "Authorization: "+c.authorization)
			}
			a := r.call(method, path, headers...)
			if c.want == 200 {
				a.is(200)
				return
			}
			a.refused(c.want)
			equal(t, "asks for a key", a.Header.Get("WWW-Authenticate"), map[int]string{401: "Bearer"}[c.want])
			if strings.Contains(a.body, "-key") {
				t.Errorf("a key is shown: %s", a.body)
			}
		})
	}
}

func TestWithoutKeysEverybodyIsOperator(t *testing.T) {
	r := newRig(t, nil)
	r.get("/api/v1/state").is(http.StatusOK)
	r.call(http.MethodPost, "/api/v1/requests/none/abort").refused(http.StatusNotFound)
	r.call(http.MethodGet, "/api/v1/state", "Authorization: Bearer whatever").is(http.StatusOK)
}

// A page of another site that an operator's browser shows must not be able to act here.
func TestABrowserActsForNoOtherSite(t *testing.T) {
	r := newRig(t, nil)
	tl := r.running("")
	aborts := 0
	tl.OnAbort(func(trace.AbortReason) { aborts++ })
	path := "/api/v1/requests/" + tl.ID() + "/abort"
	r.call(http.MethodPost, path, "Origin: https://evil.example", "Sec-Fetch-Site: cross-site").refused(http.StatusForbidden, "another site")
	r.call(http.MethodPost, path, "Origin: https://evil.example").refused(http.StatusForbidden, "another site")
	equal(t, "aborts for other sites", aborts, 0)
	r.call(http.MethodPost, path, "Origin: "+r.url).is(http.StatusAccepted)
	equal(t, "aborts for our own page", aborts, 1)
	r.call(http.MethodGet, "/api/v1/state", "Sec-Fetch-Site: cross-site").is(http.StatusOK)
}
