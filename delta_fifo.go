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
	// KnownObjects has the objects that the consumer has applied, usually its store, up to date when the consumer's
	// function returns. Without it only queued objects are known to Delete, Replace and Resync.
	//
	// It is read under the queue's lock: it must answer from memory and not call the queue. With a method
	// ObjectVersion(key string) (ObjectVersion, bool), as this package's stores have, a relist skips unchanged objects.
	// A ResourceVersionUpdater receives each version that has been processed.
	KnownObjects KeyListerGetter
	// EmitDeltaTypeReplaced gives listed objects the type Replaced instead of Sync.
	EmitDeltaTypeReplaced bool
	// Transformer, if not nil, transforms each object before it is queued, except tombstones and unchanged objects.
	Transformer TransformFunc
}

// DeltaFIFO is a queue of changes between a Reflector and a consumer, with the behaviour of client-go's. It keeps every
// change of an object since the consumer last received one of it, but merges consecutive deletions. An error
// names an object that cannot be queued; its previous state stays.
//
// Pop returns all changes of the key that has waited longest, PopBatch pending changes in their order with the resource
// versions between. Only these wait, one call at a time; calling them from within process deadlocks. Changes that are
// handed out and not yet processed count as queued.
//
// All methods may be called concurrently, but changes of one key must come from one goroutine at a time. No user
// function runs under the queue's lock, except KnownObjects and metadata methods of its objects.
type DeltaFIFO struct {
	keyer
	name string
	// userKey is the user's key function.
	userKey KeyFunc
	known   KeyListerGetter
	// own is known, if that is a store of this package.
	own         *keyedStore
	transformer TransformFunc
	listedType  DeltaType
	synced      chan struct{}
	// changed is signaled when something is added, and when a call of Pop or PopBatch ends.
	changed *sync.Cond
	// quarantine has the objects that could not be queued.
	quarantine quarantinePart

	mu  sync.Mutex
	log deltalog.Log

	// populated is true once a change outside a first list has come, or a first list has ended.
	populated, closed bool
	// listings is the number of open lists.
	listings int
	// isSynced is true once synced is closed. Each call asks for it.
	isSynced bool
	// consuming is true while a call of Pop or PopBatch processes changes. That call owns reported.
	consuming bool

	// updater is KnownObjects, if it receives versions, or nil. reported is the last one that it received.
	updater  ResourceVersionUpdater
	reported string
}

// NewDeltaFIFO is for code written for client-go.
//
// Deprecated: use NewDeltaFIFOWithOptions, with EmitDeltaTypeReplaced.
func NewDeltaFIFO(keyFunc KeyFunc, knownObjects KeyListerGetter) *DeltaFIFO {
	return NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: keyFunc, KnownObjects: knownObjects})
}

// NewDeltaFIFOWithOptions makes an empty queue. It starts nothing.
func NewDeltaFIFOWithOptions(opts DeltaFIFOOptions) *DeltaFIFO {
	f := &DeltaFIFO{
		name: cmp.Or(opts.Name, "DeltaFIFO"), userKey: MetaNamespaceKeyFunc, known: opts.KnownObjects,
		transformer: opts.Transformer, listedType: Sync, synced: make(chan struct{}),
		quarantine: quarantinePart{&quarantine{}, byQueue, ""},
	}
	f.own, _ = keyedStoreOf(opts.KnownObjects)
	f.updater, _ = opts.KnownObjects.(ResourceVersionUpdater)
	if opts.KeyFunction != nil {
		f.userKey = opts.KeyFunction
	}
	f.keyer = keyer{keyFunc: f.KeyOf, byName: isByName(f.userKey)}
	if opts.EmitDeltaTypeReplaced {
		f.listedType = Replaced
	}
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
	return keyOf(f.userKey, obj)
}

func (f *DeltaFIFO) Name() string { return f.name }

func (f *DeltaFIFO) Transformer() TransformFunc { return f.transformer }

// itself distinguishes a queue from a type that embeds one.
func (f *DeltaFIFO) itself() *DeltaFIFO { return f }

// Add queues a new object, or returns a KeyError or *ObjectError.
func (f *DeltaFIFO) Add(obj any) error { return f.put(Added, obj) }

// Update queues a newer state of an object, with the errors of Add.
func (f *DeltaFIFO) Update(obj any) error { return f.put(Updated, obj) }

// Delete queues the final state of a deleted object, or a tombstone; it ignores an unknown object. Only after a
// KeyError nothing is queued.
func (f *DeltaFIFO) Delete(obj any) error { return f.put(Deleted, obj) }

