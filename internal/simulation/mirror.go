package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// mirror is one mirror of the source that is run: a reflector and everything that it feeds. Unused
// parts are nil.
type mirror struct {
	*Mirror

	run   func(context.Context)
	again func(context.Context)
	// join adds a handler, leave removes it and waits for its last call.
	join  func(*Handler) error
	leave func(*Handler) error
	// member is the informer that belongs to the run's set.
	member cache.AnyInformer
	// replace makes another writer replace the content of its store; nil unless it has several.
	replace func() error

	cancel context.CancelFunc
	done   chan struct{}
}

func newMirror(r *run, index int, setup script.MirrorSetup) *mirror {
	m := &mirror{
		Mirror: newCheckedMirror(r.world, index, setup),
		done:   make(chan struct{}),
	}
	m.make(rand.New(rand.NewPCG(r.script.Seed, uint64(index)+100)))
	if m.member != nil {
		if err := r.set.Add(m.member); err != nil {
			r.world.Fail("%s cannot be added to a set: %v", m.name, err)
		}
	}
	for i, h := range setup.Handlers {
		m.add(h, fmt.Sprintf("%s/%d", m.name, i))
	}
	return m
}

// begun says whether its run has started.
func (m *mirror) begun() bool { return m.cancel != nil }

// begin starts the run.
func (m *mirror) begin(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	m.cancel = cancel
	go func() {
		defer close(m.done)
		m.run(ctx)
		m.calls.runReturned()
	}()
}

// stop ends the context of the run.
func (m *mirror) stop() {
	m.calls.cancel()
	m.cancel()
}

// runAgain is a second, concurrent Run.
func (m *mirror) runAgain(ctx context.Context) {
	if m.again != nil {
		m.again(ctx)
		return
	}
	m.run(ctx)
}

func (m *mirror) await() { <-m.done }

// add adds a handler, if the mirror has handlers.
func (m *mirror) add(setup script.HandlerSetup, name string) {
	if m.join == nil {
		return
	}
	h := newHandler(m.Mirror, setup, name)
	h.owe(m.owed())
	if m.begun() {
		h.joinLate()
	}
	err := m.join(h)
	h.hasJoined()
	switch {
	case err == nil:
		m.handlers = append(m.handlers, h)
	case !m.stopped():
		m.world.Fail("%s takes no handler: %v", m.name, err)
	}
}

// owed returns the keys that a handler that joins now receives before it has synced: those of the
// store or, before the run, of the source.
func (m *mirror) owed() (owed []string) {
	if !m.begun() {
		for key, s := range m.world.Truth.Now() {
			if s.Shown() {
				owed = append(owed, key)
			}
		}
		return owed
	}
	now := m.world.Truth.Now()
	for _, obj := range m.list() {
		// The backend may have changed before the handler is called.
		if o := asObject(obj); o != nil && now[world.KeyOf(o)].Serial == world.SerialOf(o) {
			owed = append(owed, world.KeyOf(o))
		}
	}
	return owed
}
