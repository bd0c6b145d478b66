package hangup

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// poller is one epoll instance and the table behind its events.
//
// Its descriptor is itself parked in the runtime's poller, so waiting holds no thread.
// Each connection is added once, edge-triggered and without EPOLLIN: arriving data
// wakes nobody. Closing a descriptor removes it from the instance. An event read before
// that may be looked up after it, when the slot belongs to another connection already:
// the generation in the event tells the two apart.
type poller struct {
	file   *os.File
	raw    syscall.RawConn
	events [128]unix.EpollEvent
	stale  atomic.Uint64

	mu    sync.Mutex
	fd    int // valid while open
	live  bool
	slots []slot
	free  []uint32
	done  chan struct{} // non-nil once the goroutine runs; closed at its end
}

type slot struct {
	conn *Conn
	gen  uint32
}

// slotRef is what an event carries. gen 0 is no slot.
type slotRef struct{ index, gen uint32 }

func (p *poller) open() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("cannot create hang-up watcher: %w", os.NewSyscallError("epoll_create1", err))
	}
	// Non-blocking before NewFile: that is what makes the runtime's poller take it.
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return fmt.Errorf("cannot create hang-up watcher: %w", os.NewSyscallError("fcntl", err))
	}
	p.file = os.NewFile(uintptr(fd), "hangup")
	if p.raw, err = p.file.SyscallConn(); err != nil {
		_ = p.file.Close()
		return fmt.Errorf("cannot create hang-up watcher: %w", err)
	}
	p.fd, p.live = fd, true
	return nil
}

// add registers c once for its life. False: the kernel cannot watch it.
func (p *poller) add(c *Conn, raw syscall.RawConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.live {
		return false
	}
	ref := p.take(c)
	var err error
	cerr := raw.Control(func(fd uintptr) {
		ev := unix.EpollEvent{Events: unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(ref.index), Pad: int32(ref.gen)}
		err = unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, int(fd), &ev)
	})
	if err != nil || cerr != nil {
		p.release(ref)
		return false
	}
	c.slot = ref
	if p.done == nil {
		p.done = make(chan struct{})
		go p.run()
	}
	return true
}

// drop gives c's slot back. It may be called more than once.
func (p *poller) drop(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.slot.gen != 0 {
		p.release(c.slot)
		c.slot = slotRef{}
	}
}

func (p *poller) take(c *Conn) slotRef {
	var i uint32
	if n := len(p.free); n > 0 {
		i, p.free = p.free[n-1], p.free[:n-1]
	} else {
		i = uint32(len(p.slots))
		p.slots = append(p.slots, slot{gen: 1})
	}
	p.slots[i].conn = c
	return slotRef{index: i, gen: p.slots[i].gen}
}

func (p *poller) release(r slotRef) {
	s := &p.slots[r.index]
	s.conn = nil
	if s.gen++; s.gen == 0 {
		s.gen = 1
	}
	p.free = append(p.free, r.index)
}

// lookup finds the connection of an event, nil if it was closed in the meantime.
func (p *poller) lookup(ev *unix.EpollEvent) *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.slots[uint32(ev.Fd)]
	if s.gen != uint32(ev.Pad) {
		p.stale.Add(1)
		return nil
	}
	return s.conn
}

// run hands out the events until the instance is closed.
func (p *poller) run() {
	defer close(p.done)
	for {
		n, err := p.wait()
		if err != nil {
			return
		}
		for i := range p.events[:n] {
			if c := p.lookup(&p.events[i]); c != nil {
				c.depart()
			}
		}
	}
}

func (p *poller) wait() (n int, err error) {
	rerr := p.raw.Read(func(fd uintptr) bool {
		for {
			n, err = unix.EpollWait(int(fd), p.events[:], 0)
			if err != unix.EINTR {
				return n != 0
			}
		}
	})
	if rerr != nil {
		err = rerr
	}
	return n, err
}

func (p *poller) shut() {
	p.mu.Lock()
	p.live = false
	done := p.done
	p.mu.Unlock()
	_ = p.file.Close()
	if done != nil {
		<-done
	}
}

// StaleEvents is how many events came in for connections that were closed in the
// meantime, and were discarded.
func (w *Watcher) StaleEvents() uint64 { return w.stale.Load() }
