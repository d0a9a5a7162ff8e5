// The queue between a reflector and a consumer that pops changes. What is queued for a change, and
// what for a resync? Lists are in queue_replacement.go, popping in delta_fifo_pop.go.

package cache

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/internal/deltalog"
	"github.com/watchmirror/cache/internal/table"
)

// DeltaFIFOOptions configures a DeltaFIFO. The zero value is useful.
type DeltaFIFOOptions struct {
	// Logger is accepted for compatibility: the queue logs nothing.
	Logger *klog.Logger
	// Name is returned by the method Name. Default: "DeltaFIFO".
	Name string
	// KeyFunction makes the keys. Default: MetaNamespaceKeyFunc.
	KeyFunction KeyFunc
	// KnownObjects has the objects that the consumer has applied, usually its store, up to date
	// when the consumer's function returns. Without it only queued objects are known to Delete,
	// Replace and Resync.
	//
	// It is read under the queue's lock: it must answer from memory and not call the queue. With a
	// method ObjectVersion(key string) (ObjectVersion, bool), as this package's stores have, a
	// relist skips unchanged objects. A ResourceVersionUpdater receives each version that has been
	// processed.
	KnownObjects KeyListerGetter
	// EmitDeltaTypeReplaced gives listed objects the type Replaced instead of Sync.
	EmitDeltaTypeReplaced bool
	// Transformer, if not nil, transforms each object before it is queued, except tombstones and
	// unchanged objects.
	Transformer TransformFunc
}

// DeltaFIFO is a queue of changes between a Reflector and a consumer, with the behaviour of
// client-go's. It keeps every change of an object since the consumer last received one of it, but
// merges consecutive deletions. An error names an object that cannot be queued; its previous state
// stays.
//
// Pop returns all changes of the key that has waited longest, PopBatch pending changes in their
// order with the resource versions between. Only these wait, one call at a time; calling them from
// within process deadlocks. Changes that are handed out and not yet processed count as queued.
//
// All methods may be called concurrently, but changes of one key must come from one goroutine at a
// time. No user function runs under the queue's lock, except KnownObjects and metadata methods of
// its objects.
type DeltaFIFO struct {
	name string
	keys keyer
	// keyFunction is the user's. It is not called for tombstones and Deltas.
	keyFunction KeyFunc
	transformer TransformFunc
	// listedType is the type of listed objects.
	listedType DeltaType
	known      knownObjects
	// updater is KnownObjects, if it receives versions, or nil.
	updater ResourceVersionUpdater
	// quarantine has the objects that could not be queued.
	quarantine quarantinePart
	synced     chan struct{}
	// changed is signaled when something is added, and when a call of Pop or PopBatch ends.
	changed *sync.Cond

	mu  sync.Mutex
	log deltalog.Log
	// populated is true once a change outside a first list has come, or a first list has ended.
	populated bool
	// openLists is the number of replacements that have begun and not ended.
	openLists int
	// isSynced is true once synced is closed. Each call asks for it.
	isSynced bool
	closed   bool
	// consuming is true while a call of Pop or PopBatch processes changes. That call owns reported.
	consuming bool
	// reported is the last version that updater received.
	reported string
}

// NewDeltaFIFO is for code written for client-go.
//
// Deprecated: use NewDeltaFIFOWithOptions, with EmitDeltaTypeReplaced.
func NewDeltaFIFO(keyFunc KeyFunc, knownObjects KeyListerGetter) *DeltaFIFO {
	return NewDeltaFIFOWithOptions(DeltaFIFOOptions{
		KeyFunction:  keyFunc,
		KnownObjects: knownObjects,
	})
}

// NewDeltaFIFOWithOptions makes an empty queue. It starts nothing.
func NewDeltaFIFOWithOptions(opts DeltaFIFOOptions) *DeltaFIFO {
	f := &DeltaFIFO{
		name:        cmp.Or(opts.Name, "DeltaFIFO"),
		keyFunction: MetaNamespaceKeyFunc,
		transformer: opts.Transformer,
		listedType:  Sync,
		known:       knownObjectsOf(opts.KnownObjects),
		quarantine:  quarantinePart{shared: &quarantine{}, owner: byQueue},
		synced:      make(chan struct{}),
	}
	if opts.KeyFunction != nil {
		f.keyFunction = opts.KeyFunction
	}
	f.keys = keyer{keyFunc: f.KeyOf, byName: isByName(f.keyFunction)}
	if opts.EmitDeltaTypeReplaced {
		f.listedType = Replaced
	}
	f.updater, _ = opts.KnownObjects.(ResourceVersionUpdater)
	f.changed = sync.NewCond(&f.mu)
	return f
}

// KeyOf returns the key of an object, a tombstone, or non-empty Deltas.
func (f *DeltaFIFO) KeyOf(obj any) (string, error) {
	if deltas, ok := obj.(Deltas); ok {
		if len(deltas) == 0 {
			return "", KeyError{obj, ErrZeroLengthDeltasObject}
		}
		obj = deltas.Newest().Object
	}
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		return tombstone.Key, nil
	}
	return keyOf(f.keyFunction, obj)
}

func (f *DeltaFIFO) Name() string { return f.name }

func (f *DeltaFIFO) Transformer() TransformFunc { return f.transformer }

// itself is promoted to types that embed a queue: see queueIn.
func (f *DeltaFIFO) itself() *DeltaFIFO { return f }

// queueIn returns the queue that a store is or embeds, or nil.
func queueIn(store any) *DeltaFIFO {
	if holder, ok := store.(interface{ itself() *DeltaFIFO }); ok {
		return holder.itself()
	}
	return nil
}

