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
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"tracegate/configs"
	"tracegate/fallback"
)

// Model is a public name and its deployments.
type Model struct {
	Spec        *configs.Model
	Deployments []*Deployment

	Live *ModelLive

	dialects []string // all that its deployments speak; the index is the bit in Deployment.speaks

	mu     sync.Mutex
	credit []float64 // of round_robin, by deployment; guarded by mu

	random *rand.Rand // tests fix the seed by it; nil = the process's source
}

// ModelLive is what all tables that name a model share.
type ModelLive struct {
	Queue  Queue
	Budget fallback.Budget

	turn   atomic.Uint64 // counts ties, so that each goes to the one that waited longest
	output average       // generated tokens of an answer

	mu sync.Mutex // for writes to output
}

// Ask is what a request needs of a deployment.
type Ask struct {
	Dialect  string
	Prompt   int           // its length in tokens, as estimated
	Output   int           // at most so many tokens will be generated; 0 = not said
	Affinity uint64        // the same for requests that share a session, or the beginning of a prompt; 0 = none
	Visited  []*Deployment // those that this request has tried
	Tried    bool          // with visited ones too, where nothing else is left
}

// Name is the model's public name.
func (m *Model) Name() string { return m.Spec.Name }

// Strategy is what Pick decides by, in the words of the configuration.
func (m *Model) Strategy() string {
	if m.Spec.Routing.Strategy == "" {
		return LeastInflight
	}
	return m.Spec.Routing.Strategy
}

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
		m := newModel(&cfg.Models[i], previous)
		for _, d := range m.Deployments {
			t.deployments[d.Name()] = d
		}
		t.models = append(t.models, m)
		t.byName[m.Name()] = m
		for _, alias := range m.Spec.Aliases {
			t.byName[alias] = m
		}
	}
	return t
}

func newModel(spec *configs.Model, previous *Table) *Model {
	m := &Model{Spec: spec, Live: liveOf(spec, previous)}
	for i := range spec.Deployments {
		d := newDeployment(&spec.Deployments[i], previous)
		d.Model, d.model = spec.Name, m
		for _, dialect := range d.Spec.Dialects {
			if !slices.Contains(m.dialects, dialect) {
				m.dialects = append(m.dialects, dialect)
			}
			d.speaks |= m.bit(dialect)
		}
		m.Deployments = append(m.Deployments, d)
	}
	m.credit = make([]float64, len(m.Deployments))
	return m
}

// bit stands for a dialect in Deployment.speaks; 0 where no deployment speaks it.
func (m *Model) bit(dialect string) uint64 {
	if i := slices.Index(m.dialects, dialect); i >= 0 {
		return 1 << i
	}
	return 0
}

// liveOf carries a model's live state over by its name.
func liveOf(spec *configs.Model, previous *Table) *ModelLive {
	if previous != nil {
		if old := previous.byName[spec.Name]; old != nil && old.Spec.Name == spec.Name {
			return old.Live
		}
	}
	return &ModelLive{}
}

func newDeployment(spec *configs.Deployment, previous *Table) *Deployment {
	d := &Deployment{Spec: spec, name: spec.Name, seed: hashed(spec.Name), weight: spec.Weight,
		most: int64(spec.MaxInflight), longest: spec.MaxPromptTokens, price: spec.Price}
	if previous != nil {
		if old := previous.deployments[spec.Name]; old != nil {
			d.Live = old.Live
			d.Live.reloaded(old.Spec.Weight, spec.Weight)
		}
	}
	if d.Live == nil {
		d.Live = &Live{since: time.Now().UTC(), Gate: fallback.NewGate(spec.Cooldown)}
	}
	d.gate = d.Live.Gate
	d.gate.Configure(spec.Cooldown)
	return d
}

// Model finds a model by its name or an alias.
func (t *Table) Model(name string) (*Model, bool) {
	m, ok := t.byName[name]
	return m, ok
}

// Find finds a deployment by its name.
func (t *Table) Find(name string) (*Deployment, bool) {
	d, ok := t.deployments[name]
	return d, ok
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
