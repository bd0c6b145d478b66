package fakeengine

import (
	"encoding/json"
	"fmt"
	"net/http"
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
		x.e.ResetLog()
		x.marshal(struct{}{})
	case !read:
		x.controlDo(path)
	default:
		x.json(404, []byte(`{"detail":"Not Found"}`))
	}
}

// ResetLog forgets the requests so far; the ones still running are no longer found.
func (e *Engine) ResetLog() { e.journal.reset() }

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
	e := x.e
	actions := map[string]func() error{
		"freeze": func() error { e.Freeze(); return nil }, "thaw": func() error { e.Thaw(); return nil },
		"die": func() error { e.Die(); return nil }, "drain": func() error { e.Drain(); return nil },
		"terminate": func() error { e.TerminateSilently(); return nil }, "refuse": func() error { e.StopListening(); return nil },
		"resume": e.ResumeListening, "abort": func() error { e.AbortAll(); return nil }, "restart": func() error { return e.restart(x.conn) },
	}
	const prefix = "/_fake/do/"
	if len(path) <= len(prefix) || actions[path[len(prefix):]] == nil {
		x.json(404, []byte(`{"detail":"Not Found"}`))
		return
	}
	if err := actions[path[len(prefix):]](); err != nil {
		x.json(500, fmt.Appendf(nil, `{"detail":%s}`, quote(err.Error())))
		return
	}
	x.marshal(struct{}{})
}
