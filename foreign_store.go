// Stores of other packages: how a reflector's changes and lists become calls of a ReflectorStore.
// What does such a store receive for a change, a list, or a deletion that was not decoded?

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
	operation, err := f.apply(c)
	objects, other := splitObjectErrors(err)
	if other != nil {
		return 0, &StoreError{Op: operation, Name: nameOf(c.object), Err: other}
	}
	if len(objects) > 0 {
		bad := *objects[0] // the store may keep it
		bad.Key = cmp.Or(bad.Key, nameOf(c.object))
		bad.object = identityOf(c.object)
		c.err = &bad
	}
	updater, ok := f.ReflectorStore.(ResourceVersionUpdater)
	if ok && c.version != "" {
		updater.UpdateResourceVersion(c.version)
	}
	return 1, nil
}

// apply makes the call for a change and returns the name of the method.
func (f foreignStore) apply(c *change) (operation string, err error) {
	switch c.kind {
	case Added:
		return "Add", f.Add(c.object)
	case Updated:
		return "Update", f.Update(c.object)
	}
	return "Delete", deleteFrom(f.ReflectorStore, c)
}

// BeginReplace implements Replacer.
func (f foreignStore) BeginReplace(options ReplaceOptions) Replacement {
	return &wholeReplacement{
		store:    f.ReflectorStore,
		reset:    options.VersionsReset,
		places:   map[identity]int{},
		retained: map[table.Key]bool{},
	}
}

// wholeReplacement is the Replacement of a queue, and of a store without BeginReplace. It collects
// the list for one Replace. A store of another package loses its states of rejected objects.
type wholeReplacement struct {
	store ReflectorStore
	// reset is ReplaceOptions.VersionsReset.
	reset bool
	// over is true after Commit and Abort.
	over bool
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
func (w *wholeReplacement) Add(
	ctx context.Context, part ReplacementPart,
) (rejected []*ObjectError, err error) {
	if w.over {
		return nil, errReplacementOver
	}
	for _, obj := range part.Retain {
		id, err := w.identify(obj)
		if err == nil {
			w.retained[id.name] = true
		}
	}
	for _, obj := range part.Items {
		id, err := w.identify(obj)
		if err != nil {
			rejected = append(rejected, rejection(obj, err))
			continue
		}
		w.put(id, obj)
	}
	for _, obj := range part.Deleted {
		id, err := w.identify(obj)
		if err != nil {
			rejected = append(rejected, rejection(obj, err))
			continue
		}
		delete(w.retained, id.name)
		w.remove(id)
		if isUndecoded(obj) {
			w.removeMatching(id)
		}
	}
	return rejected, ctx.Err()
}

// put adds an object to the list, unless the list has a newer state of it. An object without a name
// is always added.
func (w *wholeReplacement) put(id identity, obj any) {
	at, isListed := w.places[id]
	if !isListed {
		if id != (identity{}) {
			w.places[id] = len(w.list)
		}
		w.list = append(w.list, obj)
		return
	}
	version := receivedOf(obj).ResourceVersion
	listed := receivedOf(w.list[at]).ResourceVersion
	if !versionBefore(version, listed) {
		w.list[at] = obj
	}
}

// removeMatching removes the objects of which one that could not be decoded may be a state.
func (w *wholeReplacement) removeMatching(undecoded identity) {
	for id := range w.places {
		if id.matches(undecoded) {
			w.remove(id)
		}
	}
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
	last, isKnown := lastKnown(store, name)
	if isKnown {
		return store.Delete(last)
	}
	err = store.Delete(DeletedFinalStateUnknown{Key: name})
	if errors.As(err, new(KeyError)) {
		return store.Delete(obj)
	}
	return err
}

// lastKnown returns the state of the named object in a store, if the store can be read by key. The
// GetByKey of a queue may return anything.
func lastKnown(store ReflectorStore, name string) (last any, isKnown bool) {
	getter, ok := store.(KeyGetter)
	if !ok {
		return nil, false
	}
	last, exists, err := getter.GetByKey(name)
	return last, err == nil && exists && nameOf(last) == name
}
