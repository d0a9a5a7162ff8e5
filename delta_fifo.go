package cache

import (
	"context"
	"errors"
	"sync"

	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/internal/table"
)

// DeltaType is the kind of change of a Delta.
type DeltaType string

// The kinds of change, with client-go's values.
const (
	// Added: the source sent a new object.
	Added DeltaType = "Added"
	// Updated: the source sent a newer state of an object.
	Updated DeltaType = "Updated"
	// Deleted: the object was deleted. Delta.Object is its final state or a DeletedFinalStateUnknown.
	Deleted DeltaType = "Deleted"
	// Replaced: the object was in a list. Needs DeltaFIFOOptions.EmitDeltaTypeReplaced, otherwise it is Sync.
	Replaced DeltaType = "Replaced"
	// Sync: the object is repeated by a resync.
	Sync DeltaType = "Sync"
	// Bookmark: Delta.Object is a BookmarkInfo. Only PopBatch delivers it.
	Bookmark DeltaType = "Bookmark"
)

// Delta is one change, with the object after it or, for Deleted, before.
type Delta struct {
	Type   DeltaType
	Object any
}

// Deltas are the changes of one key, oldest first, at least one.
type Deltas []Delta

// Oldest returns the first change, or nil.
func (d Deltas) Oldest() *Delta {
	if len(d) == 0 {
		return nil
	}
	return &d[0]
}

// Newest returns the last change, or nil.
func (d Deltas) Newest() *Delta {
	if len(d) == 0 {
		return nil
	}
	return &d[len(d)-1]
}

// DeletedFinalStateUnknown is a tombstone: the deletion of the object under Key was not observed (a relist lacked it).
// Obj is the last known state or nil.
type DeletedFinalStateUnknown struct {
	Key string
	Obj any
}

// BookmarkInfo is the object of a Bookmark delta.
type BookmarkInfo struct {
	ResourceVersion string
}

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
// change of an object since the consumer last received one of it, but merges consecutive deletions. An object that
// cannot be queued is named in the error; its previous state stays.
//
// Pop returns all changes of the key that has waited longest, PopBatch pending changes in their order with the resource
// versions between. Only these wait, one call at a time; calling them from within process deadlocks. Changes that are
// handed out and not yet processed count as queued.
//
// All methods may be called concurrently, but changes of one key must come from one goroutine at a time. No user
// function runs under the queue's lock, except KnownObjects and metadata methods of its objects.
type DeltaFIFO struct {
	name    string
	keyFunc KeyFunc
	// named is true if the user has set no key function: keys are namespace and name.
	named bool
	known KeyListerGetter
	// own is known, if that is a store of this package.
	own         *keyedStore
	transformer TransformFunc
	listedType  DeltaType
	synced      chan struct{}
	moved       *sync.Cond
	// quarantine has the objects that could not be queued.
	quarantine quarantinePart

	mu  sync.Mutex
	log deltaLog

	// populated is true once a change outside a first list has come, or
	// a first list has ended. listing is true once a list has begun, until one is committed.
	populated bool
	listing   bool
	isSynced  bool
	closed    bool

	// turn is true while a call hands out, until KnownObjects has the version.
	turn bool
	mode popMode
	// reported is the last version that KnownObjects was given.
	reported string
}

var (
	_ QueueWithBatch         = (*DeltaFIFO)(nil)
	_ TransformingStore      = (*DeltaFIFO)(nil)
	_ DoneChecker            = (*DeltaFIFO)(nil)
	_ Replacer               = (*DeltaFIFO)(nil)
	_ ResourceVersionUpdater = (*DeltaFIFO)(nil)
	_ taker                  = (*DeltaFIFO)(nil)
	_ entryKeeper            = (*DeltaFIFO)(nil)
)

// NewDeltaFIFO is for code written for client-go.
//
// Deprecated: use NewDeltaFIFOWithOptions, with EmitDeltaTypeReplaced.
func NewDeltaFIFO(keyFunc KeyFunc, knownObjects KeyListerGetter) *DeltaFIFO {
	return NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: keyFunc, KnownObjects: knownObjects})
}

