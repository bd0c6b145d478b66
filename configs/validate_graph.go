package configs

import (
	"fmt"
	"strings"
)

// index collects the names of all models and aliases.
func (v *validator) index() {
	v.byName = map[string]int{}
	for i := range v.cfg.Models {
		for _, name := range append([]string{v.cfg.Models[i].Name}, v.cfg.Models[i].Aliases...) {
			if name == "" {
				continue
			}
			if _, ok := v.byName[name]; !ok {
				v.known = append(v.known, name)
			}
			v.byName[name] = i
		}
	}
}

// walk is a depth-first search over one kind of fallback edge.
type walk struct {
	v       *validator
	key     string
	next    func(*Model) []string
	state   []int // 0 new, 1 on the stack, 2 done
	stack   []int
	reports int
}

// maxCycles bounds the warnings about one kind of edge.
const maxCycles = 20

// cycles warns once about each chain of fallbacks that comes back to its start. It is
// no error: a model that a request has visited is left out.
func (v *validator) cycles(key string, next func(*Model) []string) {
	w := &walk{v: v, key: key, next: next, state: make([]int, len(v.cfg.Models))}
	for i := range v.cfg.Models {
		if w.state[i] == 0 {
			w.visit(i)
		}
	}
}

func (w *walk) visit(i int) {
	w.state[i] = 1
	w.stack = append(w.stack, i)
	for n, name := range w.next(&w.v.cfg.Models[i]) {
		to, ok := w.v.byName[name]
		switch {
		case !ok:
		case w.state[to] == 0:
			w.visit(to)
		case w.state[to] == 1 && w.reports < maxCycles:
			w.reports++
			w.v.warnf(fmt.Sprintf("models[%d].%s[%d]", i, w.key, n), "the %s go in a circle: %s", w.key, w.circle(to))
		}
	}
	w.stack = w.stack[:len(w.stack)-1]
	w.state[i] = 2
}

func (w *walk) circle(from int) string {
	var names []string
	for _, i := range w.stack {
		if i == from || len(names) > 0 {
			names = append(names, w.v.cfg.Models[i].Name)
		}
	}
	names = append(names, w.v.cfg.Models[from].Name)
	if len(names) > 12 {
		names = append(append(names[:6:6], "…"), names[len(names)-5:]...)
	}
	return strings.Join(names, " -> ")
}
