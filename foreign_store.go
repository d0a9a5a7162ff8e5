package cache

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/watchmirror/cache/internal/table"
)

// foreignStore is a store of another package, or a queue. It receives one call for each change, and
// one Replace for each list.
type foreignStore struct{ ReflectorStore }

// acceptChanges implements changeAccepter for the first change. An error of the store that is not
// an ObjectError is returned.
func (f foreignStore) acceptChanges(_ context.Context, changes []change) (int, error) {
	if queue, isQueue := f.ReflectorStore.(*DeltaFIFO); isQueue {
		return queue.putEvent(changes)
	}
	c := &changes[0]
	var op string
	var err error
	switch c.kind {
	case Added:
		op, err = "Add", f.Add(c.object)
	case Updated:
		op, err = "Update", f.Update(c.object)
	default:
		op, err = "Delete", deleteFrom(f.ReflectorStore, c)
	}
	switch objects, other := splitObjectErrors(err); {
	case other != nil:
		return 0, &StoreError{Op: op, Name: nameOf(c.object), Err: other}
	case len(objects) > 0:
		bad := *objects[0] // the store may keep it
		bad.Key, bad.object = cmp.Or(bad.Key, nameOf(c.object)), identityOf(c.object)
		c.err = &bad
	}
	if updater, ok := f.ReflectorStore.(ResourceVersionUpdater); ok && c.version != "" {
		updater.UpdateResourceVersion(c.version)
	}
	return 1, nil
}

// BeginReplace implements Replacer.
func (f foreignStore) BeginReplace(options ReplaceOptions) Replacement {
	places, retained := map[identity]int{}, map[table.Key]bool{}
	return &wholeReplacement{store: f.ReflectorStore, reset: options.VersionsReset, places: places, retained: retained}
}

// wholeReplacement is the Replacement of a queue, and of a store without BeginReplace. It collects
// the list for one Replace. A store of another package loses its states of rejected objects.
type wholeReplacement struct {
	store ReflectorStore
	// reset is ReplaceOptions.VersionsReset. over is true after Commit and Abort.
	reset, over bool
	// list has nil for an object that a stream has deleted.
	list []any
	// places are the positions in list of the objects that have a name.
	places map[identity]int
	// retained has the keys of the objects whose state in a queue stays, and is true if their
	// newest state was refused.
	retained map[table.Key]bool
}

// Add implements Replacement. A stream, or a repeated page, may have several states of an object:
// the newest one stays. If their versions cannot be compared, the last one stays.
func (w *wholeReplacement) Add(ctx context.Context, part ReplacementPart) (rejected []*ObjectError, err error) {
	if w.over {
		return nil, errReplacementOver
	}
	for _, obj := range part.Retain {
		if id, err := w.identify(obj); err == nil {
			w.retained[id.name] = true
		}
	}
	for _, obj := range part.Items {
		id, err := w.identify(obj)
		at, again := w.places[id]
		switch {
		case err != nil:
			rejected = append(rejected, rejection(obj, err))
		case !again:
			if id != (identity{}) {
				w.places[id] = len(w.list)
			}
			w.list = append(w.list, obj)
		case !versionBefore(receivedOf(obj).ResourceVersion, receivedOf(w.list[at]).ResourceVersion):
			w.list[at] = obj
		}
	}
	for _, obj := range part.Deleted {
		deleted, err := w.identify(obj)
		if err != nil {
			rejected = append(rejected, rejection(obj, err))
			continue
		}
		delete(w.retained, deleted.name)
		if w.remove(deleted); isUndecoded(obj) {
			for id := range w.places {
				if id.matches(deleted) {
					w.remove(id)
				}
			}
		}
	}
	return rejected, ctx.Err()
}

// identify returns the identity of an object in the store. In a queue that is its key.
func (w *wholeReplacement) identify(obj any) (identity, error) {
	queue, isQueue := w.store.(*DeltaFIFO)
	if !isQueue {
		return identityOf(obj), nil
	}
	key, err := queue.eventKey(obj)
	return identity{name: key}, err
}

func (w *wholeReplacement) remove(id identity) {
	if at, listed := w.places[id]; listed {
		w.list[at] = nil
		delete(w.places, id)
	}
}

// Commit implements Replacement.
func (w *wholeReplacement) Commit(ctx context.Context, version string) error {
	if w.over {
		return errReplacementOver
	}
	defer w.Abort()
	w.list = slices.DeleteFunc(w.list, func(obj any) bool { return obj == nil })
	if queue, isQueue := w.store.(*DeltaFIFO); isQueue {
		return queue.replace(ctx, w, version)
	}
	return w.store.Replace(w.list, version)
}

// Abort implements Replacement.
func (w *wholeReplacement) Abort() {
	if w.over {
		return
	}
	queue, isQueue := w.store.(*DeltaFIFO)
	*w = wholeReplacement{over: true}
	if isQueue {
		queue.endListing()
	}
}

// deleteFrom deletes an object from a store of another package. If the object could not be decoded,
// or belongs to another replica, it deletes the last known state. A panic is caught then: the store
// may not expect an UndecodableObject.
func deleteFrom(store ReflectorStore, c *change) (err error) {
	obj := c.object
	if !c.excluded && !isUndecoded(obj) {
		return store.Delete(obj)
	}
	defer recoverPanic("Delete", &err)
	name := nameOf(obj)
	if getter, ok := store.(KeyGetter); ok { // that of a queue may return anything
		if last, exists, err := getter.GetByKey(name); err == nil && exists && nameOf(last) == name {
			return store.Delete(last)
		}
	}
	if err = store.Delete(DeletedFinalStateUnknown{Key: name}); errors.As(err, new(KeyError)) {
		err = store.Delete(obj)
	}
	return err
}