// embedsQueue reports whether a store is of another type that embeds a queue. It has the queue's
// methods, but may define some of them itself.
func embedsQueue(store any) bool {
	queue := queueIn(store)
	return queue != nil && store != any(queue)
}

// Add queues a new object, or returns a KeyError or *ObjectError.
func (f *DeltaFIFO) Add(obj any) error { return f.put(Added, obj) }

// Update queues a newer state of an object, with the errors of Add.
func (f *DeltaFIFO) Update(obj any) error { return f.put(Updated, obj) }

// Delete queues the final state of a deleted object, or a tombstone; it ignores an unknown object.
// Only after a KeyError nothing is queued. A list that has the object and is committed later, even
// if it began before, queues the object again.
func (f *DeltaFIFO) Delete(obj any) error { return f.put(Deleted, obj) }

func (f *DeltaFIFO) put(kind DeltaType, obj any) error {
	c := &change{received: received{kind: kind, object: obj}}
	f.keys.identify(c)
	if c.prepared.err == nil {
		f.putChange(c)
	}
	return c.prepared.failure()
}

// queueAccepter passes the changes of a reflector to a queue. A method acceptChanges of the queue
// would be promoted to types that embed it, whose own methods would not be called then.
type queueAccepter struct{ queue *DeltaFIFO }

// acceptChanges implements changeAccepter for the first change.
func (a queueAccepter) acceptChanges(
	_ context.Context, changes []change,
) (accepted int, err error) {
	c := &changes[0]
	a.queue.keys.identify(c)
	if c.prepared.err == nil {
		err = a.queue.olderThanEntry(c)
	}
	if err != nil {
		return 0, err
	}
	a.queue.putChange(c)
	return 1, nil
}

// eventKey implements eventChecker.
func (f *DeltaFIFO) eventKey(obj any) (table.Key, error) { return f.keys.eventKey(obj) }

// olderThanEntry implements eventChecker. The state last received is the one that the queue has
// quarantined, if it has a version, or else the last one of lastLocked.
func (f *DeltaFIFO) olderThanEntry(c *change) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.lastLocked(c.prepared.key)
	refused, isQuarantined := f.quarantine.entry(c.prepared.key)
	if !isQuarantined {
		refused = last.refused
	}
	return c.prepared.regression(refused.originOr(last.origin))
}

// putChange transforms the object of a change, and queues or quarantines it with its version.
func (f *DeltaFIFO) putChange(c *change) {
	c.transform(f.keys.keyFunc, f.transformer, func() bool { return f.isDeletable(c.prepared.key) })
	f.mu.Lock()
	defer f.unlock()
	// While a first list is open, events do not make the queue populated: the commit does.
	if f.openLists == 0 {
		f.populated = true
	}
	if c.prepared.err != nil {
		f.quarantine.addChange(c)
	} else {
		f.quarantine.release(c.prepared.key)
		f.addLocked(c.record())
	}
	f.log.AddVersion(c.received.version)
}

func (f *DeltaFIFO) isDeletable(key table.Key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lastLocked(key).isDeletable()
}

// addLocked queues a change, or ignores it if it deletes nothing. A deletion without a final state
// becomes a tombstone. Of two deletions in a row the first one stays, unless it is a tombstone: the
// final state replaces that.
func (f *DeltaFIFO) addLocked(r deltalog.Record) {
	if r.Kind != deltalog.Deleted {
		f.log.Add(r)
		return
	}
	last := f.lastLocked(r.Key)
	if !last.isDeletable() {
		return
	}
	if r.Object == nil {
		r.Object = DeletedFinalStateUnknown{Key: r.Key.String(), Obj: last.object}
	}
	queued := last.queued
	if queued == nil || queued.Kind != deltalog.Deleted || queued.IsHandedOut() {
		f.log.Add(r)
		return
	}
	if _, unknown := queued.Object.(DeletedFinalStateUnknown); unknown {
		queued.Object = r.Object
		queued.Key = r.Key
		queued.Origin = r.Origin
	}
}

// UpdateResourceVersion queues the version as a Bookmark.
func (f *DeltaFIFO) UpdateResourceVersion(resourceVersion string) {
	f.mu.Lock()
	defer f.unlock()
	f.log.AddVersion(resourceVersion)
}

// Resync queues, as Sync, every known object that is not queued. The error joins an *ObjectError
// for each one that KnownObjects failed to return.
func (f *DeltaFIFO) Resync() error {
	f.mu.Lock()
	defer f.unlock()
	f.log.Reserve(f.known.size())
	var unread []error
	f.known.eachKey(func(key table.Key) {
		if err := f.resyncLocked(key); err != nil {
			unread = append(unread, err)
		}
	})
	return errors.Join(unread...)
}

// resyncLocked queues a known object, unless it is queued.
func (f *DeltaFIFO) resyncLocked(key table.Key) error {
	last := f.lastLocked(key)
	if last.queued != nil {
		return nil
	}
	if last.err != nil {
		return last.err
	}
	// It is absent if KnownObjects has been changed elsewhere since it listed the key.
	if last.present {
		f.log.Add(deltalog.Record{
			Kind: deltalog.Sync, Object: last.object, Key: key, Origin: last.origin,
		})
	}
	return nil
}

// lastLocked returns the state of a key once everything in the queue has been processed.
func (f *DeltaFIFO) lastLocked(key table.Key) lastState {
	if queued := f.log.Newest(key); queued != nil {
		return stateAfter(queued)
	}
	last := f.known.last(key)
	refused, isQuarantined := f.quarantine.of(byConsumer).entry(key)
	if isQuarantined {
		last.refused = refused
		last.quarantined = true
	}
	return last
}
