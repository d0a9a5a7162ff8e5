// Changes: those that a reflector passes to a store, and the Deltas of client-go's queue. Through
// which steps does a change pass, and which contracts must a store or queue keep to receive it?

package cache

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/watch"

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
	// Deleted: the object was deleted. Delta.Object is its final state or a
	// DeletedFinalStateUnknown.
	Deleted DeltaType = "Deleted"
	// Replaced: the object was in a list. Needs DeltaFIFOOptions.EmitDeltaTypeReplaced, otherwise
	// it is Sync.
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

// BookmarkInfo is the object of a Bookmark delta.
type BookmarkInfo struct{ ResourceVersion string }

// change is a change of one object on its way from a source through a store to handlers. The source
// sets what was received, the intake what was prepared, and the write its result.
type change struct {
	received received
	prepared prepared
	result   result
}

// received is a change as a source has sent it.
type received struct {
	// event is the event that was received, if the change comes from a watch.
	event watch.Event
	// kind is empty for an event that changes no object. Otherwise object is the changed one; that
	// of a deletion is its final state, a tombstone, or nil.
	kind   DeltaType
	object any
	meta   metadata
	// version becomes the store's with the change, unless it is empty.
	version string
	// excluded is true for an object of another replica's shard. Its change deletes the stored one.
	excluded bool
}

// prepared is what a received change does to a store.
type prepared struct {
	key    table.Key
	origin table.Origin
	// deletes is true if the object was deleted, or is dropped by the transform. Otherwise object
	// is the one to store. That of a deletion is its final state, or nil if that is not known.
	deletes bool
	// dropped is true if the transform dropped the object.
	dropped bool
	object  any
	// version is the received object's, for errors.
	version string
	// values are the index values, by the position of the index in set.
	values [][]string
	set    *indexerSet
	// place is where the store looks for the key, zero until a writer has sought it. It stays usable
	// when the table changes.
	place table.Place
	// mayExist is true if an earlier change, which is not written yet, may add the object.
	mayExist bool
	// unchanged is true if the store had the listed object when the change was prepared, or the
	// list a newer state of it.
	unchanged bool
	// err is why the change cannot be applied; quarantineErr is its cause as the quarantine keeps
	// it (withoutStack). finalErr is why the final state of a deletion cannot be used. Such a
	// deletion is applied.
	err, finalErr *ObjectError
	quarantineErr error
}

// result is what a write has done for a change. It is empty unless the change was applied.
type result struct {
	applied bool
	// existed is true if the object was stored before, as old. recreated is true if its UID was
	// another.
	existed   bool
	old       any
	recreated bool
	// wasQuarantined is true if the newest state of the object was quarantined.
	wasQuarantined bool
}

// prepare begins the preparation of a received change.
func (c *change) prepare() {
	r := &c.received
	if !r.meta.readable {
		_ = r.meta.read(r.object)
	}
	p := &c.prepared
	p.object = r.object
	p.deletes = r.kind == Deleted
	p.version = r.meta.received.ResourceVersion
	p.origin = originOf(r.meta.received)
}

func (p *prepared) fail(stage string, err error) {
	p.err = p.objectError(stage, err)
	p.err.object = identityOf(p.object)
	p.quarantineErr = withoutStack(err)
}

// indexIn returns the index of the change in a batch that has the same key, or -1.
func (p *prepared) indexIn(batch []change) int {
	for i := range batch {
		other := &batch[i].prepared
		if other.place == p.place && other.key == p.key && other.err == nil && p.err == nil {
			return i
		}
	}
	return -1
}

func (p *prepared) objectError(stage string, err error) *ObjectError {
	return &ObjectError{Key: p.key.String(), ResourceVersion: p.version, Stage: stage, Err: err}
}

// failure returns err or finalErr for callers of client-go's methods.
func (p *prepared) failure() error {
	bad := cmp.Or(p.err, p.finalErr)
	if bad == nil {
		return nil
	}
	if bad.Stage == stageKey || bad.Stage == stageMetadata {
		return KeyError{Obj: p.object, Err: bad.Err}
	}
	return bad
}

// index computes the values for the indexes of set, unless they are known.
func (p *prepared) index(set *indexerSet, buffer *valueBuffer) {
	if p.deletes || p.err != nil || p.set == set || p.unchanged {
		return
	}
	values, err := set.valuesOf(p.object, buffer)
	if err != nil {
		p.fail(stageIndex, err)
		return
	}
	p.values = values
	p.set = set
}

// changeAccepter accepts changes from a reflector. The stores, informers and the queue of this
// package implement it.
type changeAccepter interface {
	// acceptChanges accepts changes in order, at least the first unless it fails. The caller has
	// read their metadata. It returns the number of accepted changes. These include changes with an
	// err, whose versions count too. The error is that of the next change: a
	// *VersionRegressionError if it is older than the store's state, or the context's. Readers see
	// a change with its version.
	acceptChanges(ctx context.Context, changes []change) (accepted int, err error)
}

// eventChecker finds events that are older than the store. The stores and the queue of this package
// implement it.
type eventChecker interface {
	// eventKey returns the key of an event's object.
	eventKey(obj any) (table.Key, error)
	// olderThanEntry returns the error for an event that is older than the known state of its key,
	// or nil.
	olderThanEntry(c *change) error
}

