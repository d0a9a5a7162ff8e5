package cache

import (
	"context"
	"slices"

	"github.com/watchmirror/cache/internal/table"
)

// A first list on the short way from a reflector into an informer's store: past the queue,
// in which nothing waits. What is listed is new, as a rule, and all that has to be known of
// it until the list ends is that it was listed. What is not ordinary, and all of the list
// that comes after it, goes by way of the queue: see firstList.takes and firstList.prepare.

// firstList is what a first list has brought so far, and what it takes to bring more. It is
// used by one goroutine.
type firstList struct {
	*sharedIndexInformer
	listed listedKeys
	// What follows is for one write. The staged objects keep the room for their values.
	staged []staged
	all    []*staged
	keys   []table.Key
	there  []table.Found
	// count counts the write.
	count func()
}

func newFirstList(inf *sharedIndexInformer) *firstList {
	l := &firstList{
		sharedIndexInformer: inf, listed: newListedKeys(inf.store.storage.table),
		staged: make([]staged, directly), all: make([]*staged, directly),
		keys: make([]table.Key, directly), there: make([]table.Found, directly),
		count: func() { inf.store.storage.writes++ },
	}
	values := newValueSlab(directly, len(inf.store.storage.indexers.Load().names))
	for i := range l.staged {
		l.all[i], l.staged[i].values = &l.staged[i], values.of(i)
	}
	return l
}

// takes says whether a part is ordinary. A transform is left to the queue, which knows what
// to do where one fails or wants nothing stored.
func (l *firstList) takes(part ReplacementPart) bool {
	return len(part.Keep) == 0 && len(part.Gone) == 0 && l.detector == nil && l.queue.beginsFirstList()
}

// part takes items from the front, as many as are ordinary, and returns the others. It takes
// them in pieces that the table writes where they stand: see applyAll. If ctx ends, those
// pieces stay that were written before.
func (l *firstList) part(ctx context.Context, items []any) (others []any, err error) {
	for full := true; full && len(items) > 0 && ctx.Err() == nil; {
		piece := items[:min(len(items), directly)]
		n := l.prepare(ctx, piece)
		if ctx.Err() != nil {
			break
		}
		n = l.write(n)
		items, full = items[n:], n == len(piece)
	}
	return items, ctx.Err()
}

// prepare does what needs user code for objects that have a key and are not there, and says
// how many those are.
func (l *firstList) prepare(ctx context.Context, items []any) int {
	indexers := l.store.storage.indexers.Load()
	for i, obj := range items {
		s := &l.staged[i]
		values := s.values[:0]
		*s = staged{values: values, obj: obj, present: true}
		var m metadata
		var err error
		if s.key, err = l.store.look(obj, &m); err != nil || ctx.Err() != nil {
			return i
		}
		s.received = m.received
		if s.index(indexers, &m); s.err != nil {
			return i
		}
		l.keys[i] = s.key
	}
	// What is found is not asked for, for it may be another by the time of the write: this
	// has the memory that the write reads of each waited for together.
	l.store.storage.table.GetAll(l.keys[:len(items)], l.there[:len(items)])
	return len(items)
}

// write writes and publishes so many of what was prepared, up to the first that is there
// already or has no values for an index that was added since, and says how many that were.
//
// Each write that counts is published before user code is called again, and one of nothing
// does not count: what a handler that joins has seen is told from what it has not by the
// number of the write.
func (l *firstList) write(prepared int) (written int) {
	if prepared == 0 {
		return 0
	}
	began := l.meters.begin(l.clock, prepared)
	w := l.store.storage.begin(0, l.all[:prepared]...)
	for ; written < prepared; written++ {
		s := &l.staged[written]
		if s.err != nil {
			break
		}
		if !w.add(s) {
			break
		}
		l.listed.add(s.key)
		l.notifications = append(l.notifications, notification{kind: tellAdd, initial: true, key: s.key, obj: s.obj})
	}
	if written == 0 {
		w.commit(nil)
		return 0
	}
	w.commit(l.count)
	l.publish(l.store.storage.writes)
	l.meters.applied(l.clock, began)
	return written
}

// isAll says whether the store has nothing but what the list has brought this way. How much
// there is, is asked first: who removes something then has said so before it is looked at.
func (l *firstList) isAll() bool {
	there := l.store.storage.len()
	return l.listed.added == there && l.listed.numbers.valid() && l.queue.beginsFirstList()
}

// beginsFirstList says whether nothing but one first list has come, of which nothing is in
// the queue, nothing held back, and nothing to be transformed: then the queue need not know
// of what it brings.
func (f *DeltaFIFO) beginsFirstList() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.transformer == nil && !f.populated && f.log.pending == 0 && !f.turn &&
		!f.held.holdsAny() && !slices.ContainsFunc(f.holders, holder.mayHold)
}
