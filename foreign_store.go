// Stores of other packages: how a reflector's changes and lists become calls of a ReflectorStore.
// What does such a store receive for a change, a list, or a deletion that was not decoded?

package cache

import (
	"cmp"
	"context"
	"errors"
)

// accepterOf returns how a reflector passes changes to a store.
func accepterOf(store ReflectorStore) changeAccepter {
	if accepter, isOwn := store.(changeAccepter); isOwn {
		return accepter
	}
	if queue := queueIn(store); queue != nil && !embedsQueue(store) {
		return queueAccepter{queue}
	}
	return foreignStore{store}
}

// replacerOf returns how a reflector passes lists to a store. A type that embeds a queue has its
// BeginReplace, but receives one Replace, since it may define that itself.
func replacerOf(store ReflectorStore) Replacer {
	if replacer, ok := store.(Replacer); ok && !embedsQueue(store) {
		return replacer
	}
	return foreignStore{store}
}

// foreignStore is a store of another package. It receives one call for each change, and one Replace
// for each list.
type foreignStore struct{ store ReflectorStore }

// acceptChanges implements changeAccepter for the first change. An error of the store that is not
// an ObjectError is returned.
func (f foreignStore) acceptChanges(_ context.Context, changes []change) (accepted int, err error) {
	c := &changes[0]
	operation, err := f.apply(c)
	objects, other := splitObjectErrors(err)
	if other != nil {
		return 0, &StoreError{Op: operation, Name: nameOf(c.received.object), Err: other}
	}
	if len(objects) > 0 {
		bad := *objects[0] // the store may keep it
		bad.Key = cmp.Or(bad.Key, nameOf(c.received.object))
		bad.object = identityOf(c.received.object)
		c.prepared.err = &bad
	}
	updater, ok := f.store.(ResourceVersionUpdater)
	if ok && c.received.version != "" {
		updater.UpdateResourceVersion(c.received.version)
	}
	return 1, nil
}

// apply makes the call for a change and returns the name of the method.
func (f foreignStore) apply(c *change) (operation string, err error) {
	switch c.received.kind {
	case Added:
		return "Add", f.store.Add(c.received.object)
	case Updated:
		return "Update", f.store.Update(c.received.object)
	}
	return "Delete", deleteFrom(f.store, c)
}

// BeginReplace implements Replacer.
func (f foreignStore) BeginReplace(ReplaceOptions) Replacement {
	return &foreignReplacement{store: f.store}
}

// foreignReplacement is the Replacement of a store without BeginReplace. It collects the list for
// one Replace, so the store loses its states of objects that could not be used.
type foreignReplacement struct {
	store     ReflectorStore
	collected collectedList[identity]
	// over is true after Commit and Abort.
	over bool
}

// Add implements Replacement.
func (r *foreignReplacement) Add(
	ctx context.Context, part ReplacementPart,
) (rejected []*ObjectError, err error) {
	if r.over {
		return nil, errReplacementOver
	}
	for _, obj := range part.Items {
		r.put(obj)
	}
	for _, obj := range part.Deleted {
		r.remove(obj)
	}
	return nil, ctx.Err()
}

// takeDuplicates implements duplicateFinder.
func (r *foreignReplacement) takeDuplicates() duplicates { return r.collected.duplicates.take() }

// put adds an object to the list. One without a name is always added.
func (r *foreignReplacement) put(obj any) {
	id := identityOf(obj)
	if id == (identity{}) {
		r.collected.append(obj)
		return
	}
	r.collected.put(id, id.name, obj)
}

// remove removes an object from the list. An object that could not be decoded may be a state of
// several.
func (r *foreignReplacement) remove(obj any) {
	deleted := identityOf(obj)
	r.collected.remove(deleted)
	if !isUndecoded(obj) {
		return
	}
	for id := range r.collected.places {
		if id.matches(deleted) {
			r.collected.remove(id)
		}
	}
}

// Commit implements Replacement.
func (r *foreignReplacement) Commit(_ context.Context, version string) error {
	if r.over {
		return errReplacementOver
	}
	store := r.store
	list := r.collected.objects()
	r.Abort()
	return store.Replace(list, version)
}

// Abort implements Replacement.
func (r *foreignReplacement) Abort() { *r = foreignReplacement{over: true} }

// deleteFrom deletes an object from a store of another package. If the object could not be decoded,
// or belongs to another replica, it deletes the last known state. A panic is caught then: the store
// may not expect an UndecodableObject.
func deleteFrom(store ReflectorStore, c *change) (err error) {
	obj := c.received.object
	if !c.received.excluded && !isUndecoded(obj) {
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
