// Lists that are written to a queue. Which changes does a list queue, and which objects does it
// delete?

package cache

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/watchmirror/cache/internal/deltalog"
	"github.com/watchmirror/cache/internal/table"
)

// queueReplacement is the Replacement of a queue. It collects the list, and queues it at Commit.
type queueReplacement struct {
	queue *DeltaFIFO
	// versionsReset is that of the ReplaceOptions.
	versionsReset bool
	// over is true after Commit and Abort.
	over bool
	// changed is true once a change was queued that changes the state of a known object.
	changed   bool
	collected collectedList[table.Key]

	// staged are the changes to queue.
	staged []deltalog.Record
	// unchanged has the keys of the objects that are listed in the state last received.
	unchanged sets.Set[table.Key]
	// retained has the keys of the objects that the source has, but whose newest state cannot be
	// used. Their previous states and their entries in the quarantine stay.
	retained sets.Set[table.Key]
	failures []error
}

func newQueueReplacement(queue *DeltaFIFO, options ReplaceOptions) *queueReplacement {
	return &queueReplacement{
		queue:         queue,
		versionsReset: options.VersionsReset,
		unchanged:     sets.Set[table.Key]{},
		retained:      sets.Set[table.Key]{},
	}
}

// BeginReplace implements Replacer. The queue gets the list at Commit.
func (f *DeltaFIFO) BeginReplace(options ReplaceOptions) Replacement {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.openLists++
	return newQueueReplacement(f, options)
}

// Replace makes list the whole content: its objects come out as Replaced (Sync without
// EmitDeltaTypeReplaced) unless unchanged, all others as Deleted, with tombstones. The error joins
// a KeyError or *ObjectError for each object that was not queued, or whose last state KnownObjects
// failed to return.
func (f *DeltaFIFO) Replace(list []any, resourceVersion string) error {
	r := newQueueReplacement(f, ReplaceOptions{})
	_ = r.stage(context.Background(), list)
	return r.publish(resourceVersion)
}

// Add implements Replacement.
func (r *queueReplacement) Add(
	ctx context.Context, part ReplacementPart,
) (rejected []*ObjectError, err error) {
	if r.over {
		return nil, errReplacementOver
	}
	for _, obj := range part.Retain {
		if key, err := r.queue.eventKey(obj); err == nil {
			r.retained.Insert(key)
		}
	}
	for _, obj := range part.Items {
		key, err := r.queue.eventKey(obj)
		if err != nil {
			rejected = append(rejected, rejection(obj, err))
			continue
		}
		r.collected.put(key, key, obj)
	}
	for _, obj := range part.Deleted {
		key, err := r.queue.eventKey(obj)
		if err != nil {
			rejected = append(rejected, rejection(obj, err))
			continue
		}
		r.collected.remove(key)
		r.retained.Delete(key)
	}
	return rejected, ctx.Err()
}

// takeDuplicates implements duplicateFinder.
func (r *queueReplacement) takeDuplicates() duplicates { return r.collected.duplicates.take() }

// Commit implements Replacement. Its error is that of ctx if it ends before the list is queued.
func (r *queueReplacement) Commit(ctx context.Context, version string) error {
	if r.over {
		return errReplacementOver
	}
	defer r.Abort()
	if err := r.stage(ctx, r.collected.objects()); err != nil {
		return err
	}
	return r.publish(version)
}

// Abort implements Replacement.
func (r *queueReplacement) Abort() {
	if r.over {
		return
	}
	queue := r.queue
	*r = queueReplacement{queue: queue, over: true, changed: r.changed}
	queue.mu.Lock()
	defer queue.mu.Unlock()
	queue.openLists--
}

// stage calls the user's functions for the listed objects, and makes the changes to queue.
func (r *queueReplacement) stage(ctx context.Context, list []any) error {
	r.staged = make([]deltalog.Record, 0, len(list))
	for _, obj := range list {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.stageObject(obj)
	}
	return nil
}

