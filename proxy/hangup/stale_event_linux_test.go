package hangup

import (
	"net"
	"testing"
)

// TestStaleEventIsDiscarded makes two departures arrive in one batch. Handling the first
// closes the second's connection and accepts another one in its slot; the event that is
// still in the batch must not reach the newcomer.
func TestStaleEventIsDiscarded(t *testing.T) {
	w := newWatcher(t)
	inner, dial := tcpTransport(t)
	ln := NewListener(inner, w)
	defer ln.Close()
	blocker, blockerClient := connectOver(t, ln, dial)
	a, aClient := connectOver(t, ln, dial)
	b, bClient := connectOver(t, ln, dial)

	blocked, release := make(chan struct{}), make(chan struct{})
	blocker.Watch(func() { close(blocked); <-release })
	blockerClient.Close()
	arrives(t, "leave of the blocker", blocked)

	type newcomer struct {
		server *Conn
		client net.Conn
	}
	first := make(chan newcomer, 2)
	leave, left := signal()
	replace := func(other *Conn) func() {
		return func() {
			slot := other.slot
			other.Close()
			s, c := connectOver(t, ln, dial)
			if s.slot.index != slot.index || s.slot.gen == slot.gen {
				t.Errorf("newcomer has slot %+v, the closed connection had %+v", s.slot, slot)
			}
			if s.Watch(leave) {
				t.Error("the newcomer is gone")
			}
			first <- newcomer{s, c}
		}
	}
	a.Watch(replace(b))
	b.Watch(replace(a))
	aClient.Close()
	bClient.Close()
	// Both ends of stream have reached this side once Read sees them.
	for _, c := range []*Conn{a, b} {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("Read after the client's close returned no error")
		}
	}
	close(release)
	n := arrives(t, "the first departure", first)
	eventually(t, "the stale event", func() bool { return w.StaleEvents() == 1 })
	if n.server.Unwatch() || n.server.Gone() {
		t.Error("the newcomer got the departure of the connection before it")
	}
	notLeft(t, left)
	n.server.Watch(leave)
	n.client.Close()
	arrives(t, "the newcomer's own departure", left)
}

func TestSlotsAreUsedAgain(t *testing.T) {
	w := newWatcher(t)
	inner, dial := tcpTransport(t)
	ln := NewListener(inner, w)
	defer ln.Close()
	for range 50 {
		s, c := connectOver(t, ln, dial)
		s.Close()
		s.Close() // gives the slot back once
		c.Close()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.slots) != 1 || len(w.free) != 1 {
		t.Errorf("%d slots, %d free; want one that is free", len(w.slots), len(w.free))
	}
}

func TestGenerationZeroIsNeverGivenOut(t *testing.T) {
	var p poller
	ref := p.take(new(Conn))
	p.slots[ref.index].gen = ^uint32(0)
	p.release(slotRef{index: ref.index})
	if got := p.take(new(Conn)); got.gen != 1 {
		t.Errorf("generation %d after the largest, want 1", got.gen)
	}
}
