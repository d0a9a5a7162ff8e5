package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/check"
	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// mirror is one mirror of the source that is run: a reflector and everything that it feeds. Unused
// parts are nil.
type mirror struct {
	*check.Mirror

	run   func(context.Context)
	again func(context.Context)
	// join adds a handler, leave removes it and waits for its last call.
	join  func(*check.Handler) error
	leave func(*check.Handler) error
	// member is the informer that belongs to the run's set.
	member cache.AnyInformer
	// replace makes another writer replace the content of its store; nil unless it has several.
	replace func() error

	cancel context.CancelFunc
	done   chan struct{}
}

func newMirror(r *run, index int, setup script.MirrorSetup) *mirror {
	m := &mirror{
		Mirror: check.NewMirror(r.world, index, setup),
		done:   make(chan struct{}),
	}
	m.make(rand.New(rand.NewPCG(r.script.Seed, uint64(index)+100)))
	if m.member != nil {
		if err := r.set.Add(m.member); err != nil {
			r.world.Fail("%s cannot be added to a set: %v", m.Name, err)
		}
	}
	for i, h := range setup.Handlers {
		m.add(h, fmt.Sprintf("%s/%d", m.Name, i))
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
		m.Calls.RunReturned()
	}()
}

// stop ends the context of the run.
func (m *mirror) stop() {
	m.Calls.Cancel()
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
	h := check.NewHandler(m.Mirror, setup, name)
	h.Owe(m.owed())
	if m.begun() {
		h.JoinLate()
	}
	err := m.join(h)
	h.HasJoined()
	switch {
	case err == nil:
		m.Handlers = append(m.Handlers, h)
	case !m.Stopped():
		m.World.Fail("%s takes no handler: %v", m.Name, err)
	}
}

// owed returns the keys that a handler that joins now receives before it has synced: those of the
// store or, before the run, of the source.
func (m *mirror) owed() (owed []string) {
	if !m.begun() {
		for key, s := range m.World.Truth.Now() {
			if s.Shown() {
				owed = append(owed, key)
			}
		}
		return owed
	}
	now := m.World.Truth.Now()
	for _, obj := range m.List() {
		// The backend may have changed before the handler is called.
		if o := check.AsObject(obj); o != nil && now[world.KeyOf(o)].Serial == world.SerialOf(o) {
			owed = append(owed, world.KeyOf(o))
		}
	}
	return owed
}
