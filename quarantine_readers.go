package cache

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/watchmirror/cache/internal/table"
)

// quarantineIndex is what the readers of a store know of its quarantined keys: with it, Get
// does not take for absent what the source has. It is read without a lock, and where nothing
// is quarantined only a look-up that finds nothing asks it, by one atomic load. The zero
// value is ready.
type quarantineIndex struct {
	len atomic.Int64
	// byKey are []quarantinedState by key. A slice in it is not changed any more.
	byKey sync.Map

	// mu guards writes. keys are the keys of all states, by their places.
	mu   sync.Mutex
	keys map[quarantinedPlace]string
}

// quarantinedPlace is where a quarantine has a state: in that of the store, or of the queue or
// reflector before it. Several places may have one key.
type quarantinedPlace struct {
	by    quarantinedBy
	place string
}

type quarantinedBy uint8

const (
	byStore quarantinedBy = iota
	byQueue
	byReflector
)

type quarantinedState struct {
	at  quarantinedPlace
	err *ObjectError
}

// find is the error of a key of which nothing is stored: nil if nothing is quarantined.
func (x *quarantineIndex) find(key string) error {
	if x.isEmpty() {
		return nil
	}
	if states := x.of(key); len(states) > 0 {
		return states[0].err
	}
	return nil
}

func (x *quarantineIndex) isEmpty() bool { return x.len.Load() == 0 }

func (x *quarantineIndex) of(key string) []quarantinedState {
	states, _ := x.byKey.Load(key)
	all, _ := states.([]quarantinedState)
	return all
}

func (x *quarantineIndex) put(at quarantinedPlace, key string, err *ObjectError) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(at)
	if x.keys == nil {
		x.keys = map[quarantinedPlace]string{}
	}
	x.keys[at] = key
	x.byKey.Store(key, append(slices.Clone(x.of(key)), quarantinedState{at, err}))
	x.len.Add(1)
}

// remove removes a place, if it is known. The caller has mu.
func (x *quarantineIndex) remove(at quarantinedPlace) {
	key, known := x.keys[at]
	if !known {
		return
	}
	delete(x.keys, at)
	if len(x.keys) == 0 {
		x.keys = nil // a map does not shrink
	}
	left := slices.DeleteFunc(slices.Clone(x.of(key)), func(s quarantinedState) bool { return s.at == at })
	if len(left) == 0 {
		x.byKey.Delete(key)
	} else {
		x.byKey.Store(key, left)
	}
	x.len.Add(-1)
}

// quarantineReaders is one quarantine's part of an index. The zero value is of none.
type quarantineReaders struct {
	index *quarantineIndex
	by    quarantinedBy
	// prefix is that of the keys of a view, empty for those of a whole store.
	prefix string
	// keys makes the store's keys.
	keys func(obj any) (table.Key, error)
}

// readersOf are the readers of a store, if it is one of this package.
func readersOf(store any, by quarantinedBy) quarantineReaders {
	if own, ok := store.(interface{ keyed() *keyedStore }); ok {
		k := own.keyed()
		return quarantineReaders{&k.storage.quarantined, by, k.scope.prefix, k.keyOf}
	}
	return quarantineReaders{}
}

// keyOf is the key by which readers ask for an object, empty if it has none.
func (r quarantineReaders) keyOf(obj any) string {
	if r.keys == nil {
		return ""
	}
	key, err := r.keys(obj)
	if err != nil {
		return ""
	}
	return key.String()
}

// showQuarantines has the readers of a store know what is quarantined in the reflector and the
// queue that fill it. It is not for a Process that fills a store itself: that may ask the store
// before it writes, and must not be kept from writing.
func showQuarantines(store any, r *Reflector, queue *DeltaFIFO) {
	r.report.held.readers = readersOf(store, byReflector)
	if queue != nil {
		queue.held.readers = readersOf(store, byQueue)
	}
}

// put notes what is quarantined in a place, for those who ask for key.
func (r quarantineReaders) put(place, key string, held Quarantined) {
	if r.index == nil {
		return
	}
	err := &ObjectError{Key: key, ResourceVersion: held.ResourceVersion, Stage: held.Stage, Err: held.Err}
	r.index.put(quarantinedPlace{r.by, place}, key, err)
}

func (r quarantineReaders) remove(place string) {
	if r.index == nil {
		return
	}
	r.index.mu.Lock()
	defer r.index.mu.Unlock()
	r.index.remove(quarantinedPlace{r.by, place})
}

// keepOnly removes the places that are not to be kept, whichever quarantine has put them there.
func (r quarantineReaders) keepOnly(keep func(place string) bool) {
	if r.index == nil || r.index.isEmpty() {
		return
	}
	r.index.mu.Lock()
	defer r.index.mu.Unlock()
	for at, key := range r.index.keys {
		if at.by == r.by && strings.HasPrefix(key, r.prefix) && !keep(at.place) {
			r.index.remove(at)
		}
	}
}
