package proxy

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"tracegate/bench/fakeengine"
	"tracegate/configs"
	"tracegate/proxy/hangup"
	"tracegate/trace"
)

func TestMain(m *testing.M) {
	// fasthttp's shared clock never ends: it must begin outside of every bubble of virtual time.
	new(fasthttp.ResponseHeader).AppendBytes(nil)
	trace.SetStrict(true)
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		// The janitor of a stopped server's workers sleeps on for up to ten seconds.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

// patience is how long a test waits for what must happen. It decides nothing but
// when a broken test gives up.
const patience = 20 * time.Second

// The keys of a rig: of its one tenant, and of the upstream.
const (
	testKey     = "sk-test-tenant-key"
	upstreamKey = "sk-upstream-key"
)

// rig is a gateway before fake engines, on sockets or in memory.
type rig struct {
	t       testing.TB
	engine  *fakeengine.Engine   // the first one
	engines []*fakeengine.Engine // all of them
	gateway *Gateway
	book    *trace.Book
	log     *logBuffer

	memory   bool
	server   *fasthttp.Server
	watcher  *hangup.Watcher
	dialer   func() (net.Conn, error)
	panics   bool
	served   chan struct{}
	finished chan *trace.Record
}

// setup is what a rig may be given.
type setup struct {
	engine     fakeengine.Options
	engines    int    // how many; 0 = one
	models     string // the whole list of models, with the engines' base URLs as {e1}, {e2} and so on; "" = one model, one deployment
	deployment string // further keys of the deployment, as a YAML flow: "engine: sglang, timeouts: {idle: 1s}"
	model      string // further lines of the model, indented by four
	tenant     string // further lines of the tenant, indented by four
	config     string // further top-level YAML
	memory     bool   // in-memory connections, for virtual time
	upstream   string // a base URL instead of the engine's
	dial       dialer // replaces the way to the upstream
	panics     bool   // an exchange is going to
}

func newRig(t testing.TB, s setup) *rig {
	t.Helper()
	r := &rig{t: t, memory: s.memory, panics: s.panics, log: &logBuffer{}, served: make(chan struct{}), finished: make(chan *trace.Record, 20000)}
	s.engine.Model = "served"
	for range max(s.engines, 1) {
		r.engines = append(r.engines, fakeengine.New(s.engine))
	}
	r.engine = r.engines[0]
	var dial dialer
	var client net.Listener
	var urls []string
	if s.memory {
		dial, client, urls = r.listenInMemory()
	} else {
		for i, e := range r.engines {
			if i > 0 || s.upstream == "" {
				urls = append(urls, must(e.Start()))
			}
		}
		client = must(net.Listen("tcp", "127.0.0.1:0"))
		r.dialer = func() (net.Conn, error) { return net.Dial("tcp", client.Addr().String()) }
	}
	if s.dial != nil {
		dial = s.dial
	}
	if s.upstream == "" {
		s.upstream = urls[0]
	}
	for i, url := range urls {
		s.models = strings.ReplaceAll(s.models, fmt.Sprintf("{e%d}", i+1), url)
	}
	cfg := parse(t, s)
	r.book = trace.NewBook(20000, func(rec *trace.Record) { r.finished <- rec })
	logger := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r.gateway = must(newGateway(cfg, r.book, logger, dial))
	r.watcher = must(hangup.NewWatcher())
	r.server = r.gateway.Server()
	go func() { // until close
		defer close(r.served)
		_ = r.server.Serve(hangup.NewListener(client, r.watcher))
	}()
	t.Cleanup(r.close)
	return r
}

// untried are the settings of tests of one attempt, where they say nothing
// else: it is not repeated, and its failure keeps none of the next ones out.
func untried(config string) string {
	for key, value := range map[string]string{"retry": "{max_attempts: 1}", "cooldown": "{allowed_fails: 1000000}"} {
		if !strings.Contains(config, key+":") {
			config = key + ": " + value + "\n" + config
		}
	}
	return config
}

func parse(t testing.TB, s setup) *configs.Config {
	t.Helper()
	deployment := ""
	if s.deployment != "" {
		deployment = ", " + s.deployment
	}
	models := s.models
	if models == "" {
		models = fmt.Sprintf(`
  - name: public
    aliases: [other-name]
    deployments:
      - {name: d1, base_url: %q, model: served, api_key: %s%s}
%s`, s.upstream, upstreamKey, deployment, s.model)
		s.config = untried(s.config)
	}
	yaml := fmt.Sprintf(`
models:
%s
tenants:
  - name: team
    keys: [{sha256: %s, id: k1}]
%s
%s
`, models, digest(testKey), s.tenant, s.config)
	cfg, problems := configs.Parse("test.yaml", []byte(yaml), os.LookupEnv)
	if cfg == nil {
		t.Fatalf("the rig's configuration is wrong: %v\n%s", problems, yaml)
	}
	return cfg
}

// close ends the rig and checks that nothing was left behind.
func (r *rig) close() {
	for _, e := range r.engines {
		e.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := r.server.ShutdownWithContext(ctx); err != nil {
		r.t.Errorf("the server did not stop: %v", err)
	}
	<-r.served
	if r.memory {
		<-time.After(11 * time.Second) // in virtual time: the janitor of the server's workers ends
	}
	r.gateway.Close()
	r.watcher.Close()
	equal(r.t, "an exchange panicked", strings.Contains(r.log.String(), "panicked"), r.panics)
	equal(r.t, "exchanges left", r.gateway.Streams(), 0)
	equal(r.t, "body bytes left", r.gateway.BodyBytes(), 0)
	equal(r.t, "timelines left", r.book.Running(), 0)
	equal(r.t, "misused timelines", r.book.Misuse(), 0)
	for _, m := range r.gateway.Table().State() {
		for _, d := range m.Deployments {
			equal(r.t, "in flight at "+d.Name, d.Inflight, 0)
		}
	}
}

// record waits for the timeline of the next finished request.
func (r *rig) record() *trace.Record {
	r.t.Helper()
	select {
	case rec := <-r.finished:
		return rec
	case <-time.After(patience):
		r.t.Fatal("no request finished")
		return nil
	}
}

// await looks until ok says so: for states on sockets that nothing announces.
func (r *rig) await(what string, ok func() bool) {
	r.t.Helper()
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			r.t.Fatalf("%s: it did not come to that", what)
		}
	}
}

