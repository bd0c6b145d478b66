package fakeengine

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// respond writes a plain answer with its length, and lets the script cut or bend it.
func (x *exchange) respond(status int, body []byte) {
	if x.out.over || x.isGone {
		return
	}
	x.decorate()
	if x.fault(GZip) != nil {
		body = compress(body)
	}
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	now := time.Now()
	x.update(func(l *RequestLog) {
		l.Status, l.Headers = status, now
		if status == 200 {
			l.FirstToken, l.LastToken, l.Terminal = now, now, now
		}
	})
	x.e.countHTTP(x.r, status)
	x.w.WriteHeader(status)
	if f := x.endingFault(); f != nil && !x.out.struck && status == 200 && x.generates() {
		x.cutPlain(f, body)
		return
	}
	_, _ = x.w.Write(body) // a client that left is noticed by the request's context
}

// cutPlain ends a plain answer in the middle.
func (x *exchange) cutPlain(f *Fault, body []byte) {
	x.out.struck = true
	_, _ = x.w.Write(body[:len(body)/2])
	x.flush()
	if f.Kind == Hang {
		x.hang()
		return
	}
	x.out.kill, x.out.reset = true, f.Kind == RST
}

func compress(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b) // a buffer takes everything
	_ = z.Close()
	return out.Bytes()
}

// modelOf reads the model of a body for matching faults; a broken body has none.
func modelOf(body []byte) string {
	var v struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(body, &v) // parse reports it
	return v.Model
}

func (e *Engine) countHTTP(r *http.Request, status int) {
	k := httpKey{handler: "none", method: r.Method, status: strconv.Itoa(status/100) + "xx"}
	if postAPIs[r.URL.Path] != "" || r.URL.Path == "/v1/models" {
		k.handler = r.URL.Path
	} else if _, known := plainRoutes[r.URL.Path]; known {
		return // probes and scrapes are not counted
	}
	e.core.mu.Lock()
	e.core.meters.http[k]++
	e.core.mu.Unlock()
}
