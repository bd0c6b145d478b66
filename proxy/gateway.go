// Package proxy answers: how does one request get through?
//
// It owns the exchange: one client request and everything that is done for it,
// from the parsed head to the finished timeline. serve.go is its table of
// contents; read that first.
//
// Gateway's methods may be called from any goroutine. An exchange belongs to
// the server's goroutine of its connection; every other goroutine may only
// call abort.
//
// It never interprets the bytes of a dialect (wire does), never decides who may
// (limiter) or where to (routing), and never keeps prompt or answer text.
package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"tracegate/configs"
	"tracegate/fallback"
	"tracegate/limiter"
	"tracegate/routing"
	"tracegate/trace"
)

// Gateway is the data plane.
type Gateway struct {
	book    *trace.Book
	log     *slog.Logger
	started time.Time
	budget  *bodyBudget
	state   atomic.Pointer[snapshot]
	edges   fallback.Edges

	streams atomic.Int64 // exchanges now, bounded by limits.max_streams
	mode    atomic.Int32 // serving, unready, refusing

	background sync.WaitGroup // abort requests to engines
	stop       context.CancelFunc
	stopped    context.Context
}

// snapshot is everything that comes from the configuration. It is immutable;
// an exchange keeps the one it began with.
type snapshot struct {
	cfg       *configs.Config
	tenants   *limiter.Tenants
	table     *routing.Table
	upstreams map[*routing.Deployment]*upstream
}

// What the gateway does with new requests.
const (
	serving  int32 = iota
	unready        // still served, but readiness says no: the balancer is to go elsewhere
	refusing       // 503
)

// New builds the data plane of a checked configuration. Timelines go to book,
// state changes and internal errors to log.
func New(cfg *configs.Config, book *trace.Book, log *slog.Logger) (*Gateway, error) {
	return newGateway(cfg, book, log, nil)
}

// dialer replaces the way to upstreams, for in-memory connections.
type dialer func(ctx context.Context, addr string) (net.Conn, error)

func newGateway(cfg *configs.Config, book *trace.Book, log *slog.Logger, dial dialer) (*Gateway, error) {
	g := &Gateway{book: book, log: log, started: time.Now(), budget: newBodyBudget(cfg.Limits.BodyBudget)}
	g.stopped, g.stop = context.WithCancel(context.Background())
	s := &snapshot{
		cfg:       cfg,
		tenants:   limiter.NewTenants(cfg),
		table:     routing.NewTable(cfg, nil),
		upstreams: map[*routing.Deployment]*upstream{},
	}
	var err error
	s.table.Deployments(func(d *routing.Deployment) {
		if err == nil {
			s.upstreams[d], err = newUpstream(d, dial)
		}
	})
	if err != nil {
		s.close()
		return nil, err
	}
	g.state.Store(s)
	return g, nil
}

func (s *snapshot) close() {
	for _, up := range s.upstreams {
		if up != nil {
			up.pool.Close()
		}
	}
}

// Table is the routing table in force.
func (g *Gateway) Table() *routing.Table { return g.state.Load().table }

// Edges are the fallbacks that were taken from one model to another.
func (g *Gateway) Edges() *fallback.Edges { return &g.edges }

// Tenants are the tenants in force.
func (g *Gateway) Tenants() *limiter.Tenants { return g.state.Load().tenants }

// Config is the configuration in force.
func (g *Gateway) Config() *configs.Config { return g.state.Load().cfg }

// Ready says whether new requests are welcome.
func (g *Gateway) Ready() bool { return !g.Draining() }

// Draining says whether the gateway is on its way out.
func (g *Gateway) Draining() bool { return g.mode.Load() != serving }

// Streams is how many exchanges are under way.
func (g *Gateway) Streams() int64 { return g.streams.Load() }

// BodyBytes is how many bytes of request bodies are in memory.
func (g *Gateway) BodyBytes() int64 { return g.budget.inUse() }

const (
	writeBuffer = 2 << 10 // one event of an ordinary token and its framing in one write
	headTimeout = 30 * time.Second
	idleTimeout = 120 * time.Second // above the 60 s of common load balancers
)

// Server is the HTTP server whose handler is Serve. The caller owns it.
func (g *Gateway) Server() *fasthttp.Server {
	limits := g.Config().Limits
	return &fasthttp.Server{
		Handler:        g.Serve,
		HeaderReceived: g.headReceived,
		ExpectHandler:  g.expect,
		ErrorHandler:   g.refuseUnread,

		ReadBufferSize:     int(limits.MaxHeader), // the longest head that is read
		WriteBufferSize:    writeBuffer,
		MaxRequestBodySize: int(limits.MaxBody),
		ReadTimeout:        headTimeout,
		IdleTimeout:        idleTimeout,
		// No WriteTimeout: it is one instant for the whole answer and would cut
		// live streams. A client that takes no bytes is found by write_stall.

		ReduceMemoryUsage:            true, // no read buffer is held while a stream runs
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true, // its log lines would show Authorization
		CloseOnShutdown:              true,
		Concurrency:                  1 << 20, // connections, idle ones too; requests are bounded by limits.max_streams
		Logger:                       serverLog{g.log},
	}
}

// serverLog takes what the HTTP server has to say, at debug level: it reports
// every broken connection.
type serverLog struct{ log *slog.Logger }

const headProblem = "error when reading request headers"

// Printf implements fasthttp.Logger. What is wrong with a head is left out: the
// server quotes the line, which may hold a key.
func (l serverLog) Printf(format string, args ...any) {
	if !l.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	message := fmt.Sprintf(format, args...)
	if before, _, found := strings.Cut(message, headProblem); found {
		message = before + headProblem
	}
	l.log.Debug("http server", "message", message)
}

// Close ends what the gateway still does in the background and closes idle
// upstream connections. The server must have stopped.
func (g *Gateway) Close() {
	g.stop()
	g.background.Wait()
	g.state.Load().close()
}
