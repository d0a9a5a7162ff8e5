package cache

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/watchmirror/cache/internal/table"
)

// threadSafeMap is what all stores of this package are made of: a table, the functions of its
// indexes, and what is quarantined.
//
// Who reads objects takes no lock that is held for longer than a few changes take: see the
// package table. Who writes prepares that first, with all calls of user code (see intake.go),
// and then makes one write of it, however large: readers see all of it or nothing.
//
// Locks, in the order in which they are taken: writing, the table's own, mu, the quarantine's. No user code
// is called under any of them.
type threadSafeMap struct {
	table *table.Table
	// indexers are read without a lock, and set by who holds writing.
	indexers atomic.Pointer[indexerSet]

	// writing is held by who writes, for as long as that takes. It guards lists, which are being
	// taken, and move.
	writing sync.Mutex
	lists   []*listMarks
	// move is what commit is to do; moves, made once and not for each write, does it.
	move  versionMove
	moves func()

	// quarantined is the store's part of its pipeline's table.
	quarantined quarantinePart

	// mu guards the versions, of the whole and of views, and writes.
	mu    sync.RWMutex
	whole scope
	// writes counts the batches that were applied. Who is the only one to apply any may read it
	// without the lock.
	writes uint64
	// version is that of all of it; the owner's, where there are views.
	version func() string

	// gauge shows the version, if there is one.
	gauge atomic.Pointer[versionGauge]
	// spare are *oneChange.
	spare sync.Pool
}

func newThreadSafeMap(indexers Indexers, opts ...ThreadSafeStoreOption) *threadSafeMap {
	for name, function := range indexers {
		mustHave(function != nil, fmt.Sprintf("NewThreadSafeStore: index %q has no function", name))
	}
	m := &threadSafeMap{}
	m.quarantined = quarantinePart{&quarantine{}, byStore, ""}
	m.version = func() string { return m.whole.version }
	m.moves = m.moveLocked
	m.table = table.New(len(indexers), m.label)
	m.indexers.Store(newIndexerSet(indexers))
	for _, option := range opts {
		option(m)
	}
	return m
}

// label is what a snapshot of the table says of itself.
func (m *threadSafeMap) label() table.Label {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return table.Label{Version: m.version(), Writes: m.writes}
}

// len is how many objects there are.
func (m *threadSafeMap) len() int { return m.table.Len() }

// originOf is the origin of what is under a key.
func (m *threadSafeMap) originOf(key table.Key) (origin table.Origin, exists bool) {
	m.writing.Lock()
	defer m.writing.Unlock()
	found, exists := m.table.Get(key)
	if exists {
		origin = m.table.Origin(found.Number)
	}
	return origin, exists
}

// storeWrite is a write under way. Nothing in it can fail, and it calls no user code.
type storeWrite struct {
	m     *threadSafeMap
	table *table.Write
}

// directly is how many changes are applied in one write where readers see them: as many as a
// table changes where they stand. More are prepared aside, which costs a copy of what they touch.
const directly = 32

// wholeStore is the weight of a write that looks at everything there is.
const wholeStore = 1 << 30

// begin begins a write of some changes. It must be committed.
func (m *threadSafeMap) begin(changes []change) storeWrite {
	m.lockIndexed(changes)
	return storeWrite{m, m.table.Begin(m.weightOf(changes))}
}

// lockIndexed locks writing at a moment when the changes have their values for the indexers that
// there are: it begins again if indexers were added in between.
func (m *threadSafeMap) lockIndexed(changes []change) {
	for {
		set := m.indexers.Load()
		for i := range changes {
			changes[i].index(set)
		}
		m.writing.Lock()
		if m.indexers.Load() == set {
			return
		}
		m.writing.Unlock()
	}
}

