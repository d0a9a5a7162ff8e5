package cache

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// A later list on its way into an informer. What it brings as the store has it, which is
// most of it as a rule, is noted and goes no further; everything else goes by way of the
// queue, which finds out what has become of it.

// relist is what a later list has brought that the store has. It is used by one goroutine.
type relist struct {
	*sharedIndexInformer
	// same are the cells of which it has brought what they hold, passed those of which it has
	// brought anything else: what comes of them after that is for the queue to judge, too.
	same   *relistedCells
	passed numberSet
	// reset is ReplaceOptions.VersionsReset.
	reset bool
	// over is true if numbers of cells say nothing any more: all goes by way of the queue.
	over bool
	// What follows is of some items that are looked at together.
	looked lookedItems
	others [directly]bool
}

// newRelist is nil where things are not as they usually are: the first list has not been
// there, or the queue has something. Else it has nothing until the list is committed: nobody
// but this list puts anything in, and what a part brings is kept beside it.
func newRelist(inf *sharedIndexInformer) *relist {
	if quiet, _ := inf.queue.isQuiet(); !quiet {
		return nil
	}
	l := &relist{sharedIndexInformer: inf, same: &relistedCells{}}
	inf.store.storage.noteRelisted(l.same)
	return l
}

// part notes what the store has of a part, and returns the other items.
func (l *relist) part(ctx context.Context, part ReplacementPart) (others []any, err error) {
	items := part.Items
	for ; len(items) > 0 && !l.over; items = items[min(len(items), directly):] {
		if others, err = l.some(ctx, items[:min(len(items), directly)], others); err != nil {
			return nil, err
		}
	}
	l.takeBack(part.Gone)
	return append(others, items...), nil
}

// some is part for some of the items, whose others it appends.
func (l *relist) some(ctx context.Context, items, others []any) ([]any, error) {
	if err := l.looked.look(ctx, &l.store.keyedStore, items); err != nil {
		return nil, err
	}
	anyHeld := l.queue.anyHeld()
	for i := range items {
		if l.others[i] = !l.isSame(items[i], i, anyHeld); l.others[i] && l.looked.there[i].Object != nil {
			l.passed.add(l.looked.there[i].Number)
		}
	}
	l.over = !l.store.storage.changeRelisted(l.same, func(same *numberSet) {
		for i := range items {
			switch found := &l.looked.there[i]; {
			case !l.others[i]:
				same.add(found.Number)
			case found.Object != nil:
				same.remove(found.Number) // a transform may want a later state of it no more
			}
		}
	})
	if l.over {
		return append(others, items...), nil
	}
	for i, obj := range items {
		if l.others[i] {
			others = append(others, obj)
		}
	}
	return others, nil
}

// isSame says whether an item that was looked at is what the store has, and was last
// received: of a key of which anything is held back, that was something else.
func (l *relist) isSame(obj any, i int, anyHeld bool) bool {
	key, received, found := l.looked.keys[i], l.looked.says[i].received, l.looked.there[i]
	if found.Object == nil || found.Mark != l.looked.marks[i] || !received.identifies() || l.passed.has(found.Number) {
		return false
	}
	seen := l.store.storage.sightOf(key, &l.looked.there[i], &l.looked.said[i])
	return seen.known && seen.received == received && !(anyHeld && l.queue.isHeld(key.String())) &&
		(!l.reset || isSameContent(l.queue.transformer, found.Object, obj))
}

// takeBack notes that objects are gone again: nothing of them is listed but what comes later.
func (l *relist) takeBack(gone []any) {
	for _, obj := range gone {
		key, err := l.queue.keyOf(obj)
		if err != nil || l.over {
			continue
		}
		l.over = !l.store.storage.changeRelisted(l.same, func(same *numberSet) {
			if found, exists := l.store.storage.table.GetText(key); exists {
				same.remove(found.Number)
			}
		})
	}
}

// end hands over to the queue's own list: what was noted is listed; or, if known, it is all
// that is stored, or held back by the store, but absent.
func (l *relist) end(listed sets.Set[string]) (absent []string, known bool) {
	if !l.over {
		if absent, known = l.store.storage.keysBesideRelisted(l.same, l.queue.heldKeys()); known {
			return absent, true
		}
	}
	listed.Insert(l.store.storage.relistedKeys(l.same)...)
	return nil, false
}

// drop ends the list without a word to the queue.
func (l *relist) drop() { l.store.storage.forgetRelisted(l.same) }

// anyHeld says whether anything is held back, here or by a consumer.
func (f *DeltaFIFO) anyHeld() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held.holdsAny() || slices.ContainsFunc(f.holders, holder.mayHold)
}

// isHeld says whether anything is held back under a key, here or by a consumer.
func (f *DeltaFIFO) isHeld(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held.holds(key) || f.heldBackLocked(key)
}

// heldKeys are those of which a consumer holds anything back.
func (f *DeltaFIFO) heldKeys() (keys []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.holders {
		keys = append(keys, h.heldKeys()...)
	}
	return keys
}
