package fakeengine

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// exchange is one request and the answer that its handler writes. It is owned by that handler.
type exchange struct {
	e    *Engine
	w    http.ResponseWriter
	r    *http.Request
	conn *faultConn
	api  string
	raw  []byte // request body
	c    *call
	n    *entry // nil for requests that are not logged
	out  output

	faults []Fault
	d      dialect
	id     string // external id: chatcmpl-..., resp_...
	born   int64  // unix seconds
	answer *answer
	lanes  []*lane
	notify chan struct{}

	begun  bool // the first events of the choices were written
	isGone bool
	forced string // scripted finish reason of a plain answer
	failed bool   // the in-stream error was written
}

// fault returns the first active fault of a kind.
func (x *exchange) fault(k FaultKind) *Fault {
	for i := range x.faults {
		if x.faults[i].Kind == k {
			return &x.faults[i]
		}
	}
	return nil
}

func (x *exchange) update(f func(l *RequestLog)) {
	if x.n != nil {
		x.n.update(f)
	}
}

// openLog begins the request's log.
func (x *exchange) openLog(arrived time.Time, model string) {
	sum := sha256.Sum256(x.raw)
	l := RequestLog{
		Conn: x.conn.number, ConnRequest: x.conn.requests, Method: x.r.Method, Path: x.r.URL.RequestURI(), API: x.api,
		RequestID: x.r.Header.Get("X-Request-Id"), Header: x.r.Header.Clone(),
		BodySHA256: hex.EncodeToString(sum[:]), BodySize: len(x.raw), Arrived: arrived, Model: model,
	}
	if x.e.o.KeepBodies {
		l.Body = x.raw
	}
	if m := markerPattern.Find(x.raw); m != nil {
		l.Marker = string(m)
	}
	for _, f := range x.faults {
		l.Faults = append(l.Faults, f.Kind)
	}
	x.n = x.e.journal.open(l)
}

// finishLog closes it, exactly once, when the handler is over.
func (x *exchange) finishLog() {
	now := time.Now()
	x.update(func(l *RequestLog) {
		l.Finished = now
		if l.Outcome != OutcomeRunning {
			return
		}
		switch {
		case x.isGone:
			l.Outcome = OutcomeClientGone
		case x.failed:
			l.Outcome = OutcomeDied
		case x.out.struck:
			l.Outcome = OutcomeFault
		case l.Status >= 400:
			l.Outcome = OutcomeRefused
		case x.out.kill:
			l.Outcome = OutcomeDied
		default:
			l.Outcome = OutcomeFinished
		}
	})
}

// generate runs one of the generating APIs.
func (x *exchange) generate() {
	c, fail := x.e.parse(x.api, x.raw)
	x.c = c
	x.update(func(l *RequestLog) { l.Model, l.Stream, l.BodyID = c.model, c.stream, c.bodyID })
	if fail == nil {
		fail = x.e.unavailable()
	}
	if fail != nil {
		x.refuse(fail)
		return
	}
	x.begin()
	if f := x.endingFault(); f != nil && f.Before {
		x.strike(f, nil)
		return
	}
	if !x.e.core.submit(x.sequences()) {
		x.refuse(x.e.busy())
		return
	}
	if c.stream {
		x.stream()
	} else {
		x.whole()
	}
}

// busy is the refusal of a full queue.
func (e *Engine) busy() *apiError {
	if e.o.Flavor == SGLang {
		return &apiError{503, "SERVICE_UNAVAILABLE", "The request queue is full.", ""}
	}
	return &apiError{503, "Service Unavailable", busyMessage, ""}
}

// unavailable is the refusal of a server that is shutting down or whose core is dead.
func (e *Engine) unavailable() *apiError {
	switch e.currentMode() {
	case modeDraining:
		return serverError(drainMessage)
	case modeDead:
		return serverError(deathMessage)
	}
	return nil
}

// begin decides id, text and length, and makes the sequences.
func (x *exchange) begin() {
	x.born = time.Now().Unix()
	x.answer = x.e.compose(x.c)
	if f := x.fault(Long); f != nil {
		x.answer.total, x.answer.ending = max(f.N, 1), reasonLength
	}
	x.d = dialectOf(x.api)
	x.id = x.answerID()
	x.notify = make(chan struct{}, 1)
	for _, prompt := range x.c.prompts {
		hashes := blockHashes(x.e.hashSeed, prompt)
		for range x.c.n {
			q := newSequence(x.n, x.notify, x.answer)
			q.prompt, q.hashes = promptTokens(prompt), hashes
			x.lanes = append(x.lanes, &lane{q: q, index: len(x.lanes)})
		}
	}
	x.update(func(l *RequestLog) {
		l.AnswerID, l.PromptTokens, l.MaxTokens = x.id, x.c.promptTokens, x.answer.total
		if x.answer.marker != "" {
			l.Marker = x.answer.marker
		}
	})
}

