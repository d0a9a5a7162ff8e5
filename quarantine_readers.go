package cache

import (
	"strings"
	"sync"
	"sync/atomic"
)

// quarantineIndex is what the readers of a store know of its quarantined keys: with it, Get
// does not take for absent what the source has. It is read without a lock, and where nothing
// is quarantined only a look-up that finds nothing asks it, by one atomic load. The zero
// value is ready.
type quarantineIndex struct {
	len atomic.Int64
	// all are *ObjectError by quarantinedKey.
	all sync.Map
}

// quarantinedKey is a key in the quarantine of the store, or of the queue or reflector before
// it: each may have a state of its own.
type quarantinedKey struct {
	by  quarantinedBy
	key string
}

type quarantinedBy uint8

const (
	byStore quarantinedBy = iota
	byQueue
	byReflector
	quarantines
)

// find is the error of a key of which nothing is stored: nil if nothing is quarantined.
func (x *quarantineIndex) find(key string) error {
	if x.isEmpty() {
		return nil
	}
	for by := range quarantines {
		if held, ok := x.all.Load(quarantinedKey{by, key}); ok {
			return held.(*ObjectError)
		}
	}
	return nil
}

func (x *quarantineIndex) isEmpty() bool { return x.len.Load() == 0 }

// quarantineReaders is one quarantine's part of an index. The zero value is of none.
type quarantineReaders struct {
	index *quarantineIndex
	by    quarantinedBy
	// prefix is that of the keys of a view, empty for those of a whole store.
	prefix string
}

// readersOf are the readers of a store, if it is one of this package.
func readersOf(store any, by quarantinedBy) quarantineReaders {
	if own, ok := store.(interface{ keyed() *keyedStore }); ok {
		return quarantineReaders{&own.keyed().storage.quarantined, by, own.keyed().scope.prefix}
	}
	return quarantineReaders{}
}

// showQuarantines has the readers of a store know what is quarantined in the reflector and the
// queue that fill it. It is not for a Process that fills a store itself: that may ask the store
// before it writes, and must not be kept from writing.
func showQuarantines(store any, r *Reflector, queue *DeltaFIFO) {
	r.report.held.readers, queue.held.readers = readersOf(store, byReflector), readersOf(store, byQueue)
}

func (r quarantineReaders) put(held Quarantined) {
	if r.index == nil {
		return
	}
	err := &ObjectError{Key: held.Key, ResourceVersion: held.ResourceVersion, Stage: held.Stage, Err: held.Err}
	if _, known := r.index.all.Swap(quarantinedKey{r.by, held.Key}, err); !known {
		r.index.len.Add(1)
	}
}

func (r quarantineReaders) remove(key string) {
	if r.index == nil {
		return
	}
	if _, known := r.index.all.LoadAndDelete(quarantinedKey{r.by, key}); known {
		r.index.len.Add(-1)
	}
}

// keepOnly removes the keys that are not to be kept, whichever quarantine has put them there.
func (r quarantineReaders) keepOnly(keep func(key string) bool) {
	if r.index == nil || r.index.isEmpty() {
		return
	}
	r.index.all.Range(func(k, _ any) bool {
		if k := k.(quarantinedKey); k.by == r.by && strings.HasPrefix(k.key, r.prefix) && !keep(k.key) {
			r.remove(k.key)
		}
		return true
	})
}
