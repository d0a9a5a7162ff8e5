package simulation

import (
	"context"
	"sync"
	"time"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/script"
)

// Several writers of one store: two reflectors, and direct Replaces. Whatever they overwrite, the
// store equals the source once it is quiet.

// makeOverlap makes two reflectors into one Indexer.
func (m *mirror) makeOverlap(options cache.ReflectorOptions) {
	indexer := cache.NewIndexer(keyFunction, m.indexers())
	m.readFrom(indexer)
	m.reflector(indexer, options)
	options.Name += "-second"
	second := cache.NewReflectorWithOptions(m.source(""), &Object{}, indexer, options)
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
	for _, obj := range m.world.source.Objects() {
		o := asObject(obj)
		if o.Annotations[badMark] != "" {
			return nil // a Replace with it would be refused
		}
		m.stampForCaller(o)
		objects = append(objects, o)
	}
	return indexer.Replace(objects, m.world.source.ResourceVersion())
}

// replaceStep makes another writer replace the content of a store.
func (w *world) replaceStep(s script.Step) {
	m := w.mirrorAt(s.Mirror)
	if m.replace == nil || !m.begun() || m.stopped() || w.indexesFail.Load() {
		return
	}
	if err := m.replace(); err != nil {
		w.fail("G7: Replace of %s: %v", m.name, err)
	}
}

// setPatience is the timeout of a caller of the set.
const setPatience = 10 * time.Second

// setStep asks the set of all typed informers, some of which may have stopped, whether they are
// healthy and have synced. It must not say so of those that have stopped.
func (w *world) setStep(script.Step) {
	var members, stopped []*mirror
	for _, m := range w.mirrors {
		if !m.inSet {
			continue
		}
		members = append(members, m)
		if m.stopped() {
			stopped = append(stopped, m)
		}
	}
	if len(members) == 0 {
		return
	}
	w.settle()
	w.questions.Go(func() { w.askSet(members, stopped) })
}

func (w *world) askSet(members, stopped []*mirror) {
	ctx, cancel := context.WithTimeout(w.ctx, setPatience)
	defer cancel()
	for _, m := range members {
		m.asked.Add(1)
		defer m.asked.Add(-1)
	}
	isHealthy := w.set.Healthy(time.Minute) == nil
	hasSynced := w.set.WaitSynced(ctx) == nil
	isFresh := w.set.Fresh(context.WithValue(ctx, callerKey{}, true)) == nil
	for _, m := range stopped {
		if isHealthy {
			w.fail("G12: a set is healthy, and its %s has stopped", m.name)
		}
		if isFresh {
			w.fail("G1: a set is fresh, and its %s has stopped", m.name)
		}
	}
	for _, m := range members {
		if hasSynced && !m.synced() {
			w.fail("G5: a set has synced, and its %s has not", m.name)
		}
	}
}
