package fakeengine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// FaultKind names a misbehaviour.
type FaultKind string

// Faults that end an answer. They strike when After content events have been written (and AfterEvents
// events of any kind); with Before they strike before the first byte of the answer.
const (
	FIN        FaultKind = "fin"         // close in the middle of the chunked body; a plain body is cut in half
	RST        FaultKind = "rst"         // the same with a reset
	CutEvent   FaultKind = "cut_event"   // half an event, then FIN
	CutUTF8    FaultKind = "cut_utf8"    // up to the middle of a character, then FIN
	ErrorEvent FaultKind = "error_event" // the engine's in-stream error (Text: message; Body: the whole event), as on engine death
	EarlyEnd   FaultKind = "early_end"   // clean end of the body without a terminal event; After 0: an empty 200
	LoneDone   FaultKind = "lone_done"   // data: [DONE] and a clean end, without a finish reason
	ErrorLine  FaultKind = "error_line"  // a bare JSON error without data:, then a clean end
	Hang       FaultKind = "hang"        // silence until the client leaves; everything else stays healthy
	Finish     FaultKind = "finish"      // ends properly with the finish reason Text (abort)
)

// Faults that replace an answer.
const (
	Status    FaultKind = "status"     // Status, Header, Body (default: the route's envelope)
	ErrorBody FaultKind = "error_body" // 200 application/json with an error object, stream or not
	Admission FaultKind = "admission"  // 503 of a full queue
	Draining  FaultKind = "draining"   // 500 of a server that shuts down
	Raw       FaultKind = "raw"        // Text is written to the socket as it is, then FIN (Delay first)
	ReuseGone FaultKind = "reuse_gone" // on a reused connection: closed without a byte when the request has come
)

// Faults that bend an answer.
const (
	HeaderDelay FaultKind = "header_delay" // Delay before the head
	EarlyRole   FaultKind = "early_role"   // role chunk or message_start with the headers, before prefill
	EarlyHints  FaultKind = "early_hints"  // a 103 before the answer
	Ping        FaultKind = "ping"         // every Delay of silence: Text ("event" = event: ping, else a comment)
	Comment     FaultKind = "comment"      // N comment lines (Text) before the first event
	BOM         FaultKind = "bom"          // a byte order mark first
	Framing     FaultKind = "framing"      // line ends: Text crlf or cr
	Split       FaultKind = "split"        // every write of the connection in N random pieces
	Merge       FaultKind = "merge"        // N events in one write
	Burst       FaultKind = "burst"        // everything is held and written at once at the end
	Slow        FaultKind = "slow"         // Delay between content events
	Long        FaultKind = "long"         // the answer has N tokens, whatever was asked
	Linger      FaultKind = "linger"       // Delay between the terminal event and the end of the body
	BigEvent    FaultKind = "big_event"    // one content event with N bytes of text, at After
	BigHeaders  FaultKind = "big_headers"  // N bytes of headers
	GZip        FaultKind = "gzip"         // compressed although nobody asked
	ContentType FaultKind = "content_type" // Text
	NoUsage     FaultKind = "no_usage"     // usage is never given
	UsageNull   FaultKind = "usage_null"   // usage: null on every chunk
	NoNames     FaultKind = "no_names"     // no event: lines
	CloseAfter  FaultKind = "close_after"  // Connection: close
	FreezeCore  FaultKind = "freeze"       // the engine core freezes at After content events
	SlowStart   FaultKind = "slow_start"   // the engine is N times slower from this request on, for all; that falls to 1 over Delay. Use Times
)

// Fault is one entry of a script. Every entry that matches a request applies to it.
type Fault struct {
	API      string `json:"api,omitempty"`      // chat, completions, messages, responses, embeddings ...; "" = all of these
	Model    string `json:"model,omitempty"`    // "" = any
	Path     string `json:"path,omitempty"`     // prefix of the path; needed to hit /health, /metrics and the like
	Contains string `json:"contains,omitempty"` // text in the request's body
	Skip     int    `json:"skip,omitempty"`     // matching requests left alone first
	Times    int    `json:"times,omitempty"`    // requests hit after that; 0 = all

	Kind        FaultKind         `json:"kind"`
	Before      bool              `json:"before,omitempty"`
	After       int               `json:"after,omitempty"`
	AfterEvents int               `json:"after_events,omitempty"`
	Status      int               `json:"status,omitempty"`
	Header      map[string]string `json:"header,omitempty"`
	Body        string            `json:"body,omitempty"`
	Text        string            `json:"text,omitempty"`
	Delay       time.Duration     `json:"-"` // "delay" in JSON, as a Go duration
	N           int               `json:"n,omitempty"`
}

// UnmarshalJSON reads a fault; unknown keys are errors, so that a misspelt script does not pass for a
// healthy engine.
func (f *Fault) UnmarshalJSON(b []byte) error {
	type plain Fault
	v := struct {
		*plain
		Delay string `json:"delay"`
	}{plain: (*plain)(f)}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return err
	}
	if v.Delay != "" {
		delay, err := time.ParseDuration(v.Delay)
		if err != nil {
			return fmt.Errorf("cannot read fault delay=%q: %w", v.Delay, err)
		}
		f.Delay = delay
	}
	return f.check()
}

var allKinds = []FaultKind{
	FIN, RST, CutEvent, CutUTF8, ErrorEvent, EarlyEnd, LoneDone, ErrorLine, Hang, Finish, Status, ErrorBody, Admission,
	Draining, Raw, ReuseGone, HeaderDelay, EarlyRole, EarlyHints, Ping, Comment, BOM, Framing, Split, Merge, Burst, Slow,
	Long, Linger, BigEvent, BigHeaders, GZip, ContentType, NoUsage, UsageNull, NoNames, CloseAfter, FreezeCore, SlowStart,
}

func (f *Fault) check() error {
	if slices.Contains(allKinds, f.Kind) {
		return nil
	}
	return fmt.Errorf("cannot script fault kind=%q: unknown, allowed are %v", f.Kind, allKinds)
}

// scripted is a fault with its count of matches.
type scripted struct {
	Fault
	seen int
}

// Script adds faults. It panics on an unknown kind: the script is part of a test.
func (e *Engine) Script(faults ...Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range faults {
		if err := f.check(); err != nil {
			panic("BUG: " + err.Error())
		}
		e.script = append(e.script, &scripted{Fault: f})
	}
}

// ClearScript removes all faults; answers already hit keep theirs.
func (e *Engine) ClearScript() {
	e.mu.Lock()
	e.script = nil
	e.mu.Unlock()
}

func (e *Engine) hasScript() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.script) > 0
}

// pick returns the faults that apply to a request.
func (e *Engine) pick(api, model, path string, body []byte) (hit []Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.script {
		switch {
		case s.Path == "" && api == "", s.API != "" && s.API != api, s.Model != "" && s.Model != model,
			!strings.HasPrefix(path, s.Path), s.Contains != "" && !bytes.Contains(body, []byte(s.Contains)):
			continue
		}
		s.seen++
		if s.seen > s.Skip && (s.Times == 0 || s.seen <= s.Skip+s.Times) {
			hit = append(hit, s.Fault)
		}
	}
	return hit
}
