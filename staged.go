package cache

import (
	"slices"

	"github.com/watchmirror/cache/internal/table"
)

// staged is a write that has been prepared without a lock: everything that
// needs user code is done, so that what is left cannot fail.
type staged struct {
	key table.Key
	// obj is what is to be under key, if it is to be present.
	obj      any
	present  bool
	received Received
	// odd is true if the object does not say itself what was received.
	odd bool
	// found is true if there is something under the key already, in the cell with that number,
	// which was looked at under the lock that the write is made under.
	found bool
	cell  uint32
	// values are those of each index, by position.
	values [][]string
	// set is the indexers that values were computed for, and built the
	// values for the indexes that were being added at that time.
	set   *indexerSet
	built []staging
	// err is set if the object cannot be taken, and kept is its cause as it is kept.
	err  *ObjectError
	kept error
}

// staging is a staged object's values for one build.
type staging struct {
	build  *indexBuild
	result built
}

func (s *staged) fail(stage Stage, err error) {
	s.err = &ObjectError{Key: s.key.String(), ResourceVersion: s.received.ResourceVersion, Stage: stage, Err: err}
	s.err.object, _ = identityOf(s.obj)
	s.kept = withoutStack(err)
}

// failure returns err as an error that is nil where there is none.
func (s *staged) failure() error {
	if s.err == nil {
		return nil
	}
	return s.err
}

// index computes what is missing of the values for the indexers of set. says is what the
// object says of itself, nil if it has not been asked.
func (s *staged) index(set *indexerSet, says *metadata) {
	if !s.present || s.err != nil || s.set == set {
		return
	}
	values, err := set.valuesFrom(s.values, s.obj, says)
	if err != nil {
		s.fail(StageIndex, err)
		return
	}
	s.values, s.set = values, set
	before := s.built
	s.built = nil
	for _, build := range set.builds {
		s.built = append(s.built, s.stagingFor(build, before))
	}
}

func (s *staged) stagingFor(build *indexBuild, before []staging) staging {
	for _, known := range before {
		if known.build == build {
			return known
		}
	}
	return staging{build: build, result: build.compute(s.obj)}
}

// storeWrite is a write to a threadSafeMap under way.
type storeWrite struct {
	m     *threadSafeMap
	table *table.Write
	// aside is true if the write has asideMu. If not, nothing was held back and nothing had
	// a receipt when it began, and it brings nothing of that kind.
	aside bool
}

// wholeStore says to begin that a write looks at everything there is.
const wholeStore = 1 << 30

// begin begins a write of all that is staged, and of so many changes besides, at a moment
// when all of it has its values for the indexers there are. It tries again only if indexers
// were added in between. The write must be committed. Only one that is begun with changes
// besides, or with something staged that is not to be present, may remove anything.
func (m *threadSafeMap) begin(more int, all ...*staged) storeWrite {
	for {
		set := m.indexers.Load()
		for _, s := range all {
			if s.set != set {
				s.index(set, nil)
			}
		}
		m.writing.Lock()
		if m.indexers.Load() == set {
			if m.relisted != nil && (more > 0 || slices.ContainsFunc(all, (*staged).removes)) {
				m.beforeRenumbering()
			}
			aside := m.odd.Load() || slices.ContainsFunc(all, (*staged).goesAside)
			if aside {
				m.asideMu.Lock()
			}
			weight := more
			if more <= directly { // else it is made aside, whatever the writes weigh
				weight += m.weightOf(all)
			}
			return storeWrite{m, m.table.Begin(weight), aside}
		}
		m.writing.Unlock()
	}
}

// weightOf is how many changes some writes are; where they are too many to be made directly,
// it need not be all of them. One that brings many values, or takes them out, takes as long as
// many: readers should not have to wait for that. The caller holds writing.
func (m *threadSafeMap) weightOf(all []*staged) int {
	weight := len(all)
	for _, s := range all {
		if weight > directly {
			break
		}
		several := 0
		for _, values := range s.values {
			several += max(0, len(values)-1)
		}
		weight += max(several, m.table.SeveralUnder(s.key))
	}
	return weight
}

// removes says whether what is under the key is to be there no more.
func (s *staged) removes() bool { return !s.present && s.err == nil }

// goesAside says whether it will be held back or needs a receipt.
func (s *staged) goesAside() bool { return s.odd || s.err != nil }

// put makes the table hold what was staged, and returns what was there.
func (w storeWrite) put(s *staged) (old table.Found, existed bool) {
	if !s.present {
		old, existed = w.table.Remove(s.key)
		w.forget(s.key)
		return old, existed
	}
	w.wrote(s)
	if s.found {
		return w.table.Replace(s.cell, s.key, s.obj, w.m.mark(s.received), s.values), true
	}
	return w.table.Put(s.key, s.obj, w.m.mark(s.received), s.values)
}

