package load

import (
	"bytes"
	"container/heap"
	"math"
	"sync"
	"time"
)

// pacer writes the tokens of all flows, each at its time, from one thread: what it costs per token is one system call.
type pacer struct {
	alarm   *alarm
	flows   flowHeap // owned by run
	scratch []byte   // owned by run
	writers sync.WaitGroup

	mu      sync.Mutex
	inbox   []*flow
	sleepTo int64 // run is asleep until then; 0: awake
	stopped bool
}

func newPacer() (*pacer, error) {
	a, err := newAlarm()
	if err != nil {
		return nil, err
	}
	return &pacer{alarm: a}, nil
}

func (p *pacer) add(f *flow) {
	p.mu.Lock()
	p.inbox = append(p.inbox, f)
	ring := f.due < p.sleepTo
	p.mu.Unlock()
	if ring {
		p.alarm.ring()
	}
}

func (p *pacer) stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.alarm.ring()
}

// run returns after stop. The connections are closed by then or soon, so its writers end too.
func (p *pacer) run() {
	p.alarm.own()
	for {
		now := Now()
		p.mu.Lock()
		for _, f := range p.inbox {
			heap.Push(&p.flows, f)
		}
		clear(p.inbox)
		p.inbox = p.inbox[:0]
		next, stopped := int64(math.MaxInt64), p.stopped
		if len(p.flows) > 0 {
			next = p.flows[0].due
		}
		p.sleepTo = 0
		if next > now {
			p.sleepTo = next
		}
		p.mu.Unlock()
		switch {
		case stopped:
			p.writers.Wait()
			return
		case next > now:
			p.alarm.wait(min(next, now+int64(time.Hour)))
		default:
			p.step(heap.Pop(&p.flows).(*flow))
		}
	}
}

func (p *pacer) step(f *flow) {
	if f.order.gap == 0 {
		p.writers.Go(f.pour)
		return
	}
	b, last, ok := f.next(p.scratch[:0])
	if !ok {
		return
	}
	p.scratch = b
	f.due = max(f.due+int64(f.order.gap), Now()) // a late token does not make the next ones come in a burst
	rest := tryWrite(f.conn.nc, b)
	if len(rest) > 0 { // a slow reader: it must not hold up the others
		rest = bytes.Clone(rest)
		p.writers.Go(func() {
			if _, err := f.conn.nc.Write(rest); err == nil && !last {
				p.add(f)
			}
		})
		return
	}
	if !last {
		heap.Push(&p.flows, f)
	}
}

type flowHeap []*flow

func (h flowHeap) Len() int           { return len(h) }
func (h flowHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h flowHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *flowHeap) Push(x any)        { *h = append(*h, x.(*flow)) }
func (h *flowHeap) Pop() any {
	old := *h
	f := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return f
}
