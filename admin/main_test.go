package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"tracegate/configs"
	"tracegate/fallback"
	"tracegate/limiter"
	"tracegate/routing"
	"tracegate/trace"
)

func TestMain(m *testing.M) {
	trace.SetStrict(true)
	goleak.VerifyTestMain(m)
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// rig is an admin listener on a socket, over a book that the test writes.
type rig struct {
	t        *testing.T
	url      string
	handler  http.Handler
	client   *http.Client
	book     *trace.Book
	table    *routing.Table
	edges    *fallback.Edges
	tenants  *limiter.Tenants
	registry *prometheus.Registry
	ready    *atomic.Bool
	draining *atomic.Bool
}

const rigConfig = `
models:
  - name: public
    aliases: [other-name]
    deployments:
      - {name: d1, base_url: "http://127.0.0.1:1", weight: 3}
      - {name: d2, base_url: "http://127.0.0.1:2"}
tenants:
  - name: team
    keys: [{sha256: 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b}]
anonymous: {allow: true}
`

// newRig starts the listener; keys are the admin keys' texts by their roles.
func newRig(t *testing.T, keys map[string]string) *rig {
	t.Helper()
	return newRigAt(t, "127.0.0.1:4001", keys)
}

// newRigAt starts one that was configured to listen there, which it does not.
func newRigAt(t *testing.T, listen string, keys map[string]string) *rig {
	t.Helper()
	cfg, problems := configs.Parse("test.yaml", []byte(rigConfig), nil)
	if cfg == nil {
		t.Fatal(problems)
	}
	r := &rig{t: t, client: &http.Client{Transport: &http.Transport{}}, book: trace.NewBook(2000),
		table: routing.NewTable(cfg, nil), tenants: limiter.NewTenants(cfg), registry: prometheus.NewRegistry(),
		edges: new(fallback.Edges), ready: new(atomic.Bool), draining: new(atomic.Bool)}
	r.ready.Store(true)
	var adminKeys []configs.AdminKey
	for role, key := range keys {
		digest := sha256.Sum256([]byte(key))
		adminKeys = append(adminKeys, configs.AdminKey{Name: role, SHA256: hex.EncodeToString(digest[:]), Role: role})
	}
	r.handler = NewHandler(Options{
		Version: "v1.2.3", Started: noon, Listen: listen, Keys: adminKeys, Book: r.book,
		Table: func() *routing.Table { return r.table }, Tenants: func() *limiter.Tenants { return r.tenants },
		Config: func() *configs.Config { return cfg }, Edges: r.edges,
		Ready: r.ready.Load, Draining: r.draining.Load, Gather: r.registry,
	})
	server := httptest.NewServer(r.handler)
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		server.Close()
	})
	r.url = server.URL
	return r
}

// answer is a response with its body read.
type answer struct {
	*http.Response
	t    *testing.T
	body string
}

// call sends a request; headers are "Name: value".
func (r *rig) call(method, path string, headers ...string) answer {
	r.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, r.url+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{Response: resp, t: r.t, body: string(body)}
}

func (r *rig) get(path string) answer {
	r.t.Helper()
	return r.call(http.MethodGet, path)
}

// is checks the status, and that every JSON answer says so.
func (a answer) is(status int) answer {
	a.t.Helper()
	equal(a.t, a.Request.Method+" "+a.Request.URL.Path+" status", a.StatusCode, status)
	if strings.HasPrefix(a.body, "{") && a.Request.URL.Query().Get("format") != "jsonl" {
		equal(a.t, "content type", a.Header.Get("Content-Type"), "application/json")
	}
	return a
}

// refused checks the status and the shape of an error, and that its message contains the words.
func (a answer) refused(status int, words ...string) {
	a.t.Helper()
	a.is(status)
	equal(a.t, "content type", a.Header.Get("Content-Type"), "application/json")
	var body map[string]map[string]string
	if err := json.Unmarshal([]byte(a.body), &body); err != nil {
		a.t.Fatalf("the error is no JSON object: %v: %.300s", err, a.body)
	}
	if len(body) != 1 || len(body["error"]) != 1 || body["error"]["message"] == "" {
		a.t.Errorf("the error has another shape: %s", a.body)
	}
	for _, w := range words {
		if !strings.Contains(body["error"]["message"], w) {
			a.t.Errorf("%q is not in the message %q", w, body["error"]["message"])
		}
	}
}

// object reads the answer as a JSON object.
func (a answer) object() map[string]any {
	a.t.Helper()
	a.is(http.StatusOK)
	var v map[string]any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		a.t.Fatalf("no JSON object: %v: %s", err, a.body)
	}
	return v
}

// finished puts a finished record into the ring: it was enqueued n seconds after noon.
func (r *rig) finished(id string, n int, fill func(*trace.Record)) {
	opened := noon.Add(time.Duration(n) * time.Second)
	rec := trace.NewRecord(opened)
	rec.ID, rec.Outcome, rec.Phase, rec.Stream = id, trace.OK, trace.PhaseFinished, true
	rec.Stamp(trace.Enqueue, opened)
	rec.Stamp(trace.FirstToken, opened.Add(time.Duration(n)*100*time.Millisecond))
	rec.Stamp(trace.Finish, opened.Add(10*time.Second))
	if fill != nil {
		fill(rec)
	}
	r.book.Add(rec)
}

// running opens a request that stands where it was sent to d1.
func (r *rig) running(clientID string) *trace.Timeline {
	tl := r.book.Open(time.Now())
	tl.Edit(func(rec *trace.Record) {
		rec.ClientID, rec.Tenant, rec.Model, rec.Stream = clientID, "team", "public", true
	})
	tl.Mark(trace.Enqueue)
	tl.Mark(trace.Admit)
	tl.BeginAttempt("d1")
	tl.Mark(trace.Send)
	r.t.Cleanup(func() { tl.Finish(trace.OK, nil) })
	return tl
}

// ids are the ids of a listing, and its cursor.
func (a answer) ids() (ids []string, next string) {
	a.t.Helper()
	a.is(http.StatusOK)
	var page struct {
		Requests []struct{ ID string }
		Next     *string
	}
	if err := json.Unmarshal([]byte(a.body), &page); err != nil {
		a.t.Fatal(err)
	}
	for _, x := range page.Requests {
		ids = append(ids, x.ID)
	}
	if page.Next != nil {
		next = *page.Next
	}
	return ids, next
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