// add is put for what is to be where nothing is: it does nothing, and says so, where there is
// something.
func (w storeWrite) add(s *staged) bool {
	if !w.table.Add(s.key, s.obj, w.m.mark(s.received), s.values) {
		return false
	}
	w.wrote(s)
	return true
}

// wrote notes besides what was written: for the indexes that are being added, and of an object
// that does not say itself what was received.
func (w storeWrite) wrote(s *staged) {
	w.m.highest.raise(s.received.ResourceVersion)
	for _, staging := range s.built {
		staging.build.written[s.key] = staging.result
	}
	if !s.odd {
		w.forget(s.key)
		return
	}
	w.m.receipts.put(s.key.String(), s.received)
	w.m.receipted.Store(true)
}

// forget forgets what was received under a key, if that is kept.
func (w storeWrite) forget(key table.Key) {
	if w.aside {
		w.m.forget(key)
	}
}

// forget is called with asideMu, as a rule for nothing.
func (m *threadSafeMap) forget(key table.Key) {
	if len(m.receipts.all) > 0 {
		delete(m.receipts.all, key.String())
	}
}

// take is put for what may have failed: that leaves what was there and is held back. ok is
// false then.
func (w storeWrite) take(s *staged) (old table.Found, existed, ok bool) {
	if s.err != nil {
		w.hold(s)
		old, existed = w.table.Find(s.key)
		return old, existed, false
	}
	w.release(s.key)
	old, existed = w.put(s)
	return old, existed, true
}

func (w storeWrite) hold(s *staged) { w.m.held.addKept(s.err, s.kept) }

// release ends that a key is held back, if it is.
func (w storeWrite) release(key table.Key) {
	if w.aside {
		w.m.release(key)
	}
}

// release is called with asideMu, as a rule for nothing.
func (m *threadSafeMap) release(key table.Key) {
	if m.held.holdsAny() {
		m.held.forget(key.String())
	}
}

// heldVersion is that of the state which is held back under a key, if one is.
func (w storeWrite) heldVersion(key table.Key) (version string, held bool) {
	if !w.aside || !w.m.held.holdsAny() {
		return "", false
	}
	return w.m.held.version(key.String())
}

// releaseIf forgets what is held back under the keys for which gone is true.
func (w storeWrite) releaseIf(gone func(key string) bool) {
	if w.aside {
		w.m.held.forgetIf(gone)
	}
}

// keepOnly removes what is stored and not to be kept.
func (w storeWrite) keepOnly(keep func(number uint32, key table.Key) bool) {
	w.table.KeepOnly(func(number uint32, key table.Key) bool {
		kept := keep(number, key)
		if !kept {
			w.forget(key)
		}
		return kept
	})
}

// commit shows the write. also, if it is not nil, changes versions with it.
func (w storeWrite) commit(also func()) {
	if also == nil {
		w.table.Commit(nil)
	} else {
		w.m.also = also
		w.table.Commit(w.m.moves)
		w.m.also = nil
	}
	if w.aside {
		w.m.unlockAside()
	}
	if w.m.table.IsSparse() {
		w.m.beforeRenumbering()
		w.m.table.Pack()
	}
	w.m.writing.Unlock()
	if also != nil {
		w.m.showVersion()
	}
}

// write does one prepared write.
func (m *threadSafeMap) write(one *oneStaged) {
	w := m.begin(0, one.all[:]...)
	w.take(&one.staged)
	w.commit(nil)
}

// putPlain does the plainest of all writes, that of an object which says itself what was
// received, into a store without indexes: no user code need be called for it, and so nothing
// be staged. It does nothing, and says so, where there is more to do. What begin and commit
// see to besides is for indexes, or for what removes something.
func (m *threadSafeMap) putPlain(key table.Key, obj any, received *Received) bool {
	if !m.indexers.Load().isEmpty() {
		return false
	}
	mark := m.mark(*received)
	m.writing.Lock()
	defer m.writing.Unlock()
	if m.odd.Load() || !m.indexers.Load().isEmpty() {
		return false
	}
	m.highest.raise(received.ResourceVersion)
	w := m.table.Begin(1)
	w.Put(key, obj, mark, nil)
	w.Commit(nil)
	return true
}

// oneStaged is a staged object with all that it takes to write it alone: it is used again
// and again, so that an ordinary write allocates nothing.
type oneStaged struct {
	staged
	values valueRoom
	all    [1]*staged
}

// oneStaged is empty. It goes back with put.
func (m *threadSafeMap) oneStaged() *oneStaged {
	one, _ := m.spare.Get().(*oneStaged)
	if one == nil {
		one = &oneStaged{}
	}
	one.staged.values, one.all[0] = one.values.empty(), &one.staged
	return one
}

func (m *threadSafeMap) put(one *oneStaged) {
	*one = oneStaged{}
	m.spare.Put(one)
}