func (r *queueReplacement) stageObject(obj any) {
	queue := r.queue
	c := &change{received: received{kind: queue.listedType, object: obj}}
	queue.keys.identify(c)
	if r.isUnchanged(c) {
		r.unchanged.Insert(c.prepared.key)
		r.retained.Delete(c.prepared.key)
		return
	}
	c.transform(queue.keys.keyFunc, queue.transformer, nil)
	if c.prepared.err != nil {
		r.failures = append(r.failures, c.prepared.failure())
		queue.quarantine.addChange(c)
		r.retained.Insert(c.prepared.key)
		return
	}
	r.retained.Delete(c.prepared.key)
	r.staged = append(r.staged, c.record())
}

// isUnchanged reports whether a listed object is in the state last received. If the consumer has
// quarantined a later state, the source has returned to this one. Known objects do not count until
// something has come through the queue: its consumer was not notified of them.
func (r *queueReplacement) isUnchanged(c *change) bool {
	if c.prepared.err != nil || r.versionsReset {
		return false
	}
	queue := r.queue
	queue.mu.Lock()
	defer queue.mu.Unlock()
	return queue.log.WasUsed() && queue.lastLocked(c.prepared.key).is(c.prepared.origin)
}

// publish queues the staged changes, the deletions of all other objects, and the version, in one
// step.
func (r *queueReplacement) publish(version string) error {
	queue := r.queue
	queue.mu.Lock()
	defer queue.unlock()
	start := queue.log.End()
	queue.log.Reserve(len(r.staged))
	for _, record := range r.staged {
		r.recordChangeLocked(record)
		queue.addLocked(record)
	}
	r.deleteOthersLocked(start)
	queue.quarantine.releaseIf(func(key table.Key) bool { return !r.retained.Has(key) })
	queue.log.AddVersion(version)
	if !queue.populated {
		queue.populated = true
		queue.log.EndInitial()
	}
	return errors.Join(r.failures...)
}

// recordChangeLocked is called before a staged change is queued.
func (r *queueReplacement) recordChangeLocked(record deltalog.Record) {
	if r.changed || !r.knowsStates() {
		return
	}
	last := r.queue.lastLocked(record.Key)
	if record.Kind == deltalog.Deleted {
		r.changed = last.present
		return
	}
	r.changed = !last.present || record.Origin != last.origin
}

// foundChanges implements changeFinder.
func (r *queueReplacement) foundChanges() (found, isKnown bool) {
	return r.changed, r.knowsStates()
}

// knowsStates reports whether the known objects have origins, as those of this package's stores.
func (r *queueReplacement) knowsStates() bool {
	_, isOwn := r.queue.known.(knownStore)
	return isOwn
}

// deleteOthersLocked queues the deletions of the objects that are not listed. They may be known,
// only queued, handed out, or quarantined by the consumer. start is the number of the first record
// of the list.
func (r *queueReplacement) deleteOthersLocked(start int64) {
	queue := r.queue
	for key := range queue.log.KeysBefore(start) {
		r.deleteUnlistedLocked(key, start)
	}
	queue.known.eachKey(func(key table.Key) { r.deleteUnlistedLocked(key, start) })
	byItsConsumer := func(e quarantineEntry) bool { return e.at.part.owner == byConsumer }
	refused := append(queue.quarantine.shared.list(byItsConsumer), queue.known.quarantined()...)
	for _, object := range refused {
		r.deleteUnlistedLocked(table.KeyOf(object.Key), start)
	}
}

// deleteUnlistedLocked queues the deletion of an object, unless it is listed or its deletion is
// queued.
func (r *queueReplacement) deleteUnlistedLocked(key table.Key, start int64) {
	queue := r.queue
	if r.unchanged.Has(key) || r.retained.Has(key) || queue.log.HasSince(key, start) {
		return
	}
	last := queue.lastLocked(key)
	if last.queued != nil && last.queued.Kind == deltalog.Deleted {
		return
	}
	if last.err != nil {
		r.failures = append(r.failures, last.err)
	}
	r.changed = true
	tombstone := DeletedFinalStateUnknown{Key: key.String(), Obj: last.object}
	queue.log.Add(deltalog.Record{
		Kind: deltalog.Deleted, Object: tombstone, Key: key, Origin: last.origin,
	})
}
