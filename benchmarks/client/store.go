package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/watchmirror/cache/benchmarks/local"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// shuffled are the numbers up to n in an order that is the same in every run: what is next
// is not in the cache.
func shuffled(n int) []int { return rand.New(rand.NewPCG(1, 2)).Perm(n) }

// asList is how a store takes objects.
func asList(objects []*local.Small) []any {
	list := make([]any, len(objects))
	for i, object := range objects {
		list[i] = object
	}
	return list
}

// later are the next states of all objects, in a round that counts from 1.
func later(objects []*local.Small, round int) []*local.Small {
	next := make([]*local.Small, len(objects))
	for i, object := range objects {
		next[i] = local.NextSmall(object, uint64(i+1+round*len(objects)), round)
	}
	return next
}

// store makes the task's store with all its objects in it.
func (t Task) store(ctx context.Context) (sides.Store, []*local.Small, error) {
	store, err := sides.NewStore(ctx, t.Side, t.Form, t.Keys, t.Indexes, t.Items)
	if err != nil {
		return nil, nil, err
	}
	if t.Form == sides.TypedInformer && t.Side == sides.Ours {
		return store, nil, nil
	}
	objects := local.Smalls(t.Items)
	return store, objects, store.Replace(asList(objects))
}

// writable is store for works that write.
func (t Task) writable(ctx context.Context) (sides.Store, []*local.Small, error) {
	store, objects, err := t.store(ctx)
	if err == nil && len(objects) != t.Items {
		store.Close()
		err = fmt.Errorf("nobody can write the store of an %s", t.Form)
	}
	return store, objects, err
}

// storeUpdate stores later states, each object as often as another, in no order.
func (t Task) storeUpdate(ctx context.Context) (Result, error) {
	store, objects, err := t.writable(ctx)
	if err != nil {
		return Result{}, err
	}
	defer store.Close()
	states := [][]*local.Small{later(objects, 1), later(objects, 2)}
	order := shuffled(t.Items)
	return t.timed(t.Count, func() error {
		for n := range t.Count {
			if err := store.Update(states[n/t.Items%2][order[n%t.Items]]); err != nil {
				return err
			}
		}
		return nil
	})
}

// storeGet looks for keys in no order, with somebody who writes meanwhile if the store is
// to be busy.
func (t Task) storeGet(ctx context.Context) (Result, error) {
	open := t.store
	if t.Busy {
		open = t.writable
	}
	store, objects, err := open(ctx)
	if err != nil {
		return Result{}, err
	}
	defer store.Close()
	keys := make([]string, t.Items)
	for n, i := range shuffled(t.Items) {
		keys[n] = t.Keys.Key(i)
	}
	others := &beside{}
	if t.Busy {
		states := later(objects, 1)
		others.run(func(n int) error { return store.Update(states[n*stride%t.Items]) })
	}
	var delays []time.Duration
	if t.Busy {
		delays = make([]time.Duration, 0, t.Count)
	}
	result, err := t.timed(t.Count, func() error {
		for n := range t.Count {
			key, began := keys[n%len(keys)], time.Time{}
			if t.Busy {
				began = time.Now()
			}
			if !store.Get(key) {
				return fmt.Errorf("no object under %s", key)
			}
			if t.Busy {
				delays = append(delays, time.Since(began))
			}
		}
		return nil
	})
	if _, failed := others.end(); failed != nil {
		return Result{}, failed
	}
	result.setDelays(delays)
	return result, err
}

// storeByIndex looks for the objects of one value after the other.
func (t Task) storeByIndex(ctx context.Context) (Result, error) {
	store, _, err := t.store(ctx)
	if err != nil {
		return Result{}, err
	}
	defer store.Close()
	if t.Index >= t.Indexes {
		return Result{}, fmt.Errorf("index %d of %d", t.Index, t.Indexes)
	}
	index := local.Indexes[t.Index]
	whole := max(1, t.Items/index.Each)
	want := min(t.Items, index.Each)
	values := make([]string, whole)
	for n, value := range shuffled(whole) {
		values[n] = index.Value(value * index.Each)
	}
	return t.timed(t.Count, func() error {
		for n := range t.Count {
			found, err := store.ByIndex(index.Name, values[n%len(values)])
			if err != nil || found != want {
				return fmt.Errorf("%d objects of %s, not %d: %w", found, values[n%len(values)], want, err)
			}
		}
		return nil
	})
}

// storeRead reads everything, in one of three ways.
func (t Task) storeRead(ctx context.Context) (Result, error) {
	store, _, err := t.store(ctx)
	if err != nil {
		return Result{}, err
	}
	defer store.Close()
	read := map[Work]func() int{StoreList: store.List, StoreIterate: store.Iterate, StoreKeys: store.ListKeys}[t.Work]
	return t.timed(t.Count, func() error {
		for range t.Count {
			if n := read(); n != t.Items {
				return fmt.Errorf("%d objects, not %d", n, t.Items)
			}
		}
		return nil
	})
}

// storeSize looks at what a store takes beyond the objects: one that was filled with a
// list, and one that was filled an object at a time.
func (t Task) storeSize(ctx context.Context) (Result, error) {
	objects := local.Smalls(t.Items)
	filled := func(fill func(sides.Store) error) (int64, error) {
		before := int64(liveHeap())
		store, err := sides.NewStore(ctx, t.Side, t.Form, t.Keys, t.Indexes, 0)
		if err != nil {
			return 0, err
		}
		defer store.Close()
		if err := fill(store); err != nil {
			return 0, err
		}
		heap := int64(liveHeap()) - before
		return heap, full(store, t.Items)
	}
	finish, err := t.profile()
	if err != nil {
		return Result{}, err
	}
	result := Result{Items: t.Items}
	result.Heap, err = filled(func(store sides.Store) error { return store.Replace(asList(objects)) })
	if err != nil {
		return Result{}, err
	}
	result.Grown, err = filled(func(store sides.Store) error {
		for _, object := range objects {
			if err := store.Update(object); err != nil {
				return err
			}
		}
		return nil
	})
	runtime.KeepAlive(objects)
	if err != nil {
		return Result{}, err
	}
	return result, finish()
}

// full says whether a store has all objects.
func full(store sides.Store, objects int) error {
	if n := store.ListKeys(); n != objects {
		return fmt.Errorf("%d objects, not %d", n, objects)
	}
	return nil
}