func (f *DeltaFIFO) put(kind DeltaType, obj any) error {
	c := [1]change{{kind: kind, object: obj}}
	if f.identify(c[:]); c[0].err == nil {
		f.putChange(&c[0])
	}
	return c[0].failure()
}

// putEvent is acceptChanges for an event of a reflector. A method of that name would be promoted to types that embed a queue.
func (f *DeltaFIFO) putEvent(events []change) (accepted int, err error) {
	c := &events[0]
	if f.identify(events[:1]); c.err == nil {
		if err := f.olderThanEntry(c); err != nil {
			return 0, err
		}
	}
	f.putChange(c)
	return 1, nil
}

// putChange transforms an object and queues or quarantines it, with its version.
func (f *DeltaFIFO) putChange(c *change) {
	c.transform(f.keyFunc, f.transformer, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.lastLocked(c.key).deletable()
	})
	f.mu.Lock()
	defer f.unlock()
	// While a first list is open, events do not make the queue populated: the commit does.
	f.populated = f.populated || f.listings == 0
	if c.err != nil {
		f.quarantine.addChange(c)
	} else {
		f.quarantine.release(c.key)
		f.addLocked(c.record())
	}
	f.log.AddVersion(c.version)
}

// olderThanEntry implements eventChecker. The state last received is the one that the queue has quarantined, if it has a
// version, or else the last one of lastLocked.
func (f *DeltaFIFO) olderThanEntry(c *change) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.lastLocked(c.key)
	quarantined, found := f.quarantine.entry(c.key)
	if !found {
		quarantined = last.refused
	}
	return c.regression(quarantined.originOr(last.origin))
}

// receivedGetter is an optional interface of DeltaFIFOOptions.KnownObjects. Without it a queue delivers every listed object,
// as client-go's does.
type receivedGetter interface {
	ObjectVersion(key string) (ObjectVersion, bool)
}

// lastState is the state of a key once everything in the queue has been processed.
type lastState struct {
	object any
	// present is also true if KnownObjects returned err, an *ObjectError.
	present bool
	err     error
	// origin is zero if the object is deleted.
	origin table.Origin
	// queued is the last change in the queue, or nil.
	queued *deltalog.Record
	// refused is a later state that the consumer or its store has quarantined, if nothing is queued.
	refused     quarantineEntry
	quarantined bool
}

// deletable reports whether a deletion must be queued. It must if another deletion is pending: add merges the two.
func (s lastState) deletable() bool {
	return s.present || s.quarantined || s.queued != nil && !s.queued.IsHandedOut()
}

// is reports whether a listed object has this state.
func (s lastState) is(listed table.Origin) bool { return !s.quarantined && listed.Same(s.origin) }

// stateAfter is the state of a key once a queued change has been processed.
func stateAfter(queued *deltalog.Record) lastState {
	last := lastState{queued: queued, object: queued.Object}
	if queued.Kind != deltalog.Deleted {
		last.present = true
		last.origin = queued.Origin
	}
	if tombstone, ok := queued.Object.(DeletedFinalStateUnknown); ok {
		last.object = tombstone.Obj
	}
	return last
}

