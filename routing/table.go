// Package routing answers: which deployment of this model is best for this request?
//
// It owns the table of models and deployments (immutable, swapped whole) and
// what each deployment is doing (Live, carried over by name when the table is
// replaced).
//
// Pick and the methods of Live and Permit may be called from any goroutine.
//
// It never sends a request and never waits.
package routing

import (
	"fmt"
	"sort"
	"sync/atomic"
	"time"

	"tracegate/configs"
	"tracegate/trace"
)

// Model is a public name and its deployments.
type Model struct {
	Spec        *configs.Model
	Deployments []*Deployment

	turn atomic.Uint64 // counts ties, so that each goes to the next in turn
}

// Name is the model's public name.
func (m *Model) Name() string { return m.Spec.Name }

// Table is every model of one configuration. It never changes.
type Table struct {
	models      []*Model
	byName      map[string]*Model // aliases too
	deployments map[string]*Deployment
}

// NewTable builds the table of a configuration. The live state of a deployment
// that previous knows by name is carried over; previous may be nil.
func NewTable(cfg *configs.Config, previous *Table) *Table {
	t := &Table{byName: map[string]*Model{}, deployments: map[string]*Deployment{}}
	for i := range cfg.Models {
		spec := &cfg.Models[i]
		m := &Model{Spec: spec}
		for j := range spec.Deployments {
			d := newDeployment(spec, &spec.Deployments[j], previous)
			m.Deployments = append(m.Deployments, d)
			t.deployments[d.Name()] = d
		}
		t.models = append(t.models, m)
		t.byName[spec.Name] = m
		for _, alias := range spec.Aliases {
			t.byName[alias] = m
		}
	}
	return t
}

func newDeployment(m *configs.Model, spec *configs.Deployment, previous *Table) *Deployment {
	d := &Deployment{Spec: spec, Model: m.Name}
	if previous != nil {
		if old := previous.deployments[spec.Name]; old != nil {
			d.Live = old.Live
		}
	}
	if d.Live == nil {
		d.Live = &Live{since: time.Now().UTC()}
	}
	return d
}

// Model finds a model by its name or an alias.
func (t *Table) Model(name string) (*Model, bool) {
	m, ok := t.byName[name]
	return m, ok
}

// Models are the models in the order of the file.
func (t *Table) Models() []*Model { return t.models }

// Names are all names that clients may ask for, models before their aliases,
// each with the model behind it.
func (t *Table) Names() []string {
	var names []string
	for _, m := range t.models {
		names = append(names, m.Spec.Name)
		aliases := append([]string{}, m.Spec.Aliases...)
		sort.Strings(aliases)
		names = append(names, aliases...)
	}
	return names
}

// Deployments calls f for every deployment in the order of the file.
func (t *Table) Deployments(f func(*Deployment)) {
	for _, m := range t.models {
		for _, d := range m.Deployments {
			f(d)
		}
	}
}

// Reasons why a deployment was not considered; the words are the public contract's.
const (
	ExcludedFull    = "full"
	ExcludedDialect = "dialect"
	ExcludedDrained = "draining"
)

// Choice is a decision and everything that was considered for it.
type Choice struct {
	Deployment *Deployment        // nil when none was left
	Considered []trace.Considered // in the order of the file; the lowest score is best
}

// Strategy is what Pick decides by.
const Strategy = "least_inflight"

// Pick chooses among the deployments that speak the dialect: the fewest
// requests in flight per weight, ties in turn. All are considered, in the order
// of the file.
func (m *Model) Pick(dialect string) Choice {
	c := Choice{Considered: make([]trace.Considered, len(m.Deployments))}
	best, ties := 0.0, uint64(0)
	for i, d := range m.Deployments {
		candidate := trace.Considered{Deployment: d.Name(), Excluded: d.excluded(dialect)}
		if candidate.Excluded == "" {
			candidate.Score = float64(d.Live.Inflight()+1) / float64(d.Spec.Weight)
			switch {
			case ties == 0 || candidate.Score < best:
				c.Deployment, best, ties = d, candidate.Score, 1
			case candidate.Score == best:
				ties++
			}
		}
		c.Considered[i] = candidate
	}
	if ties > 1 {
		c.Deployment = m.tied(c.Considered, best, m.turn.Add(1)%ties)
	}
	return c
}

// tied is the deployment that stands at place turn among those with the best
// score. Only they take turns: an excluded one would pass its own to its neighbour.
func (m *Model) tied(considered []trace.Considered, best float64, turn uint64) *Deployment {
	for i, candidate := range considered {
		if candidate.Excluded != "" || candidate.Score != best {
			continue
		}
		if turn == 0 {
			return m.Deployments[i]
		}
		turn--
	}
	panic("BUG: fewer deployments are tied than were counted")
}

func (d *Deployment) excluded(dialect string) string {
	switch {
	case d.Spec.Weight <= 0:
		return ExcludedDrained
	case !d.Spec.Speaks(dialect):
		return ExcludedDialect
	case d.Spec.MaxInflight > 0 && d.Live.Inflight() >= int64(d.Spec.MaxInflight):
		return ExcludedFull
	default:
		return ""
	}
}

// WhyNone says in one sentence why a choice is empty.
func (c Choice) WhyNone() string {
	s := ""
	for _, x := range c.Considered {
		if s != "" {
			s += ", "
		}
		s += fmt.Sprintf("%s: %s", x.Deployment, x.Excluded)
	}
	return s
}

// Take picks a deployment and takes a place there. Between the two another
// request may have taken the last one; then it picks again, and the full
// deployment is excluded.
func (m *Model) Take(dialect string) (Choice, Permit) {
	for {
		c := m.Pick(dialect)
		if c.Deployment == nil {
			return c, Permit{}
		}
		if p, ok := c.Deployment.Begin(); ok {
			return c, p
		}
	}
}
