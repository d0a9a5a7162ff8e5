package cache

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/internal/table"
)

// DeltaFIFOOptions configures a DeltaFIFO. The zero value is useful.
type DeltaFIFOOptions struct {
	// Logger is used instead of klog's own. The queue's name is added to it.
	Logger *klog.Logger

	// Name appears in logs, and is what Name returns. Default: "DeltaFIFO".
	Name string

	// KeyFunction makes the keys. Default: MetaNamespaceKeyFunc. It is called with
	// an Undecoded, too.
	KeyFunction KeyFunc

	// KnownObjects is what the consumer holds, usually the store that it fills:
	// it must be up to date when the consumer's function returns. A Delete of
	// what is neither known nor in the queue is ignored; a list deletes what is
	// known and not listed; a Resync repeats what is known. Without it, only what
	// is in the queue counts.
	//
	// It is read under the queue's lock: it must answer from memory and must not
	// call the queue. What it may implement besides: ReceivedGetter, so that a
	// relist leaves unchanged objects alone; ResourceVersionUpdater, to be told
	// of the version each time everything up to a newer one has been processed.
	KnownObjects KeyListerGetter

	// EmitDeltaTypeReplaced makes listed objects come out as Replaced; without
	// it they are Sync, as of old, and so cannot be told from a resync.
	EmitDeltaTypeReplaced bool

	// Transformer, if not nil, is called for each object on its way in, before
	// anybody else sees it. It is not called for tombstones, a resync, or what
	// a relist shows to be unchanged.
	Transformer TransformFunc
}

// DeltaFIFO is a queue of changes between one producer, a Reflector, and a
// consumer. It keeps everything that happened to an object since the consumer
// last took something of that object, except that of deletions in a row one
// stays.
//
// There are two ways out. Pop takes all changes of the key that has waited
// longest. PopBatch takes what is pending in the order in which it came, with the
// resource versions between; Pop lets the versions pass. A consumer may change
// between the two: a version that comes alone goes by the call that waits, or was
// made last, and is kept for the first call if there was none yet.
//
// What is handed out and not yet processed still counts as in the queue: a list
// that lacks it deletes it, and a Delete of it is not ignored.
//
// Pop and PopBatch must not be called from within process: they would wait for
// themselves.
//
// All methods may be called concurrently, but objects of one key must come from
// one goroutine at a time, or nobody could say which is newer. Only Pop and
// PopBatch wait. One call of theirs hands out at a time; the others wait for it.
// No function of the user's runs under the queue's lock, so that one that is slow
// does not hold back the producer; KnownObjects is the exception, and with it what
// objects that are stored there say of their UID and version.
//
// Behaviour is that of client-go's DeltaFIFO unless said otherwise. Objects that
// cannot be taken are the main difference: the error names them, their previous
// state stays, and all others are taken.
type DeltaFIFO struct {
	name    string
	logger  klog.Logger
	keyFunc KeyFunc
	// named is true if keyFunc is one of ours, which give an object its name.
	named       bool
	known       KeyListerGetter
	updater     ResourceVersionUpdater
	transformer TransformFunc
	listedType  DeltaType
	synced      chan struct{}
	moved       *sync.Cond

	mu  sync.Mutex
	log deltaLog
	// quarantine has the objects that could not be queued; own is known, if that is a store of
	// this package.
	quarantine quarantinePart
	own        *keyedStore

	// populated is true once something has come that is not of a first list, or
	// a first list has ended. listing is true once a part of one has come.
	populated bool
	listing   bool
	isSynced  bool
	closed    bool

	// turn is true while something is handed out, until everybody who is to
	// know of it has been told.
	turn bool
	// waiting is how many wait for moved.
	waiting int
	// consumption is what becomes of versions that are told alone.
	consumption consumption
	// told is the last version that KnownObjects knows of.
	told string

	// shown are the keys that came before the end of the first list and are not
	// of it: by events, or by first lists that were aborted.
	shown sets.Set[string]

	// limited makes parts wait for the consumer, except while telling is true; room,
	// if not nil, is closed when there may be a place for one.
	limited bool
	telling bool
	room    chan struct{}
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

// NewDeltaFIFO makes a queue.
//
// Deprecated: use NewDeltaFIFOWithOptions, with EmitDeltaTypeReplaced.
func NewDeltaFIFO(keyFunc KeyFunc, knownObjects KeyListerGetter) *DeltaFIFO {
	return NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: keyFunc, KnownObjects: knownObjects})
}