func (f *DeltaFIFO) lastLocked(key table.Key) (last lastState) {
	if queued := f.log.Newest(key); queued != nil {
		return stateAfter(queued)
	}
	last.refused, last.quarantined = quarantinePart{f.quarantine.quarantine, byConsumer, ""}.entry(key)
	switch {
	case f.own != nil:
		known := f.own.entry(key)
		last.object, last.present, last.origin = known.Object, known.Exists, known.Origin
		if !last.quarantined {
			last.refused, last.quarantined = f.own.storage.quarantine.entry(key)
		}
	case f.known != nil:
		obj, exists, err := f.known.GetByKey(key.String())
		switch {
		case errors.Is(err, ErrQuarantined) && !exists:
			return last
		case err != nil:
			cause := &StoreError{Op: "GetByKey", Name: key.String(), Err: withoutObject(err)}
			last.present, last.err = true, &ObjectError{Key: key.String(), Stage: stageProcess, Err: cause}
		case exists:
			last.present, last.object = true, obj
		}
		if known, ok := f.known.(receivedGetter); ok {
			received, _ := known.ObjectVersion(key.String())
			last.origin = originOf(received)
		}
	}
	return last
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
	if !last.deletable() {
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

// Resync queues, as Sync, every known object that is not queued. The error joins an *ObjectError for each one that
// KnownObjects failed to return.
func (f *DeltaFIFO) Resync() error {
	f.mu.Lock()
	defer f.unlock()
	if f.own != nil && f.own.scope.prefix == "" {
		f.log.Reserve(f.own.storage.table.Len())
	}
	var unread []error
	f.eachKnownLocked(func(key table.Key) {
		switch last := f.lastLocked(key); {
		case last.queued != nil:
		case last.err != nil:
			unread = append(unread, last.err)
		case last.present: // not if KnownObjects has been changed elsewhere since it listed the key
			f.log.Add(deltalog.Record{Kind: deltalog.Sync, Object: last.object, Key: key, Origin: last.origin})
		}
	})
	return errors.Join(unread...)
}

// eachKnownLocked calls visit for each key of KnownObjects. The keys of a store of this package need no texts.
func (f *DeltaFIFO) eachKnownLocked(visit func(table.Key)) {
	switch {
	case f.own != nil:
		for e := range f.own.storage.table.Snapshot().Each {
			if key := e.Key(); f.own.hasKey(key) {
				visit(key)
			}
		}
	case f.known != nil:
		for _, key := range f.known.ListKeys() {
			visit(table.KeyOf(key))
		}
	}
}

// BeginReplace implements Replacer. The queue gets the list at Commit.
func (f *DeltaFIFO) BeginReplace(options ReplaceOptions) Replacement {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listings++
	return foreignStore{f}.BeginReplace(options)
}

// endListing ends a list that BeginReplace has begun.
func (f *DeltaFIFO) endListing() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listings--
}

// Replace makes list the whole content: its objects come out as Replaced (Sync without EmitDeltaTypeReplaced) unless
// unchanged, all others as Deleted, with tombstones. The error joins a KeyError or *ObjectError for each object that
// was not queued, or whose last state KnownObjects failed to return.
func (f *DeltaFIFO) Replace(list []any, resourceVersion string) error {
	return f.replace(context.Background(), &wholeReplacement{list: list, retained: map[table.Key]bool{}}, resourceVersion)
}

// replace queues a list, a tombstone for each object that is not listed, and the version, in one step. Objects are also
// deleted if they are only queued, handed out, or quarantined by the consumer. User functions are called before that step.
// The error is that of ctx if it ends meanwhile.
func (f *DeltaFIFO) replace(ctx context.Context, w *wholeReplacement, version string) error {
	var failures []error
	staged := make([]deltalog.Record, 0, len(w.list))
	for _, obj := range w.list {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		one := [1]change{{kind: f.listedType, object: obj}}
		c := &one[0]
		if f.identify(one[:]); c.err == nil && !w.reset && f.isUnchanged(c) {
			w.retained[c.key] = false
			continue
		}
		if c.transform(f.keyFunc, f.transformer, nil); c.err != nil {
			failures = append(failures, c.failure())
			f.quarantine.addChange(c)
			w.retained[c.key] = true
			continue
		}
		delete(w.retained, c.key)
		staged = append(staged, c.record())
	}
	f.mu.Lock()
	defer f.unlock()
	end := f.log.End()
	f.log.Reserve(len(staged))
	for _, r := range staged {
		f.addLocked(r)
	}
	deleteAbsent := func(key table.Key) {
		if _, found := w.retained[key]; found || f.log.HasSince(key, end) {
			return
		}
		last := f.lastLocked(key)
		if last.queued != nil && last.queued.Kind == deltalog.Deleted {
			return
		}
		failures = append(failures, last.err) // often nil, which Join ignores
		tombstone := DeletedFinalStateUnknown{Key: key.String(), Obj: last.object}
		f.log.Add(deltalog.Record{Kind: deltalog.Deleted, Object: tombstone, Key: key, Origin: last.origin})
	}
	for key := range f.log.KeysBefore(end) {
		deleteAbsent(key)
	}
	f.eachKnownLocked(deleteAbsent)
	refused := f.quarantine.list(func(at quarantineKey) bool { return at.part.owner == byConsumer })
	if f.own != nil {
		refused = append(refused, f.own.quarantinedObjects()...)
	}
	for _, bad := range refused {
		deleteAbsent(table.KeyOf(bad.Key))
	}
	f.quarantine.releaseIf(func(key table.Key) bool { return !w.retained[key] })
	f.log.AddVersion(version)
	if !f.populated {
		f.populated = true
		f.log.EndInitial()
	}
	return errors.Join(failures...)
}

// isUnchanged reports whether a listed object is in the state last received. If the consumer has quarantined a later
// state, the source has returned to this one. Known objects do not count until something has come through the queue: its
// consumer was not notified of them.
func (f *DeltaFIFO) isUnchanged(c *change) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.WasUsed() && f.lastLocked(c.key).is(c.origin)
}
