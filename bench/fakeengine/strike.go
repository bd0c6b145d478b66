package fakeengine

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"
)

var endings = []FaultKind{FIN, RST, CutEvent, CutUTF8, ErrorEvent, EarlyEnd, LoneDone, ErrorLine, Hang, Finish}

// endingFault returns the first fault that will end the answer.
func (x *exchange) endingFault() *Fault {
	for i := range x.faults {
		if slices.Contains(endings, x.faults[i].Kind) {
			return &x.faults[i]
		}
	}
	return nil
}

// strikes returns the fault that ends the answer instead of ev, if its time has come.
func (x *exchange) strikes(ev []byte) *Fault {
	if f := x.fault(FreezeCore); f != nil && !x.out.frozen && x.out.contents >= f.After {
		x.out.frozen = true
		x.e.Freeze()
	}
	f := x.endingFault()
	if f == nil || x.out.struck || x.out.contents < f.After || x.out.events < f.AfterEvents {
		return nil
	}
	if f.Kind == CutUTF8 && cutInRune(ev) == 0 {
		return nil
	}
	return f
}

// strike ends the answer. ev is the event that would have come, nil before the head.
func (x *exchange) strike(f *Fault, ev []byte) {
	o := &x.out
	o.struck = true
	seqs := x.sequences()
	if f.Kind != Hang && f.Kind != ErrorEvent && f.Kind != Finish {
		o.release(x) // what was held had been promised
	}
	kind := f.Kind
	if ev == nil && (kind == CutEvent || kind == CutUTF8) {
		kind = FIN // there is no event to cut
	}
	switch kind {
	case FIN, RST:
		o.kill, o.reset = true, kind == RST
	case CutEvent:
		o.write(x, ev[:max(len(ev)/2, 1)])
		o.kill = true
	case CutUTF8:
		o.write(x, ev[:cutInRune(ev)])
		o.kill = true
	case ErrorEvent:
		if f.Body != "" { // the script's own words
			o.head(x)
			o.put(x, []byte(f.Body))
			break
		}
		x.d.fail(x, cmp.Or(f.Text, deathMessage))
	case LoneDone:
		x.d.done(x)
	case ErrorLine:
		o.write(x, fmt.Appendf(nil, "{\"error\":{\"message\":%s,\"type\":\"new_api_error\",\"param\":\"\",\"code\":\"do_request_failed\"}}\n", quote("upstream error: "+f.Text)))
	case Hang:
		x.hang()
	case Finish:
		x.finishAll(cmp.Or(f.Text, "abort"))
	}
	o.over = true
	if !x.isGone {
		x.e.core.abort(seqs)
	}
}

// finishAll ends every choice properly with a scripted reason.
func (x *exchange) finishAll(reason string) {
	for _, l := range x.lanes {
		if !l.finished {
			l.finished = true
			x.d.finish(x, l, reason)
		}
	}
	x.d.close(x)
}

// strikePlain is the counterpart of strike for an answer without events. False: the answer is to be cut
// while it is written, or is as it should be.
func (x *exchange) strikePlain() bool {
	f := x.endingFault()
	if f == nil {
		return false
	}
	switch f.Kind {
	case ErrorEvent, ErrorLine:
		x.out.struck = true
		x.refuse(serverError(cmp.Or(f.Text, deathMessage)))
	case EarlyEnd, LoneDone:
		x.out.struck = true
		x.json(200, nil)
	case Finish:
		x.out.struck = true
		x.forced = cmp.Or(f.Text, "abort")
		return false
	default:
		return false
	}
	return true
}

// finishReason is the engine's, unless the script says another.
func (x *exchange) finishReason(l *lane) string {
	return cmp.Or(x.forced, l.q.finishReason())
}

// cutInRune returns a position inside the first character of ev that has several bytes, 0 if there is none.
func cutInRune(ev []byte) int {
	for i, b := range ev {
		if b >= utf8.RuneSelf {
			return i + 1
		}
	}
	return 0
}

// replace answers with a scripted replacement. True: the request has had its answer.
func (x *exchange) replace() bool {
	if x.fault(EarlyHints) != nil {
		x.w.Header().Set("Link", "</fake>; rel=preload")
		x.w.WriteHeader(http.StatusEarlyHints)
		x.w.Header().Del("Link")
	}
	for i := range x.faults {
		f := &x.faults[i]
		switch f.Kind {
		case Split:
			x.conn.pieces.Store(int32(f.N))
			continue
		case Status:
			x.scriptedStatus(f)
		case ErrorBody:
			x.scriptedError(f)
		case Admission:
			x.refuse(x.e.busy())
		case Draining:
			x.refuse(serverError(drainMessage))
		case Raw:
			x.rawAnswer(f)
		case ReuseGone:
			if x.conn.requests < 2 {
				continue
			}
			x.out.kill = true
		default:
			if !f.Before || !slices.Contains(endings, f.Kind) || x.generates() {
				continue
			}
			x.strikeBefore(f)
		}
		x.out.struck = true
		return true
	}
	return false
}

// strikeBefore serves the faults before the head on paths that generate nothing: probes, model lists.
func (x *exchange) strikeBefore(f *Fault) {
	if f.Kind == Hang {
		x.hang()
		return
	}
	x.out.kill, x.out.reset = true, f.Kind == RST
}

func (x *exchange) generates() bool {
	switch x.api {
	case "chat", "completions", "messages", "responses":
		return true
	}
	return false
}

func (x *exchange) scriptedStatus(f *Fault) {
	if !x.pause(HeaderDelay) {
		return
	}
	body, contentType := scriptedBody(f.Status, x.api)
	if f.Body != "" {
		body, contentType = []byte(f.Body), "application/json"
	}
	h := x.w.Header()
	h.Set("Content-Type", contentType)
	for k, v := range f.Header {
		h.Set(k, v)
	}
	x.respond(f.Status, body)
}

func (x *exchange) scriptedError(f *Fault) {
	body := []byte(f.Body)
	if f.Body == "" {
		body = serverError(cmp.Or(f.Text, "lost")).body(x.api, VLLM)
	}
	x.json(200, body)
}

// rawAnswer takes the socket and writes the script's bytes.
func (x *exchange) rawAnswer(f *Fault) {
	if f.Delay > 0 && !x.sleep(f.Delay) {
		return
	}
	conn, _, err := x.w.(http.Hijacker).Hijack()
	if err != nil {
		panic("BUG: the fake engine's connection cannot be taken: " + err.Error())
	}
	now := time.Now()
	x.update(func(l *RequestLog) { l.Headers = now })
	_, _ = conn.Write([]byte(f.Text)) // a client that left first is part of the play
	_ = conn.Close()
}
