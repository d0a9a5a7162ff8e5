package cache

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// foreignStore is a store of another package, or a queue: it gets one call for each change.
type foreignStore struct{ ReflectorStore }

// takeChanges implements taker. An error of the store that is not an ObjectError ends it.
func (f foreignStore) takeChanges(_ context.Context, changes []change) (int, error) {
	c := &changes[0]
	var err error
	var op string
	switch queue, ours := f.ReflectorStore.(*DeltaFIFO); {
	case ours:
		if queue.identify(c) == nil {
			if err := queue.olderThanEntry(c); err != nil {
				return 0, err
			}
		}
		err = queue.put(change{kind: c.kind, object: c.object, excluded: c.excluded})
	case c.kind == Added:
		op, err = "Add", f.Add(c.object)
	case c.kind == Updated:
		op, err = "Update", f.Update(c.object)
	default:
		op, err = "Delete", deleteFrom(f.ReflectorStore, c)
	}
	switch objects, other := splitObjectErrors(err); {
	case other != nil:
		return 0, &StoreError{Op: op, Name: nameOf(c.object), Err: other}
	case len(objects) > 0:
		bad := *objects[0] // which may be the store's own
		bad.Key = cmp.Or(bad.Key, nameOf(c.object))
		c.err = &bad
	}
	if updater, ok := f.ReflectorStore.(ResourceVersionUpdater); ok && c.version != "" {
		updater.UpdateResourceVersion(c.version)
	}
	return 1, nil
}

// BeginReplace implements Replacer.
func (f foreignStore) BeginReplace(options ReplaceOptions) Replacement {
	return &wholeReplacement{
		store: f.ReflectorStore, reset: options.VersionsReset, places: map[identity]int{}, retain: sets.Set[identity]{},
	}
}

// wholeReplacement is the Replacement of a queue, or of a store that has none: it collects the list for one
// Replace. The states that a foreign store has of rejected objects are replaced with the rest.
type wholeReplacement struct {
	store ReflectorStore
	// reset is ReplaceOptions.VersionsReset. over is true after Commit and Abort.
	reset, over bool
	// list has nil for an object that a stream has deleted. places are those of the objects
	// in it that have a name.
	list   []any
	places map[identity]int
	// retain are the objects whose state in a queue stays.
	retain sets.Set[identity]
}

// Add implements Replacement. Of several states of one object, as a stream or a repeated page
// has them, the newest stays, in the place of the first; of states in no order the last.
func (w *wholeReplacement) Add(ctx context.Context, part ReplacementPart) (rejected []*ObjectError, err error) {
	if w.over {
		return nil, errReplacementOver
	}
	for _, obj := range part.Retain {
		if id, err := w.identify(obj); err == nil {
			w.retain.Insert(id)
		}
	}
	for _, obj := range part.Items {
		id, err := w.identify(obj)
		at, again := w.places[id]
		switch {
		case err != nil:
			rejected = append(rejected, rejection(obj, err))
		case id == (identity{}):
			w.list = append(w.list, obj)
		case !again:
			w.places[id] = len(w.list)
			w.list = append(w.list, obj)
		case !versionBefore(receivedOf(obj).ResourceVersion, receivedOf(w.list[at]).ResourceVersion):
			w.list[at] = obj
		}
	}
	for _, obj := range part.Deleted {
		removed, err := w.identify(obj)
		if err != nil {
			rejected = append(rejected, rejection(obj, err))
			continue
		}
		maps.DeleteFunc(w.retain, func(id identity, _ sets.Empty) bool { return id.mayBe(removed) })
		if !isUndecoded(obj) {
			w.remove(removed)
			continue
		}
		for id := range w.places {
			if id.mayBe(removed) {
				w.remove(id)
			}
		}
	}
	return rejected, ctx.Err()
}

// identify is the identity of an object in the store: its key in a queue.
func (w *wholeReplacement) identify(obj any) (identity, error) {
	queue, ours := w.store.(*DeltaFIFO)
	if !ours {
		return identityOf(obj), nil
	}
	key, err := queue.eventKey(obj)
	return identity{name: NewObjectName(key.Parts())}, err
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
	list := slices.DeleteFunc(w.list, func(obj any) bool { return obj == nil })
	if queue, ours := w.store.(*DeltaFIFO); ours {
		return queue.replace(ctx, list, w.retain, w.reset, version)
	}
	return w.store.Replace(list, version)
}

// Abort implements Replacement.
func (w *wholeReplacement) Abort() { *w = wholeReplacement{over: true} }

// identity tells objects apart where the store's keys are not known.
type identity struct {
	kind any
	name ObjectName
}

// mayBe reports whether an object that could not be decoded may have this identity: it has the
// name, and is not known to be of another kind.
func (id identity) mayBe(undecoded identity) bool {
	_, known := id.kind.(schema.GroupVersionKind)
	_, said := undecoded.kind.(schema.GroupVersionKind)
	return id.name == undecoded.name && (!known || !said || id.kind == undecoded.kind)
}

// identityOf returns an object's identity, the zero one if it has no name. Where the object does not say its kind, its
// Go type counts.
func identityOf(obj any) (id identity) {
	name, err := ObjectToName(obj)
	if err != nil || name.Name == "" {
		return id
	}
	id = identity{kind: reflect.TypeOf(obj), name: name}
	if object, ok := obj.(runtime.Object); ok {
		defer caught("reading the kind", &err)
		if kind := object.GetObjectKind(); !isNilPointer(kind) && !kind.GroupVersionKind().Empty() {
			id.kind = kind.GroupVersionKind()
		}
	}
	return id
}

// splitObjectErrors splits an error into those of single objects and the rest, nil if there is none.
func splitObjectErrors(err error) (objects []*ObjectError, other error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var others []error
		for _, part := range joined.Unwrap() {
			more, rest := splitObjectErrors(part)
			objects = append(objects, more...)
			others = append(others, rest)
		}
		return objects, errors.Join(others...)
	}
	if object, ok := errors.AsType[*ObjectError](err); ok {
		return []*ObjectError{object}, nil
	}
	if key, ok := errors.AsType[KeyError](err); ok {
		return []*ObjectError{{
			Key: nameOf(key.Obj), ResourceVersion: receivedOf(key.Obj).ResourceVersion, Stage: stageKey, Err: key.Err,
		}}, nil
	}
	return nil, err
}

// deleteFrom deletes from a foreign store: for an UndecodableObject, or another replica's object, the last known state. No source
// has ever sent a store an UndecodableObject, so its panic is caught, and answered by a list as any other error.
func deleteFrom(store ReflectorStore, c *change) (err error) {
	obj := c.object
	if !c.excluded && !isUndecoded(obj) {
		return store.Delete(obj)
	}
	defer caught("Delete", &err)
	name := nameOf(obj)
	if getter, ok := store.(KeyGetter); ok { // that of a queue may return anything
		if last, exists, err := getter.GetByKey(name); err == nil && exists && nameOf(last) == name {
			return store.Delete(last)
		}
	}
	err = store.Delete(DeletedFinalStateUnknown{Key: name})
	if errors.As(err, new(KeyError)) {
		return store.Delete(obj)
	}
	return err
}