// weightOf is how many changes some writes are; where they are too many to be made directly, it
// need not be all of them. One that brings many values, or takes them out, takes as long as many:
// readers should not have to wait for that.
func (m *threadSafeMap) weightOf(changes []change) int {
	weight := len(changes)
	if len(m.indexers.Load().names) == 0 {
		return weight
	}
	for i := range changes {
		if weight > directly {
			break
		}
		several := 0
		for _, values := range changes[i].values {
			several += max(0, len(values)-1)
		}
		weight += max(several, m.table.SeveralUnder(changes[i].key))
	}
	return weight
}

// apply applies a change and notes in it what became of it: what could not be prepared is
// quarantined, and leaves what was there.
func (w storeWrite) apply(c *change) {
	c.existed = false
	switch {
	case c.unchanged:
		return
	case c.err != nil:
		w.hold(c)
		return
	case c.same:
		// If something else has been written since, that is newer than what a Sync repeats.
		if found, exists := w.table.Find(c.key); exists {
			c.applied, c.existed, c.old, c.object = true, true, found.Object, found.Object
		}
		return
	}
	if !c.superseded {
		w.release(c.key)
	}
	if c.kind == Deleted {
		w.remove(c)
		return
	}
	for _, staging := range c.built {
		staging.build.written[c.key] = staging.result
	}
	old, existed := w.table.Put(c.key, c.object, c.values)
	if c.applied, c.existed = true, existed; existed {
		c.old, c.recreated = old.Object, c.origin.Recreates(w.m.table.Origin(old.Number))
	}
	w.table.SetOrigin(old.Number, c.origin)
	if c.number = old.Number; !existed {
		for _, list := range w.m.lists {
			list.added.add(c.number)
		}
	}
}

// remove is apply for a deletion. One without a final state gets a tombstone.
func (w storeWrite) remove(c *change) {
	old, existed := w.table.Remove(c.key)
	if !existed {
		return
	}
	for _, list := range w.m.lists {
		list.confirmed.remove(old.Number)
		list.changed.remove(old.Number)
		list.added.remove(old.Number)
	}
	c.applied, c.existed, c.old = true, true, old.Object
	if c.object == nil {
		c.object = DeletedFinalStateUnknown{Key: c.key.String(), Obj: c.old}
	}
}

// regression is the error of an event that is older than what was last received of its key.
func (w storeWrite) regression(c *change) error {
	if c.key == (table.Key{}) {
		return nil
	}
	have, _ := w.find(c.key)
	var quarantined string
	if w.m.quarantined.any() {
		quarantined, _ = w.m.quarantined.version(c.key.String())
	}
	return c.regression(have, quarantined)
}

// find is what is there, and its origin.
func (w storeWrite) find(key table.Key) (origin table.Origin, exists bool) {
	found, exists := w.table.Find(key)
	if exists {
		origin = w.m.table.Origin(found.Number)
	}
	return origin, exists
}

// hold quarantines what a change has brought. What has no key is for the caller to quarantine.
func (w storeWrite) hold(c *change) {
	if c.err.Stage == StageKey || c.err.Stage == StageMetadata {
		return
	}
	w.m.quarantined.add("", c.err, c.kept)
}

// release ends that a key is quarantined, if it is.
func (w storeWrite) release(key table.Key) {
	if w.m.quarantined.any() {
		w.m.quarantined.release(key.String())
	}
}

// isQuarantined says whether a key is quarantined by the store.
func (m *threadSafeMap) isQuarantined(key table.Key) bool {
	if !m.quarantined.any() {
		return false
	}
	_, quarantined := m.quarantined.version(key.String())
	return quarantined
}

// versionMove is what becomes of a store's versions with a write. The zero value is nothing.
type versionMove struct {
	// scope is whose version moves, to version if that is not empty.
	scope   *scope
	version string
	// listed says that a whole list was applied: the version is set, also if it is empty.
	listed bool
}