// NewDeltaFIFOWithOptions makes an empty queue. It starts nothing.
func NewDeltaFIFOWithOptions(opts DeltaFIFOOptions) *DeltaFIFO {
	f := &DeltaFIFO{
		name: "DeltaFIFO", keyFunc: MetaNamespaceKeyFunc, known: opts.KnownObjects,
		transformer: opts.Transformer, listedType: Sync, synced: make(chan struct{}),
		log: newDeltaLog(), quarantine: quarantinePart{&quarantine{}, byQueue, ""},
	}
	if own, ok := opts.KnownObjects.(interface{ keyed() *keyedStore }); ok {
		f.own = own.keyed()
	}
	setIf(&f.name, opts.Name)
	if f.named = opts.KeyFunction == nil; !f.named {
		f.keyFunc = opts.KeyFunction
	}
	if opts.EmitDeltaTypeReplaced {
		f.listedType = Replaced
	}
	f.moved = sync.NewCond(&f.mu)
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
	tombstone, ok := obj.(DeletedFinalStateUnknown)
	switch {
	case !ok:
		return keyOf(f.keyFunc, obj)
	case tombstone.Key == "":
		return "", errEmptyKey
	}
	return tombstone.Key, nil
}

func (f *DeltaFIFO) Name() string { return f.name }

func (f *DeltaFIFO) Transformer() TransformFunc { return f.transformer }

// itself tells a queue from a type that embeds one. See embedsQueue.
func (f *DeltaFIFO) itself() *DeltaFIFO { return f }

// quarantined returns the objects that could not be queued.
func (f *DeltaFIFO) quarantined() []Quarantined { return f.quarantine.list(everyKey) }

// consumed is the consumer's part of the quarantine.
func (f *DeltaFIFO) consumed() quarantinePart {
	return quarantinePart{f.quarantine.quarantine, byConsumer, f.quarantine.prefix}
}

// Add queues a new object, or returns a KeyError or *ObjectError.
func (f *DeltaFIFO) Add(obj any) error { return f.put(Added, obj) }

// Update queues a newer state of an object, with the errors of Add.
func (f *DeltaFIFO) Update(obj any) error { return f.put(Updated, obj) }

// Delete queues the final state of a deleted object, or a tombstone; it ignores an unknown object. Only after a
// KeyError nothing is queued.
func (f *DeltaFIFO) Delete(obj any) error { return f.put(Deleted, obj) }

func (f *DeltaFIFO) put(kind DeltaType, obj any) error {
	c := change{kind: kind, object: obj}
	c.says.read(obj)
	if err := f.identify(&c); err != nil {
		return KeyError{obj, err}
	}
	f.prepare(&c)
	f.mu.Lock()
	f.changeLocked(&c)
	f.unlock()
	if c.finalErr != nil {
		return c.finalErr
	}
	return c.failure()
}

