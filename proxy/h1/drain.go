package h1

import "time"

const (
	drainTime  = 2 * time.Second
	drainBytes = 64 << 10
)

// drain reads the rest of an answer that nobody wants any more, so that its
// connection can serve again: usually the last chunk, which often arrives just
// behind the terminal event. The goroutine ends with the body, at drainTime, at
// drainBytes, or with Pool.Close, whichever is first.
func (p *Pool) drain(l *link, body bodyState, in inbox) {
	if body.framing == byClose || body.left > drainBytes || !p.trackDrain(l) {
		in.drop()
		l.kill()
		return
	}
	go func() {
		clean := drained(l, &body, &in)
		in.drop()
		p.mu.Lock()
		delete(p.draining, l)
		p.mu.Unlock()
		if clean {
			p.put(l)
		} else {
			l.kill()
		}
	}()
}

func (p *Pool) trackDrain(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.draining[l] = struct{}{}
	return true
}

// drained reads to the end of the body: true if that is where the data ended.
func drained(l *link, body *bodyState, in *inbox) bool {
	until := time.Now().Add(drainTime)
	l.read, l.write = deadline{at: until}, deadline{at: until}
	if l.raw.SetDeadline(until) != nil {
		return false
	}
	for budget := drainBytes; ; {
		if !in.empty() {
			budget -= len(in.unread())
			if _, err := body.decode(in); err != nil {
				return false
			}
		}
		if body.done() {
			return in.empty()
		}
		if budget <= 0 {
			return false
		}
		in.drop()
		if n, _ := l.fill(in); n == 0 {
			return false
		}
	}
}
