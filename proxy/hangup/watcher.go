package hangup

import "sync/atomic"

// Watcher learns from the kernel which clients have left. One serves all listeners.
type Watcher struct {
	closed  atomic.Bool
	retries atomic.Uint64
	poller
}

// NewWatcher makes a Watcher. Its goroutine starts with the first connection that the
// kernel can watch.
func NewWatcher() (*Watcher, error) {
	w := new(Watcher)
	if err := w.open(); err != nil {
		return nil, err
	}
	return w, nil
}

// Close ends the watching and waits for the goroutine. It must not be called from a
// leave function. Connections stay usable; a client that leaves from now on is noticed
// only by a failing Write. Background reads end with their Unwatch or Close.
func (w *Watcher) Close() {
	if !w.closed.Swap(true) {
		w.shut()
	}
}

// AcceptRetries is how often Accept of a listener over this Watcher failed for want of
// descriptors or memory, and was tried again. It only grows.
func (w *Watcher) AcceptRetries() uint64 { return w.retries.Load() }