// NewDeltaFIFOWithOptions makes an empty queue. It starts nothing.
func NewDeltaFIFOWithOptions(opts DeltaFIFOOptions) *DeltaFIFO {
	f := &DeltaFIFO{
		name:        "DeltaFIFO",
		logger:      klog.Background(),
		keyFunc:     MetaNamespaceKeyFunc,
		known:       opts.KnownObjects,
		transformer: opts.Transformer,
		listedType:  Sync,
		synced:      make(chan struct{}),
		shown:       sets.Set[string]{},
	}
	f.updater, _ = opts.KnownObjects.(ResourceVersionUpdater)
	setIf(&f.name, opts.Name)
	if opts.KeyFunction != nil {
		f.keyFunc = opts.KeyFunction
	}
	f.named = namesObjects(f.keyFunc)
	if opts.EmitDeltaTypeReplaced {
		f.listedType = Replaced
	}
	if opts.Logger != nil {
		f.logger = *opts.Logger
	}
	f.logger = klog.LoggerWithName(f.logger, f.name)
	f.moved = sync.NewCond(&f.mu)
	f.quarantine = quarantinePart{&quarantine{}, byQueue, ""}
	if own, ok := opts.KnownObjects.(interface{ keyed() *keyedStore }); ok {
		f.own = own.keyed()
	}
	return f
}

// KeyOf returns the key of an object, of a tombstone, or of Deltas as Pop returns
// them, for which it is that of the newest. Deltas that are empty have none: a
// KeyError with ErrZeroLengthDeltasObject.
func (f *DeltaFIFO) KeyOf(obj any) (string, error) {
	key, err := f.keyOf(obj)
	if deltas, ok := obj.(Deltas); ok && len(deltas) == 0 {
		return "", KeyError{obj, err}
	}
	return key, err
}

func (f *DeltaFIFO) keyOf(obj any) (string, error) {
	if deltas, ok := obj.(Deltas); ok {
		newest := deltas.Newest()
		if newest == nil {
			return "", ErrZeroLengthDeltasObject
		}
		obj = newest.Object
	}
	tombstone, ok := obj.(DeletedFinalStateUnknown)
	if !ok {
		return keyOf(f.keyFunc, obj)
	}
	if tombstone.Key == "" {
		return "", ErrEmptyKey
	}
	return tombstone.Key, nil
}

// Name returns the queue's name.
func (f *DeltaFIFO) Name() string { return f.name }

// Transformer returns the function that the options named, or nil.
func (f *DeltaFIFO) Transformer() TransformFunc { return f.transformer }

// Add takes an object that the source says is new. The error is a KeyError if it
// has no key, an *ObjectError if it could not be transformed; then the object's
// previous state stays.
func (f *DeltaFIFO) Add(obj any) error { return f.put(Added, obj) }

// Update takes a newer state of an object, with the errors of Add.
func (f *DeltaFIFO) Update(obj any) error { return f.put(Updated, obj) }

// Delete takes the final state of an object that is gone, or a tombstone; an Undecoded
// becomes a tombstone with the last known state. It is ignored if the object is
// neither queued nor known. With an error other than a
// KeyError the deletion was taken all the same, as a tombstone: the final state
// could not be transformed.
func (f *DeltaFIFO) Delete(obj any) error { return f.put(Deleted, obj) }

func (f *DeltaFIFO) put(kind DeltaType, obj any) error {
	a := arriving{queued: queued{Delta: Delta{kind, obj}}}
	if err := f.identify(&a.queued); err != nil {
		return KeyError{obj, err}
	}
	return f.take(&a, "")
}

// takeChanges implements taker.
func (f *DeltaFIFO) takeChanges(ctx context.Context, changes []change) (taken int, err error) {
	for ; taken < len(changes) && ctx.Err() == nil; taken++ {
		c := &changes[taken]
		err := f.takeEvent(c.kind, c.object, c.version)
		if bad, own := asObjectError(err); own {
			c.err = bad
		} else if err != nil {
			return taken, err
		}
	}
	return taken, ctx.Err()
}

// takeEvent takes an object together with the version that holds from then on.
func (f *DeltaFIFO) takeEvent(kind DeltaType, obj any, version string) error {
	a := arriving{queued: queued{Delta: Delta{kind, obj}}}
	if err := f.identify(&a.queued); err != nil {
		f.UpdateResourceVersion(version)
		return rejection(obj, err)
	}
	// Whether the event goes back in time is looked at first, without holding
	// the lock until it is taken: one goroutine feeds a queue its events.
	if regression := f.regression(f.newestReceived(a.key), a.key, a.received); regression != nil {
		return regression
	}
	return f.take(&a, version)
}

