package fakeengine

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// control serves /_fake/: what a person or a script outside the process does to the engine.
//
//	POST /_fake/script   [fault, ...] or one fault; adds to the script
//	POST /_fake/reset    clears script and log
//	POST /_fake/do/NAME  freeze, thaw, die, drain, restart, terminate, refuse, resume, abort
//	GET  /_fake/stats    Stats
//	GET  /_fake/log      [RequestLog, ...]
func (x *exchange) control() {
	read := x.r.Method == http.MethodGet
	switch path := x.r.URL.Path; {
	case path == "/_fake/stats" && read:
		x.marshal(x.e.Stats())
	case path == "/_fake/log" && read:
		x.marshal(x.e.Requests())
	case path == "/_fake/script" && !read:
		x.controlScript()
	case path == "/_fake/reset" && !read:
		x.e.ClearScript()
		x.e.journal.reset()
		x.marshal(struct{}{})
	case !read:
		x.controlDo(path)
	default:
		x.notFound()
	}
}

func (x *exchange) marshal(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	x.json(200, b)
}

func (x *exchange) controlScript() {
	var list []Fault
	d := json.NewDecoder(x.r.Body)
	var raw json.RawMessage
	err := d.Decode(&raw)
	if err == nil && raw[0] == '[' {
		err = json.Unmarshal(raw, &list)
	} else if err == nil {
		list = make([]Fault, 1)
		err = json.Unmarshal(raw, &list[0])
	}
	if err != nil {
		x.json(400, fmt.Appendf(nil, `{"detail":%s}`, quote(err.Error())))
		return
	}
	x.e.Script(list...)
	x.marshal(struct{}{})
}

func (x *exchange) controlDo(path string) {
	var err error
	e := x.e
	switch strings.TrimPrefix(path, "/_fake/do/") {
	case "freeze":
		e.Freeze()
	case "thaw":
		e.Thaw()
	case "die":
		e.Die()
	case "drain":
		e.Drain()
	case "restart":
		err = e.restart(x.conn)
	case "terminate":
		e.TerminateSilently()
	case "refuse":
		e.StopListening()
	case "resume":
		err = e.ResumeListening()
	case "abort":
		e.AbortAll()
	default:
		x.notFound()
		return
	}
	if err != nil {
		x.json(500, fmt.Appendf(nil, `{"detail":%s}`, quote(err.Error())))
		return
	}
	x.marshal(struct{}{})
}