// logged waits until the engine has such a request.
func (r *rig) logged(ok func(fakeengine.RequestLog) bool) (fakeengine.RequestLog, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return r.engine.WaitFor(ctx, ok)
}

// isAtRest waits until the engine works on nothing and holds no request.
func isAtRest(t *testing.T, r *rig) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := r.engine.WaitStats(ctx, func(s fakeengine.Stats) bool { return s.Running == 0 && s.Waiting == 0 && s.Handlers == 0 }); err != nil {
		t.Error(err)
	}
}

// dial opens a client connection, closed with the test.
func (r *rig) dial() net.Conn {
	r.t.Helper()
	c := must(r.dialer())
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

// answer is a response as a client sees it.
type answer struct {
	*http.Response
	body []byte
	err  error // of reading the body: io.ErrUnexpectedEOF when it was cut
}

// post sends a request to a path and reads the answer to its end.
func (r *rig) post(path, body string, headers ...string) answer {
	r.t.Helper()
	return read(r.t, r.send(path, body, headers...))
}

// send writes a request on a connection of its own.
func (r *rig) send(path, body string, headers ...string) net.Conn {
	r.t.Helper()
	c := r.dial()
	_, err := io.WriteString(c, request(path, body, headers...))
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// request renders a POST with the tenant's key. Headers are whole lines; one
// that begins with "-" takes a default line of that name out.
func request(path, body string, headers ...string) string {
	lines := map[string]string{"Host": "gateway.test", "Authorization": "Bearer " + testKey, "Content-Type": "application/json"}
	var extra strings.Builder
	for _, h := range headers {
		if name, ok := strings.CutPrefix(h, "-"); ok {
			delete(lines, name)
			continue
		}
		extra.WriteString(h + "\r\n")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\n", path)
	for _, name := range []string{"Host", "Authorization", "Content-Type"} {
		if v, ok := lines[name]; ok {
			fmt.Fprintf(&b, "%s: %s\r\n", name, v)
		}
	}
	fmt.Fprintf(&b, "%sContent-Length: %d\r\n\r\n%s", extra.String(), len(body), body)
	return b.String()
}

func read(t testing.TB, c net.Conn) answer {
	t.Helper()
	return readFrom(t, bufio.NewReader(c))
}

func readFrom(t testing.TB, br *bufio.Reader) answer {
	t.Helper()
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	return answer{Response: resp, body: body, err: err}
}

// chatBody is a streamed chat request; words are put into the prompt.
func chatBody(words string, more ...string) string {
	return fmt.Sprintf(`{"model":"public","stream":true,"messages":[{"role":"user","content":%q}]%s}`, words, strings.Join(more, ""))
}

// dialectCase is one of the four generating routes.
type dialectCase struct {
	name, path string
	body       func(stream bool, prompt string) string
}

var dialects = []dialectCase{
	{"messages", "/v1/messages", func(s bool, p string) string {
		return fmt.Sprintf(`{"model":"public","max_tokens":64,"stream":%t,"messages":[{"role":"user","content":%q}]}`, s, p)
	}},
	{"chat", "/v1/chat/completions", func(s bool, p string) string {
		return fmt.Sprintf(`{"model":"public","max_tokens":64,"stream":%t,"messages":[{"role":"user","content":%q}]}`, s, p)
	}},
	{"completions", "/v1/completions", func(s bool, p string) string {
		return fmt.Sprintf(`{"model":"public","max_tokens":64,"stream":%t,"prompt":%q}`, s, p)
	}},
	{"responses", "/v1/responses", func(s bool, p string) string {
		return fmt.Sprintf(`{"model":"public","max_output_tokens":64,"stream":%t,"input":%q}`, s, p)
	}},
}

// in says whether a list of dialects has this one; "" = all.
func (d dialectCase) in(only string) bool {
	return only == "" || slices.Contains(strings.Fields(only), d.name)
}

// inBubble runs f for each dialect in virtual time.
func inBubble(t *testing.T, f func(t *testing.T, d dialectCase)) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, d) })
		})
	}
}

// inBubbles runs f for each dialect in virtual time, once for a stream and once for a whole answer.
func inBubbles(t *testing.T, f func(t *testing.T, d dialectCase, stream bool)) {
	for _, d := range dialects {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/stream=%t", d.name, stream), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { f(t, d, stream) })
			})
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func contains(t testing.TB, what, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%s: %q is not in %q", what, want, got)
	}
}

// digest is what the configuration holds of a key.
func digest(key string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(key))) }
