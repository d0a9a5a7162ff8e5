package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/watchmirror/cache"
)

// Mirror is an informer of this program's own. It tells one function of each batch of
// changes, before and not after the store has them: a thing that the library's informers
// do not do, and the reason to build one.
type Mirror struct {
	cache.Indexer // what readers look at

	reflector *cache.Reflector // lists and watches, and puts into the queue
	queue     *cache.DeltaFIFO // what has come and is not in the store yet
	announce  func(changes []Change, isInInitialList bool)
}

// Change is what is about to happen to the object with that key.
type Change struct {
	Kind cache.DeltaType
	Key  string
}

// NewMirror puts the parts together. It starts nothing.
func NewMirror(name string, source cache.ListerWatcher, example any, announce func(changes []Change, isInInitialList bool)) *Mirror {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
	})
	// The queue compares a list with what is known, so that it can tell what is gone and
	// leave out what has not changed; and it tells the indexer of the version once
	// everything up to it has been processed.
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
		Name:                  name,
		KnownObjects:          indexer,
		EmitDeltaTypeReplaced: true,
	})
	return &Mirror{
		Indexer:   indexer,
		queue:     queue,
		reflector: cache.NewReflectorWithOptions(source, example, queue, cache.ReflectorOptions{Name: name}),
		announce:  announce,
	}
}

// Run mirrors until ctx ends. An error is one of the store's, which here means a mistake
// in the program.
func (m *Mirror) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var reflector sync.WaitGroup
	reflector.Go(func() { m.reflector.RunWithContext(ctx) })
	defer reflector.Wait()
	defer cancel()

	// A closed queue is how the loop below learns that it is over.
	stop := context.AfterFunc(ctx, m.queue.Close)
	defer stop()
	for {
		err := m.queue.PopBatch(m.apply, nil)
		switch {
		case errors.Is(err, cache.ErrFIFOClosed):
			return nil
		case err != nil:
			return err
		}
	}
}

// apply is given what is pending, at most one change of each key, in the source's order.
func (m *Mirror) apply(deltas []cache.Delta, isInInitialList bool) error {
	// Where only the version has moved, there is nothing to do: the queue tells the
	// indexer.
	deltas = slices.DeleteFunc(slices.Clone(deltas), func(delta cache.Delta) bool { return delta.Type == cache.Bookmark })
	if len(deltas) == 0 {
		return nil
	}
	changes := make([]Change, 0, len(deltas))
	for _, delta := range deltas {
		// KeyOf knows tombstones, of objects whose deletion nobody saw, as well.
		key, err := m.queue.KeyOf(delta.Object)
		if err != nil {
			return err
		}
		changes = append(changes, Change{delta.Type, key})
	}
	m.announce(changes, isInInitialList)
	for i, delta := range deltas {
		if err := m.write(delta, changes[i].Key); err != nil {
			return fmt.Errorf("%s %s: %w", delta.Type, changes[i].Key, err)
		}
	}
	return nil
}

func (m *Mirror) write(delta cache.Delta, key string) error {
	if delta.Type == cache.Deleted {
		return m.Delete(cache.ExplicitKey(key))
	}
	return m.Update(delta.Object) // Added, Updated, Replaced and Sync all bring a state
}
