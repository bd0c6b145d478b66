package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/valyala/fasthttp"

	"tracegate/admin"
	"tracegate/configs"
	"tracegate/proxy"
	"tracegate/proxy/hangup"
	"tracegate/routing"
	"tracegate/trace"
	"tracegate/trace/export"
)

// app is the running process: the data plane, the admin plane and what they share.
type app struct {
	cfg      *configs.Config
	log      *slog.Logger
	requests *export.Log // nil when log.requests is off
	gateway  *proxy.Gateway
	watcher  *hangup.Watcher

	data, admin net.Listener
	server      *fasthttp.Server
	adminServer *http.Server
	failed      chan error // a listener's end that nobody asked for
}

// start builds everything and listens. Requests are served when it returns.
func start(cfg *configs.Config, stderr io.Writer) (*app, error) {
	a := &app{cfg: cfg, log: newLog(cfg.Log, stderr), failed: make(chan error, 2)}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	sinks := []func(*trace.Record){export.NewMetrics(registry, export.Options{Version: version, Commit: commit}).Finished}
	if cfg.Log.Requests {
		a.requests = export.NewLog(stderr, cfg.Log.Format, levelOf(cfg.Log.Level))
		registry.MustRegister(a.requests)
		sinks = append(sinks, a.requests.Finished)
	}
	book := trace.NewBook(cfg.Timelines.Memory, sinks...)
	var err error
	if a.gateway, err = proxy.New(cfg, book, a.log); err != nil {
		a.close()
		return nil, err
	}
	registry.MustRegister(routing.NewCollector(a.gateway.Table), a.gateway.Edges())
	a.server = a.gateway.Server()
	a.adminServer = a.newAdminServer(admin.NewHandler(admin.Options{
		Version: version, Started: time.Now(), Listen: cfg.Admin.Listen, Keys: cfg.Admin.Keys, Book: book,
		Table: a.gateway.Table, Tenants: a.gateway.Tenants, Config: a.gateway.Config, Edges: a.gateway.Edges(), Ready: a.gateway.Ready, Draining: a.gateway.Draining,
		Gather: registry,
	}))
	if err := a.listen(); err != nil {
		a.close()
		return nil, err
	}
	registry.MustRegister(a.ownHealth(book)...)
	go a.serve("listen", a.data, a.server.Serve)             // until stop
	go a.serve("admin.listen", a.admin, a.adminServer.Serve) // until stop
	return a, nil
}

// newAdminServer has no limit on answers: a profile is written for as long as
// its caller asked for.
func (a *app) newAdminServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug), // it reports every broken connection
	}
}

// ownHealth are the counts of what should never or seldom happen to the process itself.
func (a *app) ownHealth(book *trace.Book) []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "llm_gateway_accept_retries_total",
			Help: "Attempts to accept a connection that failed for want of file descriptors or memory, and were repeated."},
			func() float64 { return float64(a.watcher.AcceptRetries()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "llm_gateway_timeline_misuse_total",
			Help: "Steps of timelines that were out of order. Anything but 0 is a defect of the gateway."},
			func() float64 { return float64(book.Misuse()) }),
	}
}

// serve serves until stop. A listener that fails is closed, so that callers are
// refused and do not wait for nobody.
func (a *app) serve(key string, ln net.Listener, serve func(net.Listener) error) {
	if err := serve(ln); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		_ = ln.Close()
		a.failed <- fmt.Errorf("cannot serve %s: %w", key, err)
	}
}

func (a *app) listen() error {
	data, err := net.Listen("tcp", a.cfg.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on listen=%s: %w", a.cfg.Listen, err)
	}
	a.data = data
	if a.watcher, err = hangup.NewWatcher(); err != nil {
		return err
	}
	a.data = hangup.NewListener(data, a.watcher)
	if a.data, err = withTLS(a.data, "tls", a.cfg.TLS); err != nil {
		return err
	}
	if a.admin, err = net.Listen("tcp", a.cfg.Admin.Listen); err != nil {
		return fmt.Errorf("cannot listen on admin.listen=%s: %w", a.cfg.Admin.Listen, err)
	}
	a.admin, err = withTLS(hangup.Persist(a.admin, a.watcher), "admin.tls", a.cfg.Admin.TLS)
	return err
}

// withTLS puts TLS on top of a listener where it is configured, with that key. HTTP/1.1 only.
func withTLS(ln net.Listener, key string, t *configs.ServerTLS) (net.Listener, error) {
	if t == nil {
		return ln, nil
	}
	cert, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return ln, fmt.Errorf("cannot use %s.cert=%s %s.key=%s: %w", key, t.Cert, key, t.Key, err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if t.ClientCA != "" {
		pem, err := os.ReadFile(t.ClientCA)
		if err != nil {
			return ln, fmt.Errorf("cannot read %s.client_ca=%s: %w", key, t.ClientCA, err)
		}
		c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !c.ClientCAs.AppendCertsFromPEM(pem) {
			return ln, fmt.Errorf("cannot use %s.client_ca=%s: no certificate in PEM form", key, t.ClientCA)
		}
	}
	return tls.NewListener(ln, c), nil
}

func newLog(c configs.Log, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: levelOf(c.Level)}
	if c.Format == export.FormatJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

func levelOf(name string) slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(name)); err != nil {
		panic("BUG: an unchecked log level: " + name)
	}
	return l
}
