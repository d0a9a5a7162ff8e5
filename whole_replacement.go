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

func (w *wholeReplacement) Part(ctx context.Context, part ReplacementPart) ([]*ObjectError, error) {
	w.list = append(w.list, part.Items...)
	if len(part.Gone) > 0 {
		w.remove(part.Gone)
	}
	return nil, ctx.Err()
}

func (w *wholeReplacement) remove(gone []any) {
	absent := map[identity]bool{}
	var undecoded []identity
	for _, obj := range gone {
		id, named := identityOf(obj)
		switch {
		case !named:
		case isUndecoded(obj):
			undecoded = append(undecoded, id)
		default:
			absent[id] = true
		}
	}
	w.list = slices.DeleteFunc(w.list, func(obj any) bool {
		id, named := identityOf(obj)
		return named && (absent[id] || slices.ContainsFunc(undecoded, id.mayBe))
	})
}

func (w *wholeReplacement) Commit(_ context.Context, version string) error {
	list := w.list
	w.list = nil
	if w.streamed {
		list = newestOfEach(list)
	}
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

// identityOf returns an object's identity; false if it has no name, so that it
// cannot be told from another.
func identityOf(obj any) (identity, bool) {
	name, err := ObjectToName(obj)
	if err != nil || name.Name == "" {
		return identity{}, false
	}
	return identity{kindOf(obj), name}, true
}

// kindOf is an object's group/version/kind, or its type if it does not say that.
func kindOf(obj any) (kind any) {
	kind = reflect.TypeOf(obj)
	defer func() { _ = recover() }() // of the object's methods
	if object, ok := obj.(runtime.Object); ok {
		if said := object.GetObjectKind().GroupVersionKind(); !said.Empty() {
			kind = said
		}
	}
	return kind
}

// newestOfEach leaves the last of several states of one object, in the place of
// the first.
func newestOfEach(list []any) []any {
	place := make(map[identity]int, len(list))
	kept := list[:0]
	for _, obj := range list {
		if id, named := identityOf(obj); named {
			if at, twice := place[id]; twice {
				kept[at] = obj
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