// commit shows the write, and moves versions with it.
func (w storeWrite) commit(move versionMove) {
	m := w.m
	if m.move = move; move.scope == nil {
		w.table.Commit(nil)
	} else {
		w.table.Commit(m.moves)
	}
	if len(m.lists) == 0 { // packing gives cells other numbers
		m.table.Pack()
	}
	m.writing.Unlock()
	if move.scope != nil {
		m.showVersion()
	}
}

// moveLocked does what move says. The caller holds writing.
func (m *threadSafeMap) moveLocked() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes++
	if m.move.version != "" || m.move.listed {
		m.move.scope.set(m.move.version)
	}
	m.move.scope.committed = m.move.scope.committed || m.move.listed
}

// oneChange is a change with all that it takes to make it alone: it is used again and again, so
// that an ordinary write allocates nothing.
type oneChange struct {
	changes [1]change
	values  valueRoom
}

// oneChange is empty. It goes back with put.
func (m *threadSafeMap) oneChange() *oneChange {
	one, _ := m.spare.Get().(*oneChange)
	indexes := len(m.indexers.Load().names)
	if one == nil || one.values.each != indexes {
		one = &oneChange{values: newValueRoom(1, indexes)}
	}
	one.changes[0] = change{values: one.values.of(0)}
	return one
}

// write makes the change, once it has been prepared, and returns why it could not be made.
func (m *threadSafeMap) write(one *oneChange) error {
	w := m.begin(one.changes[:])
	w.apply(&one.changes[0])
	w.commit(versionMove{})
	return one.changes[0].failure()
}

// remove removes what is under a key.
func (m *threadSafeMap) remove(key table.Key) {
	one := m.oneChange()
	defer m.put(one)
	one.changes[0].kind, one.changes[0].key = Deleted, key
	_ = m.write(one) // a deletion does not fail
}

func (m *threadSafeMap) put(one *oneChange) {
	one.changes[0] = change{}
	one.values.clear()
	m.spare.Put(one)
}

// listMarks are the cells of a store that a list has confirmed: what is not among them at its end
// is gone. A cell that is removed meanwhile loses its mark.
type listMarks struct {
	confirmed numberSet
	// changed are the cells of which the list has brought another state, which is not in the
	// store yet: a later one of the list is not compared with what the store has.
	changed numberSet
	// added are the cells that were added since the list began.
	added numberSet
}

// has says whether a cell was listed, count how many were.
func (l *listMarks) has(number uint32) bool { return l.confirmed.has(number) || l.changed.has(number) }

func (l *listMarks) count() (count int) {
	for i, word := range l.confirmed.bits {
		if i < len(l.changed.bits) {
			word |= l.changed.bits[i]
		}
		count += bits.OnesCount64(word)
	}
	for i := len(l.confirmed.bits); i < len(l.changed.bits); i++ {
		count += bits.OnesCount64(l.changed.bits[i])
	}
	return count
}

func (m *threadSafeMap) beginList() *listMarks {
	m.writing.Lock()
	defer m.writing.Unlock()
	list := &listMarks{}
	m.lists = append(m.lists, list)
	return list
}

// endListLocked ends a list. The caller holds writing.
func (m *threadSafeMap) endListLocked(list *listMarks) {
	m.lists = slices.DeleteFunc(m.lists, func(other *listMarks) bool { return other == list })
}

// numberSet is a set of numbers of cells, one bit each.
type numberSet struct{ bits []uint64 }

func (n *numberSet) add(number uint32) {
	if at := int(number / 64); at >= len(n.bits) {
		n.bits = append(n.bits, make([]uint64, at+1-len(n.bits))...)
	}
	n.bits[number/64] |= 1 << (number % 64)
}

func (n *numberSet) remove(number uint32) {
	if n.has(number) {
		n.bits[number/64] &^= 1 << (number % 64)
	}
}

func (n *numberSet) has(number uint32) bool {
	return int(number/64) < len(n.bits) && n.bits[number/64]&(1<<(number%64)) != 0
}
