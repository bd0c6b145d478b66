package fakeengine

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipeListener hands net.Pipe connections to a server, so that time can be virtual.
type pipeListener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.done:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// virtual runs f in a bubble with an engine and a client of it.
func virtual(t *testing.T, o Options, f func(t *testing.T, e *Engine, c *http.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := New(o)
		ln := newPipeListener()
		var serving sync.WaitGroup
		serving.Go(func() {
			if err := e.Serve(ln); err != nil {
				t.Error(err)
			}
		})
		tr := &http.Transport{DialContext: ln.dial, DisableCompression: true}
		f(t, e, &http.Client{Transport: tr})
		tr.CloseIdleConnections()
		e.Close()
		serving.Wait()
	})
}

// send starts a chat request and returns when its head is here.
func send(t *testing.T, c *http.Client, ctx context.Context, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://fake/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// prompt is a chat request for n tokens with a prompt of about so many tokens.
func prompt(tokens, n int, text string) string {
	body := `{"model":"fake-model","stream":true,"ignore_eos":true,"max_tokens":` + strconv.Itoa(n) + `,"messages":[{"role":"user","content":"` + text
	return body + strings.Repeat("x", max(0, 4*tokens-len(text)-30)) + `"}]}`
}

func drain(t *testing.T, resp *http.Response) {
	t.Helper()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
	_ = resp.Body.Close()
}

// timed gives an engine whose steps last exactly 10 ms and whose prefill is exactly 10,000 tokens/s.
func timed() Options {
	return Options{StepBase: 10 * time.Millisecond, StepPerSeq: time.Nanosecond, StepPerKiloContext: time.Nanosecond, PrefillRate: 10_000, KeepTokenStamps: true}
}

func about(got, want time.Duration) bool {
	d := got - want
	return d > -2*time.Millisecond && d < 2*time.Millisecond
}

func TestHeadersComeFirstThenSilenceThenTokens(t *testing.T) {
	virtual(t, timed(), func(t *testing.T, e *Engine, c *http.Client) {
		begin := time.Now()
		resp := send(t, c, t.Context(), prompt(2000, 5, "a"))
		if d := time.Since(begin); d != 0 {
			t.Errorf("headers after %v, want at once", d)
		}
		drain(t, resp)
		l := e.Requests()[0]
		if d := l.FirstToken.Sub(begin); !about(d, 210*time.Millisecond) {
			t.Errorf("first token after %v, want one step and 200 ms of prefill", d)
		}
		if d := l.LastToken.Sub(l.FirstToken); !about(d, 40*time.Millisecond) {
			t.Errorf("4 further tokens took %v, want 40 ms", d)
		}
	})
}

func TestSGLangSendsHeadersWithTheFirstToken(t *testing.T) {
	o := timed()
	o.Flavor = SGLang
	virtual(t, o, func(t *testing.T, _ *Engine, c *http.Client) {
		begin := time.Now()
		resp := send(t, c, t.Context(), prompt(2000, 5, "a"))
		if d := time.Since(begin); !about(d, 210*time.Millisecond) {
			t.Errorf("headers after %v, want with the first token", d)
		}
		drain(t, resp)
	})
}

func TestTheQueueIsFirstComeFirstServed(t *testing.T) {
	o := timed()
	o.MaxNumSeqs = 2
	virtual(t, o, func(t *testing.T, e *Engine, c *http.Client) {
		var all []*http.Response
		for range 3 {
			all = append(all, send(t, c, t.Context(), prompt(40, 10, "a")))
			synctest.Wait()
		}
		time.Sleep(50 * time.Millisecond)
		if s := e.Stats(); s.Running != 2 || s.Waiting != 1 {
			t.Errorf("running %d, waiting %d; want 2, 1", s.Running, s.Waiting)
		}
		for _, r := range all {
			go drain(t, r)
		}
		waitStats(t, e, idle)
		logs := e.Requests()
		if d := logs[2].Scheduled.Sub(logs[0].Freed); d < 0 || d > 10*time.Millisecond {
			t.Errorf("the third was scheduled %v after a place was free", d)
		}
		if logs[2].CachedTokens == 0 {
			t.Error("the third found nothing of the same prompt in the cache")
		}
	})
}

func TestThePrefixCacheShortensTheSecondPrefill(t *testing.T) {
	for _, off := range []bool{false, true} {
		o := timed()
		o.NoPrefixCache = off
		virtual(t, o, func(t *testing.T, e *Engine, c *http.Client) {
			for range 2 {
				drain(t, send(t, c, t.Context(), prompt(4000, 2, "same")))
			}
			l := e.Requests()
			first, second := l[0].FirstToken.Sub(l[0].Arrived), l[1].FirstToken.Sub(l[1].Arrived)
			if off && (!about(first-second, 0) || l[1].CachedTokens != 0) {
				t.Errorf("without a cache: %v, then %v", first, second)
			}
			if !off && (second > 15*time.Millisecond || l[1].CachedTokens < 3900) {
				t.Errorf("with a cache: %v, then %v with %d cached tokens", first, second, l[1].CachedTokens)
			}
		})
	}
}

func TestALongPrefillBlocksDecodesOnlyWithoutChunks(t *testing.T) {
	for _, whole := range []bool{false, true} {
		o := timed()
		o.WholePrefill, o.ChunkTokens = whole, 500
		virtual(t, o, func(t *testing.T, e *Engine, c *http.Client) {
			victim := send(t, c, t.Context(), prompt(40, 200, "victim"))
			go drain(t, victim)
			time.Sleep(105 * time.Millisecond)
			drain(t, send(t, c, t.Context(), prompt(10_000, 2, "long")))
			waitStats(t, e, idle)
			var longest time.Duration
			stamps := e.Requests()[0].TokenStamps
			for i := 1; i < len(stamps); i++ {
				longest = max(longest, stamps[i].Sub(stamps[i-1]))
			}
			if whole && longest < time.Second {
				t.Errorf("whole prefill: longest gap %v, want the second that the prefill takes", longest)
			}
			if !whole && longest > 80*time.Millisecond {
				t.Errorf("chunked prefill: longest gap %v, want one chunk", longest)
			}
		})
	}
}

func TestAFullCachePreemptsTheNewest(t *testing.T) {
	o := timed()
	o.KVBlocks, o.MaxModelLen = 40, 640 // 640 tokens
	virtual(t, o, func(t *testing.T, e *Engine, c *http.Client) {
		for range 2 {
			go drain(t, send(t, c, t.Context(), prompt(100, 400, "a")))
			synctest.Wait()
		}
		s := waitStats(t, e, func(s Stats) bool { return s.Running == 1 && s.Waiting == 1 && s.KVUsed > 0.45 })
		if s.Preemptions != 0 {
			t.Errorf("%d preemptions counted at once; it is counted when it runs again", s.Preemptions)
		}
		waitStats(t, e, idle)
		logs := e.Requests()
		if logs[0].Preemptions != 0 || logs[1].Preemptions != 1 || e.Stats().Preemptions != 1 {
			t.Errorf("preemptions: first %d, second %d", logs[0].Preemptions, logs[1].Preemptions)
		}
		if logs[0].OutputTokens != 400 || logs[1].OutputTokens != 400 {
			t.Errorf("outputs %d and %d, want all 400", logs[0].OutputTokens, logs[1].OutputTokens)
		}
		if kv := e.Stats().KVUsed; kv != 0 {
			t.Errorf("kv %.3f is still held", kv)
		}
	})
}

func TestALeavingClientFreesAtTheNextStep(t *testing.T) {
	for _, c := range []struct {
		name  string
		mode  AbortMode
		wait  time.Duration // after the client left
		freed bool
	}{
		{"immediate", AbortImmediate, 12 * time.Millisecond, true},
		{"late not yet", AbortLate, 1900 * time.Millisecond, false},
		{"late", AbortLate, 2020 * time.Millisecond, true},
		{"never", AbortNever, 5 * time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := timed()
			o.Abort = c.mode
			virtual(t, o, func(t *testing.T, e *Engine, client *http.Client) {
				ctx, cancel := context.WithCancel(t.Context())
				resp := send(t, client, ctx, prompt(40, 1000, "a"))
				if _, err := resp.Body.Read(make([]byte, 100)); err != nil {
					t.Fatal(err)
				}
				cancel()
				_ = resp.Body.Close()
				time.Sleep(c.wait)
				if l := e.Requests()[0]; l.Freed.IsZero() == c.freed {
					t.Errorf("freed: %v after %v, want %v", !l.Freed.IsZero(), c.wait, c.freed)
				}
				e.AbortAll()
			})
		})
	}
}

