package cache

import (
	"context"
	"errors"
)

// wholeReplacement is the Replacement of a store that has none: it collects the
// list and makes one Replace of it. What such a store held under the key of an
// object that could not be taken is replaced with the rest.
type wholeReplacement struct {
	store ReflectorStore
	list  []any
	done  bool
}

func (w *wholeReplacement) Part(ctx context.Context, part ReplacementPart) ([]*ObjectError, error) {
	w.list = append(w.list, part.Items...)
	for _, gone := range part.Gone {
		w.remove(nameOf(gone))
	}
	return nil, ctx.Err()
}

// remove takes an object out by name: the store's keys are not known here.
func (w *wholeReplacement) remove(name string) {
	kept := w.list[:0]
	for _, obj := range w.list {
		if nameOf(obj) != name {
			kept = append(kept, obj)
		}
	}
	clear(w.list[len(kept):])
	w.list = kept
}

func (w *wholeReplacement) Commit(_ context.Context, version string) error {
	list := w.list
	w.list, w.done = nil, true
	return w.store.Replace(newestOfEach(list), version)
}

func (w *wholeReplacement) Abort() { w.list = nil }

// newestOfEach leaves the last of several states of one object, which a stream
// may send, in the place of the first.
func newestOfEach(list []any) []any {
	place := make(map[string]int, len(list))
	kept := list[:0]
	for _, obj := range list {
		name := nameOf(obj)
		if at, twice := place[name]; twice && name != "" {
			kept[at] = obj
			continue
		}
		place[name] = len(kept)
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