// transform transforms the object. A dropped object becomes a deletion. The final state of a
// deletion is nil, and becomes the last known state, if its transform fails, if it was not decoded,
// or if it belongs to another replica. The final state of an object that is not stored is not
// transformed.
func (c *change) transform(keyFunc KeyFunc, transform TransformFunc, there func() bool) {
	p := &c.prepared
	if p.deletes && (c.received.excluded || isUndecoded(p.object)) {
		p.object = nil
		return
	}
	if p.err != nil || transform == nil {
		return
	}
	if p.deletes && !there() {
		return
	}
	out, keep, err := callTransform(p.key, keyFunc, transform, p.object)
	switch {
	case err != nil && p.deletes:
		p.finalErr = p.objectError(stageTransform, err)
		p.object = nil
	case err != nil:
		p.fail(stageTransform, err)
	case !keep:
		p.deletes = true
		p.dropped = true
		p.object = nil
	default:
		p.object = out
	}
}

// regression returns the error for an event that is older than the newest known state of its key,
// or nil.
func (p *prepared) regression(newest table.Origin) error {
	if !p.origin.OlderThan(newest) {
		return nil
	}
	return &VersionRegressionError{
		Kind:     "event",
		Key:      p.key.String(),
		Current:  newest.Version(),
		Received: p.version,
	}
}

// ReflectorStore receives a reflector's calls, one at a time. Optional interfaces: Replacer,
// ResourceVersionUpdater, ReflectorBookmarkStore.
type ReflectorStore interface {
	Add(obj any) error
	Update(obj any) error
	// Delete removes an object; obj is its final state. If that could not be decoded, a store of
	// your own receives the last state (if it has GetByKey), else a DeletedFinalStateUnknown
	// without Obj, and the UndecodableObject if it refuses that with a KeyError.
	Delete(obj any) error
	// Replace makes the list the whole content, at the given version. The store owns the slice
	// afterwards.
	Replace(list []any, resourceVersion string) error
	Resync() error
}

// ReflectorBookmarkStore is a ReflectorStore that receives bookmarks.
type ReflectorBookmarkStore interface {
	Bookmark(resourceVersion string) error
}

// ResourceVersionUpdater is a ReflectorStore that receives the version after each event and, unless
// it is a ReflectorBookmarkStore, bookmark.
type ResourceVersionUpdater interface{ UpdateResourceVersion(resourceVersion string) }

// TransformingStore is a ReflectorStore that transforms its objects itself.
type TransformingStore interface {
	ReflectorStore
	Transformer() TransformFunc
}

// Replacer is a ReflectorStore that accepts a list in parts, as this package's stores and queues
// do. Types that embed a DeltaFIFO receive one Replace.
type Replacer interface {
	// BeginReplace does not block. Replacements and other writes may overlap, and the last to
	// commit decides: after Commit the store has the listed objects and no others.
	BeginReplace(options ReplaceOptions) Replacement
}

// ReplaceOptions are options of a replacement. Fields may be added.
type ReplaceOptions struct {
	// Staged publishes the parts at Commit, even if nothing has been committed yet.
	Staged bool
	// VersionsReset: the source issues versions again; only objects whose content is known to be
	// equal are unchanged.
	VersionsReset bool
}

// Replacement is one list being written to a store: Add any number of times, then Commit or Abort,
// on one goroutine. The first one of a store (not of a queue) is visible as it arrives, later or
// Staged ones at Commit in one step: objects, indexes, deletions, version.
type Replacement interface {
	// Add accepts some of the listed objects. One that cannot be applied is returned in rejected
	// (by a queue that cannot transform it, by Commit) and keeps its previous state, also through
	// Commit. One with the UID and resource version last received for its key is unchanged: it is
	// neither transformed nor delivered. Add does not wait. After an error, call Abort.
	Add(ctx context.Context, part ReplacementPart) (rejected []*ObjectError, err error)
	// Commit deletes the objects that were in no part and sets the store's version. It does not
	// wait for the consumer. After an error that joins only *ObjectErrors the list was applied
	// without those objects.
	Commit(ctx context.Context, version string) error
	// Abort ends the replacement. Nothing of a relist is published; the parts of a first list stay.
	// No-op after Commit.
	Abort()
}

// changeFinder is a Replacement that knows, after Commit, whether an object was added or removed or
// has another version or UID. isKnown is false if it cannot compare with the objects before.
type changeFinder interface {
	foundChanges() (found, isKnown bool)
}

// ReplacementPart is a piece of a list. The store owns the slices afterwards.
type ReplacementPart struct {
	Items []any
	// Retain are objects that the source has but that could not be used: the stored state under
	// their key stays.
	Retain []any
	// Deleted are objects that were listed and have been deleted since, while the list was
	// streamed. One that is an item of a later part is stored again, with any version.
	Deleted []any
	// excluded means that Deleted are objects of other replicas: the stored objects are deleted
	// with their last known states.
	excluded bool
	// ofStream means that Items and Deleted are events of a streaming list, in their order.
	ofStream bool
}

// MutatedObjectDetector finds stored objects that a reader or handler has changed. Package mutation
// implements it.
type MutatedObjectDetector interface {
	// Watch is called with each object before it can be read. Calls are concurrent.
	Watch(key string, obj any)
	// Run reports each *MutatedObjectError once, until ctx ends.
	Run(ctx context.Context, store Store, report func(key string, err error))
}

// changeKinds has the types of events that are changes.
var changeKinds = map[watch.EventType]DeltaType{
	watch.Added:    Added,
	watch.Modified: Updated,
	watch.Deleted:  Deleted,
}