func TestAFrozenCoreKeepsItsGauges(t *testing.T) {
	virtual(t, timed(), func(t *testing.T, e *Engine, c *http.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		resp := send(t, c, ctx, prompt(40, 1000, "a"))
		defer resp.Body.Close()
		go func() { _, _ = io.Copy(io.Discard, resp.Body) }()
		time.Sleep(55 * time.Millisecond)
		e.Freeze()
		time.Sleep(time.Second)
		before := e.Requests()[0].Events
		second := send(t, c, ctx, prompt(40, 1000, "b"))
		defer second.Body.Close()
		time.Sleep(10 * time.Second)
		page := string(e.metricsPage())
		for _, want := range []string{`vllm:num_requests_running{engine="0",model_name="fake-model"} 1.0`, `vllm:num_requests_waiting{engine="0",model_name="fake-model"} 0.0`} {
			if !strings.Contains(page, want) {
				t.Errorf("no %s", want)
			}
		}
		if after := e.Requests()[0].Events; after != before {
			t.Errorf("%d events, then %d: tokens came out of a frozen core", before, after)
		}
		e.Thaw()
		time.Sleep(time.Second)
		if e.Requests()[0].Events == before || e.Running() != 2 {
			t.Error("a thawed core does not go on")
		}
	})
}

