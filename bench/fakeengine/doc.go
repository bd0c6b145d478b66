// Package fakeengine answers: how does an inference engine behave, and how does it misbehave?
//
// It owns a simulated vLLM (or SGLang): a scheduler that steps through a batch, a paged KV cache with a
// prefix cache, the HTTP dialects with the event sequences of the real server, its metrics page, and a
// script of faults. It keeps one record per request with its own stamps, so that what a gateway says about
// a request can be checked against what the engine did.
//
// Any goroutine may call any exported method. One goroutine owns the schedule; each HTTP handler writes
// its own answer. All waiting is on channels and timers, so an engine made inside a testing/synctest bubble
// runs in virtual time when its listener is in memory.
//
// It never computes anything that a model would, never calls out, and imports nothing of the gateway: it
// must not share the gateway's mistakes.
package fakeengine
