// Package h1 answers: how do bytes get to an upstream and back, abortably?
//
// It owns the connections to one upstream (a Pool per Target): dialling, the
// tunnel through a CONNECT proxy, TLS, idle connections and their age, and the
// HTTP/1.1 framing of one request and its answer (a Call). Heads are written
// and parsed by fasthttp; waiting, bodies and reuse are done here, because a
// request must be abortable while it dials, waits for a head or idles in a
// stream, and an idle stream must not hold a buffer.
//
// A Pool may be used from any goroutine. A Call belongs to one goroutine, its
// owner, which calls Connect, Write, ReadHead, Next and at last Finish or
// Discard. Only Abort and Wake may come from elsewhere, at any time, also
// after the end, when they do nothing. Each step takes an instant `until`; when
// it passes the step returns ErrPaused, has lost nothing, and is called again.
//
// It never sends a request twice except once, on a fresh connection, when a
// reused one turned out to be closed before any byte of an answer. It never
// gives a connection back whose answer was not read to its exact end, never
// decides whether a failure deserves another try, and never puts a header's
// value or a credential into an error.
package h1
