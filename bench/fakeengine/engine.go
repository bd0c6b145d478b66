package fakeengine

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// Engine is one simulated inference server. Make it with New, then Start it or Serve a listener; end it
// with Close or Kill.
type Engine struct {
	o       Options
	journal *journal
	core    *scheduler
	server  *http.Server

	mu          sync.Mutex
	conns       map[*faultConn]struct{}
	connections int64
	listener    net.Listener // of Start, while it listens
	addr        string       // of Start
	script      []*scripted
	random      *rand.Rand
	hashSeed    maphash.Seed
	mode        mode
	closes      Closes
	abortCalls  []string
	hits        map[string]int64 // requests by path, scrapes and probes too
	answering   int64            // handlers running now

	quit     chan struct{} // closed by Close and Kill: handlers stop waiting
	closing  sync.Once
	closed   bool           // under mu: nothing joins handlers any more
	handlers sync.WaitGroup // handlers, serving goroutines, late aborts
}

// mode is the life phase that decides what new requests get.
type mode int

const (
	modeServing  mode = iota
	modeDraining      // /health 200, new work 500
	modeDead          // engine core dead: /health 503, new work 500
)

// Closes counts clients that left, by where the engine stood with their request.
type Closes struct {
	Queued    int64 `json:"queued"`
	Prefill   int64 `json:"prefill"`
	Decode    int64 `json:"decode"`
	NonStream int64 `json:"non_stream"` // of the above, those without stream
	Other     int64 `json:"other"`      // not in the engine: held by a fault, or already generated
}

// Stats is the engine's live state.
type Stats struct {
	Running     int              `json:"running"`     // sequences in the batch
	Waiting     int              `json:"waiting"`     // sequences in the queue
	KVUsed      float64          `json:"kv_used"`     // share of the KV cache that running sequences hold, 0 to 1
	Connections int              `json:"connections"` // open now
	Accepted    int64            `json:"accepted"`
	Handlers    int64            `json:"handlers"` // requests being answered now
	Generated   int64            `json:"generated_tokens"`
	Preemptions int64            `json:"preemptions"`
	PrefixHits  int64            `json:"prefix_hit_tokens"`
	Queries     int64            `json:"prefix_query_tokens"`
	Closes      Closes           `json:"closes"`
	Hits        map[string]int64 `json:"hits"`
}

// New makes an engine and starts its scheduler.
func New(o Options) *Engine {
	o = o.withDefaults()
	j := newJournal()
	e := &Engine{
		o: o, journal: j, core: newScheduler(o, j),
		conns:  make(map[*faultConn]struct{}),
		hits:   make(map[string]int64),
		random: rand.New(rand.NewPCG(o.Seed, 0x1d5)), hashSeed: maphash.MakeSeed(),
		quit: make(chan struct{}),
	}
	e.server = &http.Server{
		Handler:     http.HandlerFunc(e.serve),
		IdleTimeout: max(o.KeepAlive, 0),
		ErrorLog:    log.New(io.Discard, "", 0), // broken clients are the point here
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
		MaxHeaderBytes: 5 << 20,
	}
	go e.core.run()
	return e
}

// Serve answers on ln until Close or Kill, which make it return nil.
func (e *Engine) Serve(ln net.Listener) error {
	err := e.server.Serve(&faultListener{ln, e})
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("cannot serve the fake engine on %s: %w", ln.Addr(), err)
}

// Start listens on a free port of 127.0.0.1 and serves in the background.
// The base URL is without /v1.
func (e *Engine) Start() (baseURL string, err error) { return e.StartAt("127.0.0.1:0") }

// StartAt is Start on a given address.
func (e *Engine) StartAt(addr string) (baseURL string, err error) {
	if err := e.listen(addr); err != nil {
		return "", err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return "http://" + e.addr, nil
}

func (e *Engine) listen(addr string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("cannot start the fake engine listen=%s: %w", addr, err)
	}
	e.mu.Lock()
	e.listener, e.addr = ln, ln.Addr().String()
	e.mu.Unlock()
	if !e.spawn(func() { _ = e.Serve(ln) }) { // ends with the listener
		_ = ln.Close()
		return fmt.Errorf("cannot start the fake engine listen=%s: it is closed", addr)
	}
	return nil
}

