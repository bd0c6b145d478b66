package fakeengine

import "time"

// stream answers with events.
func (x *exchange) stream() {
	if !x.pause(HeaderDelay) {
		return
	}
	if x.e.o.Flavor == VLLM {
		x.out.head(x)
	}
	ping := x.pings()
	if ping != nil {
		defer ping.Stop()
	}
	x.d.open(x)
	if x.fault(EarlyRole) != nil {
		x.beginAll()
	}
	for !x.out.over {
		if x.pump() {
			x.d.close(x)
			break
		}
		if x.out.over || !x.await(ping) {
			break
		}
	}
	x.settle()
}

// settle ends the body: what was held goes out, and the end itself may linger.
func (x *exchange) settle() {
	if x.isGone {
		return
	}
	x.out.finish(x)
	if !x.out.struck {
		x.pause(Linger)
	}
}

// pings returns the ticker of a ping fault.
func (x *exchange) pings() *time.Ticker {
	f := x.fault(Ping)
	if f == nil {
		return nil
	}
	return time.NewTicker(max(f.Delay, time.Millisecond))
}

func (x *exchange) ping() {
	switch f := x.fault(Ping); f.Text {
	case "event":
		x.out.emit(x, []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n"), evPlain)
	case "":
		x.out.emit(x, []byte(": PING\n\n"), evPlain)
	default:
		x.out.emit(x, []byte(": "+f.Text+"\n\n"), evPlain)
	}
}

// await sleeps until there may be something to write. False: the answer is over.
func (x *exchange) await(ping *time.Ticker) bool {
	var tick <-chan time.Time
	if ping != nil {
		tick = ping.C
	}
	select {
	case <-x.notify:
	case <-tick:
		x.ping()
	case <-x.r.Context().Done():
		x.gone()
		return false
	case <-x.e.quit:
		x.out.over, x.out.kill = true, true
		return false
	}
	return !x.out.over
}

// pause waits the delay of a fault, if it is active. False: the client left meanwhile.
func (x *exchange) pause(k FaultKind) bool {
	f := x.fault(k)
	if f == nil || f.Delay <= 0 {
		return true
	}
	return x.sleep(f.Delay)
}

func (x *exchange) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-x.r.Context().Done():
		x.gone()
	case <-x.e.quit:
		x.out.over, x.out.kill = true, true
	}
	return false
}

// hang waits until the client leaves.
func (x *exchange) hang() {
	select {
	case <-x.r.Context().Done():
		x.gone()
	case <-x.e.quit:
		x.out.kill = true
	}
	x.out.over = true
}

// pump writes what the engine has made since the last call, the choices in turn. True: all have ended.
func (x *exchange) pump() (ended bool) {
	for progress := true; progress && !x.out.over; {
		progress = false
		for _, l := range x.lanes {
			if x.advance(l) {
				progress = true
			}
			if x.out.over {
				return false
			}
		}
	}
	for _, l := range x.lanes {
		if !l.finished {
			return false
		}
	}
	return true
}

// advance writes the next event of one choice.
func (x *exchange) advance(l *lane) bool {
	if l.finished {
		return false
	}
	made := int(l.q.made.Load())
	final := int(l.q.final.Load())
	if final >= 0 {
		made = final
	}
	behind := made - l.sent
	if behind == 0 {
		if final < 0 {
			return false
		}
		x.wind(l)
		return true
	}
	step := 1
	if l.sent > 0 {
		step = max(x.c.interval, 1)
	}
	if behind < step && final < 0 {
		return false
	}
	x.beginAll()
	x.big(l)
	if x.out.over {
		return false
	}
	p := x.answer.piece(l.index, l.sent)
	l.sent++
	for range min(behind, step) - 1 {
		next := x.answer.piece(l.index, l.sent)
		if next.kind != p.kind || next.call != p.call || p.kind == kindToolName {
			break
		}
		p.text += next.text
		l.sent++
	}
	reason := ""
	if final == l.sent {
		switch l.q.reason.Load() {
		case reasonAbort, reasonError: // they come without a token
		default:
			reason = l.q.finishReason()
			l.finished = true
		}
	}
	x.d.token(x, l, p, reason)
	return true
}

// beginAll writes the first event of every choice; the first token of any of them brings them all.
func (x *exchange) beginAll() {
	if x.begun {
		return
	}
	x.begun = true
	for _, l := range x.lanes {
		x.d.begin(x, l)
	}
}

// wind ends a choice that was aborted or that died.
func (x *exchange) wind(l *lane) {
	l.finished = true
	if l.q.reason.Load() == reasonError {
		x.failed = true
		x.d.fail(x, deathMessage)
		x.out.over = true
		return
	}
	x.beginAll()
	if l.sent > 0 { // aborted before its first token: vLLM takes the end for an empty chunk and drops it
		x.d.finish(x, l, l.q.finishReason())
	}
}

// big inserts the event of a big_event fault.
func (x *exchange) big(l *lane) {
	f := x.fault(BigEvent)
	if f == nil || x.out.bigSent || x.out.contents < f.After {
		return
	}
	x.out.bigSent = true
	text := make([]byte, f.N)
	for i := range text {
		text[i] = 'a' + byte(i%26)
	}
	x.d.token(x, l, piece{kind: kindText, text: string(text)}, "")
}
