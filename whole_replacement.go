package cache

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// wholeReplacement is the Replacement of a store that has none: it collects the
// list and makes one Replace of it. What such a store held under the key of an
// object that could not be taken is replaced with the rest.
type wholeReplacement struct {
	store ReflectorStore
	list  []any
	// streamed is true if the list is made of events, which may bring several
	// states of one object, and take one back.
	streamed bool
}

func (w *wholeReplacement) Part(ctx context.Context, part ReplacementPart) (rejected []*ObjectError, err error) {
	if w.streamed {
		part.Items, rejected = identified(part.Items)
		gone, more := identified(part.Gone)
		part.Gone, rejected = gone, append(rejected, more...)
	}
	w.list = append(w.list, part.Items...)
	if len(part.Gone) > 0 {
		w.remove(part.Gone)
	}
	return rejected, ctx.Err()
}

// foreignStore is a store that is not of this package: it is given one change at a time.
type foreignStore struct{ ReflectorStore }

// takeChanges implements taker. An error of the store that is not the object's own ends it.
func (f foreignStore) takeChanges(_ context.Context, changes []change) (int, error) {
	c := &changes[0]
	var err error
	var op string
	switch c.kind {
	case Added:
		op, err = "Add", f.Add(c.object)
	case Updated:
		op, err = "Update", f.Update(c.object)
	case Deleted:
		op, err = "Delete", deleteFrom(f.ReflectorStore, c.object)
	}
	if err = storeError(op, c.object, err); err != nil {
		bad, own := asObjectError(err)
		if !own {
			return 0, err
		}
		c.err = bad
	}
	if updater, ok := f.ReflectorStore.(ResourceVersionUpdater); ok && c.version != "" {
		updater.UpdateResourceVersion(c.version)
	}
	return 1, nil
}

// identified takes out the objects of a stream that cannot be told from others of their
// name, because nobody knows of which kind they are.
func identified(objects []any) (identified []any, rejected []*ObjectError) {
	return slices.DeleteFunc(objects, func(obj any) bool {
		_, err := identityOf(obj)
		bad := err != nil && !errors.Is(err, ErrEmptyKey)
		if bad {
			rejected = append(rejected, &ObjectError{
				Key: nameOf(obj), ResourceVersion: receivedOf(obj).ResourceVersion, Stage: StageType, Err: err,
			})
		}
		return bad
	}), rejected
}

func (w *wholeReplacement) remove(gone []any) {
	absent := map[identity]bool{}
	var undecoded []identity
	for _, obj := range gone {
		id, err := identityOf(obj)
		switch {
		case err != nil:
		case isUndecoded(obj):
			undecoded = append(undecoded, id)
		default:
			absent[id] = true
		}
	}
	w.list = slices.DeleteFunc(w.list, func(obj any) bool {
		id, err := identityOf(obj)
		return err == nil && (absent[id] || slices.ContainsFunc(undecoded, id.mayBe))
	})
}

func (w *wholeReplacement) Commit(_ context.Context, version string) error {
	list := newestOfEach(w.list)
	w.list = nil
	return w.store.Replace(list, version)
}

func (w *wholeReplacement) Abort() { w.list = nil }

// identity tells objects apart where the store's keys are not known.
type identity struct {
	kind any
	name ObjectName
}

// mayBe says whether an object that could not be decoded may be the one with this
// identity: it has the name, and is not known to be of another kind.
func (id identity) mayBe(undecoded identity) bool {
	_, known := id.kind.(schema.GroupVersionKind)
	_, said := undecoded.kind.(schema.GroupVersionKind)
	return id.name == undecoded.name && (!known || !said || id.kind == undecoded.kind)
}

// identityOf returns an object's identity. It fails where the object cannot be told from
// another: with ErrEmptyKey if it has no name, or if it does not say of which kind it is.
func identityOf(obj any) (identity, error) {
	name, err := ObjectToName(obj)
	if err != nil || name.Name == "" {
		return identity{}, ErrEmptyKey
	}
	id := identity{kind: reflect.TypeOf(obj), name: name}
	if object, ok := obj.(runtime.Object); ok {
		kind, err := kindOf(object)
		if err != nil && !isUndecoded(obj) {
			return identity{}, err
		}
		if !kind.Empty() {
			id.kind = kind
		}
	}
	return id, nil
}

func kindOf(obj runtime.Object) (kind schema.GroupVersionKind, err error) {
	defer caught("reading the kind", &err)
	if said := obj.GetObjectKind(); !isNilPointer(said) {
		return said.GroupVersionKind(), nil
	}
	return kind, errNoKind
}

// newestOfEach leaves the newest of several states of one object, in the place of the first: a
// stream may bring several, and so does a page that comes twice. Of states in no order it is the
// last.
func newestOfEach(list []any) []any {
	place := make(map[identity]int, len(list))
	kept := list[:0]
	for _, obj := range list {
		if id, err := identityOf(obj); err == nil {
			if at, twice := place[id]; twice {
				if !versionBefore(receivedOf(obj).ResourceVersion, receivedOf(kept[at]).ResourceVersion) {
					kept[at] = obj
				}
				continue
			}
			place[id] = len(kept)
		}
		kept = append(kept, obj)
	}
	clear(list[len(kept):])
	return kept
}

// splitObjectErrors takes an error apart into those that concern single objects
// and the rest, nil if there is none.
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
	if object, ok := asObjectError(err); ok {
		return []*ObjectError{object}, nil
	}
	var key KeyError
	if errors.As(err, &key) {
		return []*ObjectError{{
			Key: nameOf(key.Obj), ResourceVersion: receivedOf(key.Obj).ResourceVersion, Stage: StageKey, Err: key.Err,
		}}, nil
	}
	return nil, err
}

// deleteFrom deletes from a store that is not ours, for an Undecoded its last known state. No source has ever sent a
// store an Undecoded, so that its panic is caught: it is answered by a list, as any other refusal.
func deleteFrom(store ReflectorStore, obj any) (err error) {
	if !isUndecoded(obj) {
		return store.Delete(obj)
	}
	defer caught("Delete", &err)
	name := nameOf(obj)
	if getter, ok := store.(interface {
		GetByKey(key string) (any, bool, error)
	}); ok { // that of a queue may return anything
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

// storeError is the error of a store that is not ours. Our errors for one object keep their meaning through it.
func storeError(op string, obj any, err error) error {
	if err == nil {
		return nil
	}
	if _, bad := asObjectError(err); bad {
		return err
	}
	var key KeyError
	if errors.As(err, &key) {
		version := receivedOf(obj).ResourceVersion
		return &ObjectError{Key: nameOf(obj), ResourceVersion: version, Stage: StageKey, Err: key.Err}
	}
	return &StoreError{Op: op, Name: nameOf(obj), Err: err}
}