// enter joins the group that Close waits for; the caller leaves it with handlers.Done.
func (e *Engine) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.handlers.Add(1)
	return true
}

func (e *Engine) spawn(f func()) bool {
	if !e.enter() {
		return false
	}
	go func() {
		defer e.handlers.Done()
		f()
	}()
	return true
}

// closeGrace is how long Close lets running answers finish.
const closeGrace = 200 * time.Millisecond

// Close stops listening, lets running answers finish for a moment, then cuts them. It returns when no
// handler of the engine is left.
func (e *Engine) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	_ = e.server.Shutdown(ctx) // what it leaves is cut by stop
	e.stop(false)
}

// Kill ends every connection with a reset, without a word.
func (e *Engine) Kill() { e.stop(true) }

func (e *Engine) stop(reset bool) {
	e.closing.Do(func() {
		if reset {
			e.StopListening()
			e.resetConns(nil)
		}
		e.mu.Lock()
		e.closed = true
		e.mu.Unlock()
		close(e.quit)
		close(e.core.quit)
	})
	_ = e.server.Close() // listeners and connections that are still open
	e.handlers.Wait()
	<-e.core.done
}

// StopListening makes connects be refused; open connections live on.
func (e *Engine) StopListening() {
	e.mu.Lock()
	ln := e.listener
	e.listener = nil
	e.mu.Unlock()
	if ln != nil {
		_ = ln.Close() // a second close is harmless
	}
}

// ResumeListening listens again on the address of Start.
func (e *Engine) ResumeListening() error {
	e.mu.Lock()
	addr := e.addr
	e.mu.Unlock()
	return e.listen(addr)
}

// Freeze stops the engine core in the middle of what it does: no token, gauges as they were, /health green.
func (e *Engine) Freeze() { e.core.setFrozen(true) }

// Thaw lets a frozen core go on.
func (e *Engine) Thaw() { e.core.setFrozen(false) }

// Die kills the engine core: streams get the in-stream error of their dialect, /health is 503, new work 500.
func (e *Engine) Die() {
	e.setMode(modeDead)
	e.core.drop(reasonError, true)
}

// Drain refuses new work with 500 while /health stays 200 and running answers go on.
func (e *Engine) Drain() { e.setMode(modeDraining) }

// TerminateSilently is a SIGTERM lost to the race: nobody listens, idle connections are closed, and open
// streams are silent without end.
func (e *Engine) TerminateSilently() {
	e.StopListening()
	e.Freeze()
	e.closeIdleConns()
}

// AbortAll ends every running answer with finish_reason abort.
func (e *Engine) AbortAll() { e.core.drop(reasonAbort, false) }

// Restart is a new process on the same port: connections are cut, counters and caches are empty. An engine
// of Start listens again if it had stopped.
func (e *Engine) Restart() error { return e.restart(nil) }

// restart spares the connection over which it was asked for.
func (e *Engine) restart(except *faultConn) error {
	e.resetConns(except)
	e.core.restart()
	e.setMode(modeServing)
	e.mu.Lock()
	listens := e.listener != nil || e.addr == ""
	e.mu.Unlock()
	if listens {
		return nil
	}
	return e.ResumeListening()
}

func (e *Engine) setMode(m mode) {
	e.mu.Lock()
	e.mode = m
	e.mu.Unlock()
	e.journal.poke()
}

func (e *Engine) currentMode() mode {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mode
}

// Running is the number of sequences in the batch.
func (e *Engine) Running() int { return e.Stats().Running }

// Stats returns the live state, which a frozen metrics page does not show.
func (e *Engine) Stats() Stats {
	e.core.mu.Lock()
	s := Stats{
		Running: len(e.core.running), Waiting: len(e.core.waiting), KVUsed: e.core.pool.used(),
		Generated: e.core.meters.generation, Preemptions: e.core.meters.preemptions,
		PrefixHits: e.core.meters.hits, Queries: e.core.meters.queries,
	}
	e.core.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Connections, s.Accepted, s.Handlers, s.Closes = len(e.conns), e.connections, e.answering, e.closes
	s.Hits = maps.Clone(e.hits)
	return s
}

// newID returns prefix and 16 hex digits, as vLLM makes its ids.
func (e *Engine) newID(prefix string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return fmt.Sprintf("%s%016x", prefix, e.random.Uint64())
}
