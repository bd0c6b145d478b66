package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tracegate/bench/fakeengine"
	"tracegate/trace"
)

// Many complete and aborted answers at once, over reused connections: each
// client gets its own answer, and nothing is left behind. TRACEGATE_SOAK=1
// makes it 10,000 of them.

const (
	streamsAtOnce = 100
	streamsShort  = 1500
	streamsSoak   = 10_000
)

func TestStreamsDoNotMix(t *testing.T) {
	total := streamsShort
	if os.Getenv("TRACEGATE_SOAK") == "1" {
		total = streamsSoak
	}
	r := newRig(t, setup{engine: fakeengine.Options{MaxNumSeqs: streamsAtOnce, StepBase: 2 * time.Millisecond, StepPerSeq: time.Microsecond}})
	var next, complete atomic.Int64
	var clients sync.WaitGroup
	for n := range streamsAtOnce {
		clients.Go(func() {
			c := caller{rig: r, random: rand.New(rand.NewPCG(1, uint64(n)))}
			defer c.hangUp()
			for i := next.Add(1); i <= int64(total) && !t.Failed(); i = next.Add(1) {
				whole, err := c.ask(int(i))
				if err != nil {
					t.Errorf("request %d: %v", i, err)
				}
				if whole {
					complete.Add(1)
				}
			}
		})
	}
	clients.Wait()
	if t.Failed() {
		return
	}
	isSettled(t, r, total, int(complete.Load()))
}

// isSettled checks the records of all requests and what the engine still holds.
func isSettled(t *testing.T, r *rig, total, complete int) {
	t.Helper()
	outcomes := map[trace.Outcome]int{}
	for range total {
		outcomes[r.record().Outcome]++
	}
	t.Logf("%d complete, outcomes %v", complete, outcomes)
	equal(t, "ok or aborted", outcomes[trace.OK]+outcomes[trace.ClientAbort], total)
	if outcomes[trace.OK] < complete || outcomes[trace.ClientAbort] == 0 {
		t.Errorf("%d complete answers, but outcomes %v", complete, outcomes)
	}
	counts := r.gateway.Table().State()[0].Deployments[0].Counts
	equal(t, "counted ok", counts.OK, int64(outcomes[trace.OK]))
	equal(t, "counted fault", counts.Fault, 0)
	isAtRest(t, r)
	for _, up := range r.gateway.state.Load().upstreams {
		r.await("every connection at the engine is idle or closed", func() bool { return r.engine.Stats().Connections == up.pool.Idle() })
	}
}

// caller is a client that keeps its connection from one answer to the next.
type caller struct {
	*rig
	random *rand.Rand
	conn   net.Conn
	br     *bufio.Reader
}

func (c *caller) hangUp() {
	if c.conn == nil {
		return
	}
	if tcp, ok := c.conn.(*net.TCPConn); ok && c.random.IntN(2) == 0 {
		_ = tcp.SetLinger(0) // a reset instead of a close
	}
	_ = c.conn.Close()
	c.conn = nil
}

// marks are what prompts carry and answers repeat.
var marks = regexp.MustCompile(`MARK-[0-9a-f]{8}`)

// ask sends request i and reads its answer, or leaves somewhere on the way.
func (c *caller) ask(i int) (whole bool, err error) {
	d := dialects[c.random.IntN(len(dialects))]
	stream := c.random.IntN(4) > 0
	mark := fmt.Sprintf("MARK-%08x", i*0x9e3779b1&0xffffffff)
	if c.conn == nil {
		if c.conn, err = c.dialer(); err != nil {
			return false, err
		}
		c.br = bufio.NewReader(c.conn)
	}
	if _, err = io.WriteString(c.conn, request(d.path, d.body(stream, "Say "+mark+" and FAKE-TOKENS-24 please"))); err != nil {
		return false, err
	}
	stay := -1 // bytes of the answer that are read
	switch c.random.IntN(6) {
	case 0: // at once; not by a reset, which could take the request with it
		_ = c.conn.Close()
		c.conn = nil
		return false, nil
	case 1, 2:
		stay = c.random.IntN(3000)
	}
	return c.read(mark, stay)
}

func (c *caller) read(mark string, stay int) (whole bool, err error) {
	resp, err := http.ReadResponse(c.br, nil)
	if err != nil {
		return false, err
	}
	var body []byte
	if stay < 0 {
		body, err = io.ReadAll(resp.Body)
	} else {
		body = make([]byte, stay)
		n, _ := io.ReadFull(resp.Body, body) // the answer may be shorter
		body = body[:n]
		c.hangUp()
	}
	switch id := resp.Header.Get("X-Request-Id"); {
	case err != nil:
		return false, err
	case resp.StatusCode != 200:
		return false, fmt.Errorf("status %d: %s", resp.StatusCode, body)
	case stay < 0 && !bytes.Contains(body, []byte(id+"-a1")):
		return false, fmt.Errorf("an answer to another request than %s: %s", id, body)
	case stay < 0 && !strings.Contains(string(body), mark):
		return false, fmt.Errorf("no %s in %s", mark, body)
	}
	for _, m := range marks.FindAll(body, -1) {
		if string(m) != mark {
			return false, fmt.Errorf("%s in the answer to %s", m, mark)
		}
	}
	return stay < 0, nil
}
