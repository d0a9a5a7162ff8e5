package cache

import (
	"context"
	"reflect"

	"github.com/watchmirror/cache/internal/table"
)

// lookedItems are some items of a list, as many as are looked at together: all memory that has
// to be read of each is far away, and so is waited for at once.
type lookedItems struct {
	keys  [directly]table.Key
	says  [directly]metadata
	marks [directly]uint32
	// errs say why there is no key, there what there is under the key: no object if nothing.
	errs  [directly]error
	there [directly]table.Found
	// said is what those of there say of themselves that may be the same.
	said [directly]metadata
}

// look looks at items, and at what there is of them. It calls user code for each, and fails
// where ctx ends in between.
func (l *lookedItems) look(ctx context.Context, store *keyedStore, items []any) error {
	clear(l.says[:])
	clear(l.said[:])
	if ctx.Err() == nil {
		readTogether(l.says[:len(items)], func(i int) any { return items[i] })
	}
	for i, obj := range items {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.keys[i], l.errs[i] = store.keyFrom(obj, &l.says[i])
		l.marks[i] = store.storage.mark(l.says[i].received)
	}
	store.storage.table.GetAll(l.keys[:len(items)], l.there[:len(items)])
	readTogether(l.said[:len(items)], func(i int) any {
		if l.there[i].Mark != l.marks[i] {
			return nil
		}
		return l.there[i].Object
	})
	return nil
}

// takeItems prepares the items and returns those that cannot be taken. It calls user
// code for each, and fails where ctx ends in between.
func (r *storeReplacement) takeItems(ctx context.Context, items []any) ([]refusal, error) {
	var refused []refusal
	var held []untaken
	var looked lookedItems
	for len(items) > 0 {
		some := items[:min(len(items), directly)]
		items = items[len(some):]
		if err := looked.look(ctx, r.store, some); err != nil {
			return nil, err
		}
		for i, obj := range some {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := looked.errs[i]; err != nil {
				refused = append(refused, refusal{obj, rejection(obj, err)})
				continue
			}
			if failed, ok := r.take(obj, &looked, i); !ok {
				refused, held = append(refused, refusal{obj, failed.err}), append(held, failed)
			}
		}
	}
	if len(held) > 0 {
		r.hold(held)
	}
	return refused, nil
}

// take prepares one item, unless it is unchanged. ok is false if it cannot be taken.
func (r *storeReplacement) take(obj any, looked *lookedItems, i int) (failed untaken, ok bool) {
	key, received, mark, found := looked.keys[i], looked.says[i].received, looked.marks[i], looked.there[i]
	known := found.Object != nil
	if known {
		r.listed.addNumber(found.Number)
	}
	if r.unchanged(obj, looked, i) {
		r.listed.add(key)
		r.taken(key)
		return untaken{}, true
	}
	s := r.staged.next()
	if transform := r.store.transformer; transform != nil {
		r.store.prepare(s, key, obj, received, transform)
	} else {
		s.key, s.obj, s.present, s.received = key, obj, true, received // as looked at
		s.index(r.store.storage.indexers.Load(), &looked.says[i])
	}
	if s.err != nil {
		failed = untaken{s.err, s.kept}
		r.withhold(key)
		r.staged.dropLast()
		return failed, false
	}
	key = s.key // an ordinary one is gone once the list has it
	r.highest.raise(received.ResourceVersion)
	r.staged.last(found.Number, known, mark)
	if r.visible || r.listed.set != nil {
		r.listed.add(key)
	}
	r.taken(key)
	return untaken{}, true
}

// unchanged compares with the newest state of the key: one of this list, if it came more
// than once, or the stored one. A mark that is another one settles it; one that is the same
// does not.
func (r *storeReplacement) unchanged(obj any, looked *lookedItems, i int) bool {
	key, received, mark, found := looked.keys[i], looked.says[i].received, looked.marks[i], looked.there[i]
	if !received.identifies() {
		return false
	}
	known := found.Object != nil
	if s := r.staged.find(key, found.Number, known); s != nil {
		return s.is(received, mark)
	}
	if !known || found.Mark != mark {
		return false
	}
	seen := r.store.storage.sightOf(key, &looked.there[i], &looked.said[i])
	return seen.known && seen.received == received && (!r.reset || isSameContent(r.store.transformer, found.Object, obj))
}

// isSameContent compares a stored object with one of the same version, where versions are given
// out again. What a transform has made of an object says nothing of that.
func isSameContent(transform TransformFunc, stored, obj any) bool {
	return transform == nil && reflect.DeepEqual(stored, obj)
}

// taken notes that the newest state of a key was.
func (r *storeReplacement) taken(key table.Key) {
	if len(r.withheld) > 0 {
		r.withheld.Delete(key.String())
	}
}

// listAll makes the listed keys those that are staged, too: numbers say nothing any more, or
// will not.
func (r *storeReplacement) listAll() {
	if r.listed.set != nil {
		return
	}
	for e := range r.staged.each() {
		r.listed.add(e.key)
	}
	r.listed.keySet()
}
