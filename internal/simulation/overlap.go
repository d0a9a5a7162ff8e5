package simulation

import (
	"context"
	"sync"
	"time"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/check"
	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// Several writers of one store: two reflectors, and direct Replaces. Whatever they overwrite, the
// store equals the source once it is quiet.

// makeOverlap makes two reflectors into one Indexer.
func (m *mirror) makeOverlap(options cache.ReflectorOptions) {
	indexer := cache.NewIndexer(check.KeyFunction, m.indexers())
	m.readFrom(indexer)
	m.reflector(indexer, options)
	options.Name += "-second"
	second := cache.NewReflectorWithOptions(m.Client.Source(""), &world.Object{}, indexer, options)
	first := m.run
	m.run = func(ctx context.Context) {
		var running sync.WaitGroup
		running.Go(func() { first(ctx) })
		running.Go(func() { second.RunWithContext(ctx) })
		running.Wait()
	}
	m.replace = func() error { return m.replaceContent(indexer) }
}

// replaceContent replaces the content of a store by the source's.
func (m *mirror) replaceContent(indexer cache.Indexer) error {
	objects := []any{}
	for _, obj := range m.World.Source.Objects() {
		o := check.AsObject(obj)
		if o.Annotations[world.BadMark] != "" {
			return nil // a Replace with it would be refused
		}
		m.Client.StampForCaller(o)
		objects = append(objects, o)
	}
	return indexer.Replace(objects, m.World.Source.ResourceVersion())
}

// replaceStep makes another writer replace the content of a store.
func (r *run) replaceStep(s script.Step) {
	m := r.mirrorAt(s.Mirror)
	if m.replace == nil || !m.begun() || m.Stopped() || r.world.Functions.FailsIndexes() {
		return
	}
	if err := m.replace(); err != nil {
		r.world.Fail("G7: Replace of %s: %v", m.Name, err)
	}
}

// setPatience is the timeout of a caller of the set.
const setPatience = 10 * time.Second

// setStep asks the set of all typed informers, some of which may have stopped, whether they are
// healthy and have synced. It must not say so of those that have stopped.
func (r *run) setStep(script.Step) {
	var members, stopped []*mirror
	for _, m := range r.mirrors {
		if m.member == nil {
			continue
		}
		members = append(members, m)
		if m.Stopped() {
			stopped = append(stopped, m)
		}
	}
	if len(members) == 0 {
		return
	}
	settle()
	r.questions.Go(func() { r.askSet(members, stopped) })
}

func (r *run) askSet(members, stopped []*mirror) {
	ctx, cancel := context.WithTimeout(r.ctx, setPatience)
	defer cancel()
	for _, m := range members {
		m.Client.BeginQuestion()
		defer m.Client.EndQuestion()
	}
	isHealthy := r.set.Healthy(time.Minute) == nil
	hasSynced := r.set.WaitSynced(ctx) == nil
	isFresh := r.set.Fresh(world.WithCaller(ctx)) == nil
	for _, m := range stopped {
		if isHealthy {
			r.world.Fail("G12: a set is healthy, and its %s has stopped", m.Name)
		}
		if isFresh {
			r.world.Fail("G1: a set is fresh, and its %s has stopped", m.Name)
		}
	}
	for _, m := range members {
		if hasSynced && !m.Synced() {
			r.world.Fail("G5: a set has synced, and its %s has not", m.Name)
		}
	}
}