func (x *exchange) sequences() []*sequence {
	s := make([]*sequence, len(x.lanes))
	for i, l := range x.lanes {
		s[i] = l.q
	}
	return s
}

// answerID is the external id by vLLM's (or SGLang's) rules.
func (x *exchange) answerID() string {
	if x.api == "responses" {
		if x.c.bodyID != "" {
			return x.c.bodyID
		}
		return x.e.newID("resp_")
	}
	if x.e.o.Flavor == SGLang {
		if x.c.bodyID != "" {
			return x.c.bodyID
		}
		return x.e.newID("")
	}
	prefix := "chatcmpl-"
	if x.api == "completions" {
		prefix = "cmpl-"
	}
	if id := x.r.Header.Get("X-Request-Id"); id != "" {
		return prefix + id
	}
	if x.c.bodyID != "" {
		return prefix + x.c.bodyID
	}
	return x.e.newID(prefix)
}

// whole answers without streaming: nothing on the wire until the end.
func (x *exchange) whole() {
	for !x.complete() {
		if !x.await(nil) {
			return
		}
	}
	for _, l := range x.lanes {
		l.sent = int(l.q.final.Load())
		if l.q.reason.Load() == reasonError {
			x.failed = true
			x.refuse(serverError(deathMessage))
			return
		}
	}
	if !x.pause(HeaderDelay) {
		return
	}
	if x.strikePlain() {
		return
	}
	x.orca()
	x.json(200, x.d.body(x))
}

func (x *exchange) complete() bool {
	for _, l := range x.lanes {
		if l.q.final.Load() < 0 {
			return false
		}
	}
	return true
}

// orca adds the load report that a request header may ask for, on plain answers only.
func (x *exchange) orca() {
	format := x.r.Header.Get("Endpoint-Load-Metrics-Format")
	if format == "" {
		return
	}
	s := x.e.Stats()
	waiting, kv := float64(s.Waiting), s.KVUsed
	if format == "TEXT" {
		x.w.Header().Set("Endpoint-Load-Metrics", "TEXT named_metrics.num_requests_waiting="+float(waiting)+", named_metrics.kv_cache_usage_perc="+float(kv))
		return
	}
	x.w.Header().Set("Endpoint-Load-Metrics", `JSON {"named_metrics": {"num_requests_waiting": `+float(waiting)+`, "kv_cache_usage_perc": `+float(kv)+`}}`)
}

// float renders a number as Python does: always with a point.
func float(v float64) string {
	s := strconv.FormatFloat(v, 'g', -1, 64)
	if strings.ContainsAny(s, ".eIN") { // also of Inf and NaN
		return s
	}
	return s + ".0"
}

// requestID is what --enable-request-id-headers echoes.
func (x *exchange) requestID() string {
	if id := x.r.Header.Get("X-Request-Id"); id != "" {
		return id
	}
	return x.e.newID("") + x.e.newID("")
}

// gone notes that the client has left and frees the engine's side as the abort mode says.
func (x *exchange) gone() {
	if x.isGone {
		return
	}
	x.isGone = true
	x.out.over = true
	now := time.Now()
	seqs := x.sequences()
	p := phaseOver
	if len(seqs) > 0 && !seqs[0].arrived.IsZero() {
		p = x.e.core.phaseOf(seqs)
	}
	x.e.countClose(p, x.c != nil && x.c.stream)
	x.update(func(l *RequestLog) {
		l.ClientGone = now
		if p != phaseOver {
			l.GonePhase = p.String()
		}
	})
	if p == phaseOver || x.e.o.Abort == AbortNever {
		return
	}
	if x.e.o.Abort == AbortImmediate {
		x.e.core.abort(seqs)
		return
	}
	x.e.spawn(func() {
		t := time.NewTimer(abortDelay)
		defer t.Stop()
		select {
		case <-t.C:
			x.e.core.abort(seqs)
		case <-x.e.quit:
		}
	})
}

func (e *Engine) countClose(p phase, stream bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch p {
	case phaseQueued:
		e.closes.Queued++
	case phasePrefill:
		e.closes.Prefill++
	case phaseDecode:
		e.closes.Decode++
	default:
		e.closes.Other++
	}
	if !stream {
		e.closes.NonStream++
	}
}