// regression is the error of an event that is older than what was last received of its key: the
// quarantined state, if one is that has a version, or else have.
func (f *DeltaFIFO) regression(have lastReceived, key table.Key, received Received) *RegressionError {
	if version := f.lastHeld(key); version != "" {
		have = lastReceived{origin: table.OriginOf(version, "")}
	}
	if have.deleted || !originOf(received).OlderThan(have.origin) {
		return nil
	}
	return &RegressionError{What: "event", Key: key.String(), Have: have.origin.Version(), Got: received.ResourceVersion}
}

// eventKey implements entryKeeper.
func (f *DeltaFIFO) eventKey(obj any) (table.Key, error) {
	c := queued{Delta: Delta{Object: obj}}
	err := f.identify(&c)
	return c.key, err
}

// olderThanEntry implements entryKeeper.
func (f *DeltaFIFO) olderThanEntry(key table.Key, received Received) error {
	if regression := f.regression(f.newestReceived(key), key, received); regression != nil {
		return regression
	}
	return nil
}

// UpdateResourceVersion says that resourceVersion holds once everything that was
// put in before has been processed. With a consumer that takes batches it comes
// out as a Bookmark, after that.
func (f *DeltaFIFO) UpdateResourceVersion(resourceVersion string) {
	f.mu.Lock()
	defer f.unlock()
	f.log.tell(resourceVersion, !f.populated)
}

// arriving is an event on its way in, with what user code has made of it.
type arriving struct {
	queued
	// unwanted is true if a transform returned nil.
	unwanted bool
	// failure is set if it could not be transformed.
	failure *ObjectError
	kept    error
}

// take queues what arrives, and the version that holds from then on, if there is one.
func (f *DeltaFIFO) take(a *arriving, version string) error {
	switch {
	case a.Type == Deleted:
		f.arriveDeleted(a)
	case f.transformer != nil:
		f.transform(a)
	}
	f.mu.Lock()
	defer f.unlock()
	// A first list that has begun ends when it is committed, whatever else
	// comes in between.
	f.populated = f.populated || !f.listing
	if !f.populated {
		f.shown.Insert(a.key.String())
	}
	f.takeLocked(a)
	f.log.tell(version, !f.populated)
	if a.failure == nil {
		return nil
	}
	return a.failure
}

// finalStateOf is an object, or the one that a tombstone holds.
func finalStateOf(obj any) any {
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return obj
}

// transform lets the transform make of an object what is to be kept.
func (f *DeltaFIFO) transform(a *arriving) {
	out, keep, err := transformedUnder(a.key, f.keyFunc, f.transformer, a.Object)
	if err != nil {
		a.failure = &ObjectError{Key: a.key.String(), ResourceVersion: a.received.ResourceVersion, Stage: StageTransform, Err: err}
		a.failure.object, _ = identityOf(a.Object)
	}
	a.Object, a.unwanted = out, !keep && err == nil
	a.kept = withoutStack(err)
}

// arriveDeleted is transform for a deletion. The final state of what nobody has is not
// looked at. In the place of one that could not be decoded the last known will stand.
func (f *DeltaFIFO) arriveDeleted(a *arriving) {
	a.keepText()
	switch {
	case isUndecoded(a.Object):
		a.Object = nil
	case f.mayDelete(a.key):
		f.transform(a)
	}
}

// takeLocked queues what arrives, holds it back, or ignores it. The caller holds
// mu.
func (f *DeltaFIFO) takeLocked(a *arriving) {
	if a.failure != nil && a.Type != Deleted {
		f.quarantine.add("", a.failure, a.kept)
		return
	}
	f.releaseLocked(&a.queued)
	if a.unwanted {
		a.keepText()
		a.Type = Deleted
	}
	f.addLocked(&a.queued)
}

// addLocked queues a change, or ignores it if it deletes nothing. A deletion
// without a final state becomes a tombstone. The caller holds mu.
func (f *DeltaFIFO) addLocked(c *queued) {
	if c.Type == Deleted {
		if !f.mayDeleteLocked(c.key) {
			return
		}
		if c.Object == nil {
			c.Object = DeletedFinalStateUnknown{Key: c.key.String(), Obj: f.standingLocked(c.key).obj}
		}
	}
	f.log.add(c, !f.populated)
}

// itself tells a queue from what embeds one. See embedsQueue.
func (f *DeltaFIFO) itself() *DeltaFIFO { return f }

// quarantined returns the objects that could not be queued.
func (f *DeltaFIFO) quarantined() []Quarantined { return f.quarantine.list(everyKey) }

// consumed is the consumer's part of the table.
func (f *DeltaFIFO) consumed() quarantinePart {
	return quarantinePart{f.quarantine.quarantine, byConsumer, f.quarantine.prefix}
}