// takeChanges implements taker: it accepts one change, or none that is older than the last state of its key.
func (f *DeltaFIFO) takeChanges(ctx context.Context, changes []change) (accepted int, err error) {
	c := &changes[0]
	if err := f.identify(c); err != nil {
		c.err = rejection(c.object, err)
	} else {
		if err := f.olderThanEntry(c.key, c.says.received); err != nil {
			return 0, err
		}
		f.prepare(c)
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	f.mu.Lock()
	defer f.unlock()
	if c.key != (table.Key{}) {
		f.changeLocked(c)
	}
	f.log.setVersion(c.version)
	return 1, nil
}

// identify gives a change its key and origin. What its object says was read before.
func (f *DeltaFIFO) identify(c *change) error {
	if c.key = c.says.named(); !f.named || c.says.name == "" {
		key, err := f.KeyOf(c.object)
		if err != nil {
			c.key = table.Key{}
			return err
		}
		c.key = c.says.key(key)
		if !c.says.readable {
			c.says.read(finalStateOf(c.object))
		}
	}
	c.origin = originOf(c.says.received)
	return nil
}

// eventKey implements entryKeeper.
func (f *DeltaFIFO) eventKey(obj any) (table.Key, error) {
	c := change{object: obj}
	c.says.read(obj)
	err := f.identify(&c)
	return c.key, err
}

// olderThanEntry implements entryKeeper. The state last received of a key is the quarantined one, if it has a
// version, or the newest in the queue, or the known one.
func (f *DeltaFIFO) olderThanEntry(key table.Key, received ObjectVersion) error {
	c := change{key: key, origin: originOf(received), says: metadata{received: received}}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, newest := f.log.find(key)
	version, quarantined := f.quarantine.version(key)
	if !quarantined && newest == nil {
		version, _ = f.refused(key)
	}
	return c.regression(f.originLocked(key, newest), version)
}

// originLocked is the origin of the state last received of a key: zero if that is deleted.
func (f *DeltaFIFO) originLocked(key table.Key, newest *record) (origin table.Origin) {
	switch {
	case newest == nil && f.own != nil:
		origin, _ = f.own.originUnder(key)
	case newest == nil:
		if known, ok := f.known.(receivedGetter); ok {
			received, _ := known.ObjectVersion(key.String())
			origin = originOf(received)
		}
	case newest.kind != kindDeleted:
		origin = newest.origin
	}
	return origin
}

// refused is the version of the state of a key that the consumer or its store has quarantined.
func (f *DeltaFIFO) refused(key table.Key) (version string, quarantined bool) {
	if version, quarantined = f.consumed().version(key); !quarantined && f.own != nil {
		version, quarantined = f.own.storage.quarantine.version(key)
	}
	return version, quarantined
}

// prepare runs the transform. The final state of an object that is not there is not transformed; in
// the place of an UndecodableObject comes the last known state.
func (f *DeltaFIFO) prepare(c *change) {
	wanted := f.transformer != nil
	if c.kind == Deleted && isUndecoded(c.object) {
		c.object, wanted = nil, false
	} else if c.kind == Deleted && wanted {
		f.mu.Lock()
		_, wanted = f.deletesLocked(c.key)
		f.mu.Unlock()
	}
	if wanted {
		c.transform(f.keyFunc, f.transformer)
	}
}

// changeLocked queues a change that is not of a list, or quarantines it.
func (f *DeltaFIFO) changeLocked(c *change) {
	// A first list that has begun ends when it is committed, whatever comes in between.
	if !f.populated && !f.listing {
		f.populated, f.log.initialEnd = true, f.log.records.end()
	}
	if c.err != nil {
		f.quarantine.add(table.KeyOf(c.err.Key), c.err, c.kept)
		return
	}
	f.quarantine.release(c.key)
	f.addLocked(newRecord(c.kind, c.object, c.key, c.origin))
}

// addLocked queues a change, or ignores it if it deletes nothing. A deletion without a final state becomes a tombstone.
func (f *DeltaFIFO) addLocked(r record) {
	if r.kind == kindDeleted {
		last, deletes := f.deletesLocked(r.key)
		if !deletes {
			return
		}
		if r.object == nil {
			r.object = DeletedFinalStateUnknown{Key: r.key.String(), Obj: last}
		}
	}
	f.log.add(r)
}

// deletesLocked says whether a deletion of a key changes anything: the object is present, or its
// deletion waits and the two become one, or the consumer has quarantined it. last is its last state.
func (f *DeltaFIFO) deletesLocked(key table.Key) (last any, deletes bool) {
	_, newest := f.log.find(key)
	last, deletes, _ = f.stateLocked(key, newest)
	if !deletes && newest != nil {
		deletes = newest.stage == pending
	} else if !deletes {
		_, deletes = f.refused(key)
	}
	return last, deletes
}

// stateLocked is the state of a key once everything in the queue has been processed. It counts as
// present if KnownObjects fails to say.
func (f *DeltaFIFO) stateLocked(key table.Key, newest *record) (obj any, present bool, err error) {
	switch {
	case newest != nil:
		return finalStateOf(newest.object), newest.kind != kindDeleted, nil
	case f.own != nil:
		if !f.own.scope.hasKey(key) {
			return nil, false, nil
		}
		found, exists := f.own.storage.table.Get(key)
		return found.Object, exists, nil
	case f.known == nil:
		return nil, false, nil
	}
	obj, exists, err := f.known.GetByKey(key.String())
	if !exists && errors.Is(err, ErrQuarantined) {
		return nil, false, nil
	}
	if err != nil || !exists {
		return nil, err != nil, err
	}
	return obj, true, nil
}

// finalStateOf is an object, or the one that a tombstone holds.
func finalStateOf(obj any) any {
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return obj
}

// UpdateResourceVersion queues the version as a Bookmark.
func (f *DeltaFIFO) UpdateResourceVersion(resourceVersion string) {
	f.mu.Lock()
	defer f.unlock()
	f.log.setVersion(resourceVersion)
}

// Resync queues, as Sync, every known object that is not queued. The error joins an *ObjectError for each one that
// KnownObjects failed to return.
func (f *DeltaFIFO) Resync() error {
	f.mu.Lock()
	defer f.unlock()
	if f.own != nil && f.own.scope.prefix == "" && len(f.log.records.items) == 0 {
		f.log.reserve(make([]record, 0, f.own.storage.table.Len()))
	}
	var unread []error
	for key := range f.knownKeysLocked {
		if _, newest := f.log.find(key); newest != nil {
			continue
		}
		obj, exists, err := f.stateLocked(key, nil)
		if origin := f.originLocked(key, nil); err != nil {
			unread = append(unread, unreadKnown(key, origin, err))
		} else if exists { // unless KnownObjects is changed elsewhere meanwhile
			f.log.add(newRecord(Sync, obj, key, origin))
		}
	}
	return errors.Join(unread...)
}

func (f *DeltaFIFO) knownKeysLocked(yield func(table.Key) bool) {
	switch {
	case f.own != nil: // without making their texts
		f.own.storage.table.Snapshot().Each(func(e table.Entry) bool {
			key := e.Key()
			return !f.own.scope.hasKey(key) || yield(key)
		})
	case f.known != nil:
		for _, key := range f.known.ListKeys() {
			if !yield(table.KeyOf(key)) {
				return
			}
		}
	}
}

// unreadKnown is the error of an object that KnownObjects lists and could not return.
func unreadKnown(key table.Key, origin table.Origin, err error) *ObjectError {
	cause := &StoreError{Op: "GetByKey", Name: key.String(), Err: withoutObject(err)}
	return &ObjectError{Key: key.String(), ResourceVersion: origin.Version(), Stage: stageProcess, Err: cause}
}

// queueReplacement is a list on its way into a queue, which gets it at Commit. Of several states of a key the last one counts.
type queueReplacement struct {
	queue *DeltaFIFO
	// reset is ReplaceOptions.VersionsReset. over is true after Commit and Abort.
	reset, over bool
	// unchecked is true for a list that may turn out to be too old: refused are its objects that
	// could not be queued, which are quarantined at Commit.
	unchecked bool
	refused   []change
	// staged are the changes for Commit; one without a kind was deleted since.
	staged []record
	keys   map[table.Key]listedKey
}

// listedKey is a key that a list has, and so stays. place is one more than that of its staged change, 0 if
// there is none. It is withheld if its newest state could not be queued.
type listedKey struct {
	place    int32
	withheld bool
}

// BeginReplace implements Replacer.
func (f *DeltaFIFO) BeginReplace(options ReplaceOptions) Replacement {
	return f.beginReplace(options, 0)
}

func (f *DeltaFIFO) beginReplace(options ReplaceOptions, size int) *queueReplacement {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listing = true
	return &queueReplacement{
		queue: f, unchecked: options.Staged, reset: options.VersionsReset,
		staged: make([]record, 0, size), keys: make(map[table.Key]listedKey, size),
	}
}

// Replace makes list the whole content: its objects come out as Replaced (Sync without EmitDeltaTypeReplaced) unless
// unchanged, all others as Deleted, with tombstones. The error joins a KeyError or *ObjectError for each object that
// was not queued, or whose last state KnownObjects failed to return.
func (f *DeltaFIFO) Replace(list []any, resourceVersion string) error {
	r := f.beginReplace(ReplaceOptions{}, len(list))
	var failures []error
	refused, _ := r.stage(context.Background(), list)
	for _, one := range refused {
		failures = append(failures, one.failure())
	}
	return errors.Join(append(failures, r.Commit(context.Background(), resourceVersion))...)
}

// Add adds some of the listed objects. It does not wait.
func (r *queueReplacement) Add(ctx context.Context, part ReplacementPart) (rejected []*ObjectError, err error) {
	if r.over {
		return nil, errReplacementOver
	}
	refused, err := r.stage(ctx, part.Items)
	if err != nil {
		return nil, err
	}
	for _, one := range refused {
		rejected = append(rejected, one.err)
	}
	for _, obj := range part.Retain {
		if key, err := r.queue.eventKey(obj); err == nil {
			r.keys[key] = listedKey{r.keys[key].place, true}
		}
	}
	for _, obj := range part.Deleted {
		key, err := r.queue.eventKey(obj)
		if err != nil {
			rejected = append(rejected, rejection(obj, err))
			continue
		}
		// What was there before the list is deleted at Commit.
		if place := r.keys[key].place; place > 0 {
			r.staged[place-1] = record{}
		}
		delete(r.keys, key)
	}
	return rejected, nil
}

// stage prepares objects, and returns those that cannot be queued. It calls user functions, and fails where ctx ends in
// between.
func (r *queueReplacement) stage(ctx context.Context, objects []any) (refused []refusal, err error) {
	f := r.queue
	for _, obj := range objects {
		if ctx.Err() != nil {
			return refused, ctx.Err()
		}
		c := change{kind: f.listedType, object: obj}
		c.says.read(obj)
		if err := f.identify(&c); err != nil {
			refused = append(refused, refusal{obj, rejection(obj, err)})
			continue
		}
		listed := r.keys[c.key]
		listed.withheld = false
		if !r.isUnchanged(&c, listed) {
			f.prepare(&c)
			switch {
			case c.err != nil:
				refused = append(refused, refusal{obj, c.err})
				r.refuse(&c)
				listed.withheld = true
			case listed.place > 0:
				r.staged[listed.place-1] = newRecord(c.kind, c.object, c.key, c.origin)
			default:
				r.staged = append(r.staged, newRecord(c.kind, c.object, c.key, c.origin))
				listed.place = int32(len(r.staged))
			}
		}
		r.keys[c.key] = listed
	}
	return refused, nil
}

func (r *queueReplacement) refuse(c *change) {
	if r.unchecked {
		known, _ := r.queue.quarantine.entry(c.key)
		c.err.repeated = known.repeats(c.err)
		r.refused = append(r.refused, *c)
	} else {
		r.queue.quarantine.add(table.KeyOf(c.err.Key), c.err, c.kept)
	}
}

// isUnchanged says whether an object is in the state last received. Known objects do not count as long as nothing has
// come through the queue: its consumer was not notified of them.
func (r *queueReplacement) isUnchanged(c *change, listed listedKey) bool {
	if listed.place > 0 {
		return c.origin.Same(r.staged[listed.place-1].origin)
	}
	f := r.queue
	f.mu.Lock()
	defer f.mu.Unlock()
	_, newest := f.log.find(c.key)
	if r.reset || newest == nil && f.log.records.end() == 1 || !c.origin.Same(f.originLocked(c.key, newest)) {
		return false
	}
	// If the consumer has quarantined a newer state, the source has returned to this one.
	_, refused := f.refused(c.key)
	return !refused
}

// Commit queues the staged objects, a tombstone for each object that was not listed and is
// queued, handed out, known, or quarantined by the consumer, and the version, in one step. It does not
// wait. It fails if the replacement is over; any other
// error is an *ObjectError for each deleted object whose last state KnownObjects could not
// return: the list was queued all the same, and that object's tombstone is empty.
func (r *queueReplacement) Commit(_ context.Context, version string) error {
	if r.over {
		return errReplacementOver
	}
	f := r.queue
	f.mu.Lock()
	defer f.unlock()
	end := f.log.records.end()
	f.log.reserve(r.staged)
	for _, staged := range r.staged {
		if staged.kind != 0 {
			f.addLocked(staged)
		}
	}
	clear(r.staged[f.log.records.end()-end:]) // the queue may have their memory
	var unread []error
	deleteAbsent := func(key table.Key) bool {
		if _, listed := r.keys[key]; listed {
			return true
		}
		_, newest := f.log.find(key)
		if newest != nil && newest.kind == kindDeleted {
			return true
		}
		origin := f.originLocked(key, newest)
		last, _, err := f.stateLocked(key, newest)
		if err != nil {
			unread = append(unread, unreadKnown(key, origin, err))
		}
		f.log.add(newRecord(Deleted, DeletedFinalStateUnknown{Key: key.String(), Obj: last}, key, origin))
		return true
	}
	f.log.keysBefore(end, deleteAbsent)
	f.knownKeysLocked(deleteAbsent)
	for _, bad := range append(f.consumed().list(everyKey), quarantinedIn(f.known)...) {
		deleteAbsent(table.KeyOf(bad.Key))
	}
	for i := range r.refused {
		if c := &r.refused[i]; r.keys[c.key].withheld {
			f.quarantine.add(table.KeyOf(c.err.Key), c.err, c.kept)
		}
	}
	f.quarantine.releaseIf(func(key table.Key) bool { return !r.keys[key].withheld })
	f.log.setVersion(version)
	if !f.populated {
		f.populated, f.log.initialEnd = true, f.log.records.end()
	}
	f.listing = false
	*r = queueReplacement{over: true}
	return errors.Join(unread...)
}

// Abort drops the list.
func (r *queueReplacement) Abort() { *r = queueReplacement{over: true} }
