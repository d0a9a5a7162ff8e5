package overlay

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache"
)

// Handler returns a handler that passes notifications on to handler, except those of states that
// were observed before: one call is omitted for each. Calls of the initial list and resyncs are
// always passed on. A state that does not arrive within Options.MaxAge is passed on.
//
// Since a call may be omitted, the next OnUpdate has the observed state as its old object, and an
// OnDelete may come without an OnAdd. If changes were merged, a call that ends in an observed state
// is omitted as a whole: the caller has that state. If the watch is faster than the API call,
// handler is notified. Use each returned handler for one informer.
//
// A filter must see every change, or it misses that an object has begun or ceased to pass. So
// Handler puts a cache.TypedFilteringResourceEventHandler around its own: both nestings of the two
// are the same. Another filter that compares old and new objects belongs outside: its inner handler
// is the returned one.
func (o *Overlay[T]) Handler(
	handler cache.TypedResourceEventHandler[T],
) cache.TypedResourceEventHandler[T] {
	if pointer, ok := handler.(*cache.TypedFilteringResourceEventHandler[T]); ok {
		return o.Handler(*pointer)
	}
	filtering, ok := handler.(cache.TypedFilteringResourceEventHandler[T])
	if ok && filtering.Handler != nil {
		filtering.Handler = o.Handler(filtering.Handler)
		return filtering
	}
	return typedFilter[T]{o.core.newFilter(), handler}
}

// SharedHandler is Handler for an untyped informer, with cache.FilteringResourceEventHandler.
func (o *Overlay[T]) SharedHandler(handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	if pointer, ok := handler.(*cache.FilteringResourceEventHandler); ok {
		return o.SharedHandler(*pointer)
	}
	filtering, ok := handler.(cache.FilteringResourceEventHandler)
	if ok && filtering.Handler != nil {
		filtering.Handler = o.SharedHandler(filtering.Handler)
		return filtering
	}
	return sharedFilter{o.core.newFilter(), handler}
}

// EventHandler returns the handler that New adds to its informer. With Over, add it to the informer
// that fills the indexer, if the source's versions are not decimal numbers.
func (o *Overlay[T]) EventHandler() cache.ResourceEventHandler { return watcher{o.core} }

// watcher removes writes when the watch delivers them.
type watcher struct{ core *core }

// OnAdd implements cache.ResourceEventHandler.
func (w watcher) OnAdd(obj any, _ bool) { w.saw(obj, false) }

// OnUpdate implements cache.ResourceEventHandler.
func (w watcher) OnUpdate(_, newObj any) { w.saw(newObj, false) }

// OnDelete implements cache.ResourceEventHandler.
func (w watcher) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	w.saw(obj, true)
}

func (w watcher) saw(obj any, deleted bool) {
	if w.core.count.Load() == 0 || isNil(obj) {
		return
	}
	if key, err := w.core.key(obj); err == nil {
		w.core.confirm(key, stateOf(obj), deleted)
	}
}

// change is a written state, or a deletion, which has no version.
type change struct {
	key     string
	uid     types.UID
	version string
	deleted bool
}

// noteOwnChange adds a change to all filters.
func (c *core) noteOwnChange(made change) {
	if made.uid == "" && made.version == "" && !made.deleted {
		return
	}
	c.mu.RLock()
	filters := c.filters
	c.mu.RUnlock()
	for _, f := range filters {
		f.add(made)
	}
}

// filter has the changes that one handler is not notified of.
type filter struct {
	core *core
	// count is the number of changes.
	count atomic.Int64

	mu      sync.Mutex
	changes map[change]time.Time
	// order has the changes by age, including those that have arrived.
	order []agedChange
}

type agedChange struct {
	change
	at time.Time
}

func (c *core) newFilter() *filter {
	f := &filter{core: c, changes: map[change]time.Time{}}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.filters = append(c.filters[:len(c.filters):len(c.filters)], f)
	return f
}

// add adds a change, and removes changes that are too old.
func (f *filter) add(made change) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	old := 0
	for ; old < len(f.order) && f.isOld(f.order[old].at, now); old++ {
		if first := f.order[old]; f.changes[first.change].Equal(first.at) {
			delete(f.changes, first.change)
		}
	}
	f.order = append(f.order[old:], agedChange{made, now})
	f.changes[made] = now
	f.count.Store(int64(len(f.changes)))
}

func (f *filter) isOld(at, now time.Time) bool { return now.Sub(at) >= f.core.maxAge }

// remove removes a change and returns whether the handler is not notified of it.
func (f *filter) remove(key string, s state, deleted bool) bool {
	made := change{key: key, uid: s.uid, version: s.version}
	if deleted {
		made = change{key: key, uid: s.uid, deleted: true}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at, has := f.changes[made]
	if has {
		delete(f.changes, made)
		f.count.Store(int64(len(f.changes)))
	}
	return has && !f.isOld(at, time.Now())
}

// omits returns whether the notification of an object is omitted.
func (f *filter) omits(obj any, deleted bool) bool {
	if f.count.Load() == 0 || isNil(obj) {
		return false
	}
	key, err := f.core.key(obj)
	return err == nil && f.remove(key, stateOf(obj), deleted)
}

func (f *filter) leavesOutAdd(obj any, isInInitialList bool) bool {
	return f.omits(obj, false) && !isInInitialList
}

func (f *filter) leavesOutUpdate(oldObj, newObj any) bool {
	if f.count.Load() == 0 || isNil(oldObj) || isNil(newObj) || stateOf(oldObj) == stateOf(newObj) {
		return false
	}
	return f.omits(newObj, false)
}

// sharedFilter is a filter for an untyped handler.
type sharedFilter struct {
	filter  *filter
	handler cache.ResourceEventHandler
}

// OnAdd implements cache.ResourceEventHandler.
func (h sharedFilter) OnAdd(obj any, isInInitialList bool) {
	if !h.filter.leavesOutAdd(obj, isInInitialList) {
		h.handler.OnAdd(obj, isInInitialList)
	}
}

// OnUpdate implements cache.ResourceEventHandler.
func (h sharedFilter) OnUpdate(oldObj, newObj any) {
	if !h.filter.leavesOutUpdate(oldObj, newObj) {
		h.handler.OnUpdate(oldObj, newObj)
	}
}

// OnDelete implements cache.ResourceEventHandler.
func (h sharedFilter) OnDelete(obj any) {
	last := obj
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		last = tombstone.Obj
	}
	if !h.filter.omits(last, true) {
		h.handler.OnDelete(obj)
	}
}

// typedFilter is a filter for a typed handler.
type typedFilter[T cache.Object] struct {
	filter  *filter
	handler cache.TypedResourceEventHandler[T]
}

// OnAdd implements cache.TypedResourceEventHandler.
func (h typedFilter[T]) OnAdd(obj T, isInInitialList bool) {
	if !h.filter.leavesOutAdd(obj, isInInitialList) {
		h.handler.OnAdd(obj, isInInitialList)
	}
}

// OnUpdate implements cache.TypedResourceEventHandler.
func (h typedFilter[T]) OnUpdate(oldObj, newObj T) {
	if !h.filter.leavesOutUpdate(oldObj, newObj) {
		h.handler.OnUpdate(oldObj, newObj)
	}
}

// OnDelete implements cache.TypedResourceEventHandler.
func (h typedFilter[T]) OnDelete(obj cache.DeletedObject[T]) {
	if last, known := obj.Object(); !known || !h.filter.omits(last, true) {
		h.handler.OnDelete(obj)
	}
}