func TestIdleConnectionsCloseAfterKeepAlive(t *testing.T) {
	virtual(t, Options{}, func(t *testing.T, e *Engine, c *http.Client) {
		resp, err := c.Get("http://fake/health")
		if err != nil {
			t.Fatal(err)
		}
		drain(t, resp)
		time.Sleep(4999 * time.Millisecond)
		if n := e.Stats().Connections; n != 1 {
			t.Fatalf("%d connections before the keep-alive ends", n)
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if n := e.Stats().Connections; n != 0 {
			t.Errorf("%d connections after it", n)
		}
	})
}

// TestAnIdleEngineLetsTimePass: while a goroutine spins, virtual time stands still and this does not end.
func TestAnIdleEngineLetsTimePass(t *testing.T) {
	virtual(t, Options{}, func(*testing.T, *Engine, *http.Client) { time.Sleep(24 * time.Hour) })
}

func TestBiggerBatchesAndContextsAreSlower(t *testing.T) {
	o := Options{StepBase: 10 * time.Millisecond, StepPerSeq: time.Millisecond, StepPerKiloContext: time.Millisecond, KeepTokenStamps: true, NoPrefixCache: true}
	gap := func(streams, tokens int) (d time.Duration) {
		virtual(t, o, func(t *testing.T, e *Engine, c *http.Client) {
			for range streams {
				go drain(t, send(t, c, t.Context(), prompt(tokens, 100, "a")))
			}
			waitStats(t, e, idle)
			s := e.Requests()[0].TokenStamps
			d = s[len(s)-1].Sub(s[len(s)-2])
		})
		return d
	}
	alone, crowd, long := gap(1, 40), gap(20, 40), gap(1, 8000)
	if crowd < alone+10*time.Millisecond || long < alone+6*time.Millisecond {
		t.Errorf("gaps: alone %v, of 20 %v, with 8,000 tokens %v", alone, crowd, long)
	}
}

// virtualRaw asks once in virtual time and gives the body and the time until its end.
func virtualRaw(t *testing.T, o Options, faults []Fault, body string, got func(body string, took time.Duration)) {
	t.Helper()
	virtual(t, o, func(t *testing.T, e *Engine, c *http.Client) {
		e.Script(faults...)
		begin := time.Now()
		resp := send(t, c, t.Context(), body)
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		_ = resp.Body.Close()
		got(string(b), time.Since(begin))
	})
}
