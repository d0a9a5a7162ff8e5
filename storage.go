// The data of a store and how it is written. What does a write do to a stored object, and when do
// readers and handlers see it?

package cache

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/watchmirror/cache/internal/table"
)

// storage is the data of every store of this package. Writers first prepare their changes
// (intake.go), which calls user functions, and then apply them in one write, which calls none.
// Readers see all of a write or nothing.
//
// Lock order: writing, the table's, the quarantine's. Only a write acquires the last two together. A
// write that quarantines or releases many objects acquires these in the other order: see
// quarantine.stageWrite.
type storage struct {
	table *table.Table
	// indexers is set under writing and read without a lock.
	indexers   atomic.Pointer[indexerSet]
	quarantine quarantinePart

	// writing is held for the duration of a write. It guards lists, the open ones.
	writing sync.Mutex
	lists   []*storeReplacement

	// applied is the version that readers see, logged the version that handlers can read from the
	// log.
	applied, logged atomic.Pointer[string]
	whole           scope
	// views has a store for each namespace. They are never removed. All scopes change under the
	// table's lock.
	views map[string]*keyedStore
	// versions are those of whole and views, except empty ones, if there are views.
	versions versionSet

	// versionMoved wakes calls that wait for a version.
	versionMoved broadcast

	// gauge is the metric of the version, or nil.
	gauge atomic.Pointer[versionGauge]
}

func newStorage(indexers Indexers) *storage {
	set, err := (&indexerSet{}).with(indexers)
	mustHave(err == nil, "%v", err)
	s := &storage{
		quarantine: quarantinePart{shared: &quarantine{}, owner: byStore},
		views:      map[string]*keyedStore{},
	}
	s.table = table.New(len(indexers), func() string { return *s.applied.Load() })
	s.whole.storage = s
	s.whole.version.Store(new(string))
	s.applied.Store(s.whole.version.Load())
	s.logged.Store(s.whole.version.Load())
	s.indexers.Store(set)
	return s
}

// get returns the object of the key with a text, or the error of a key whose only state is
// quarantined.
func (s *storage) get(text string) (item any, exists bool, err error) {
	item, exists = s.table.Get(text)
	if exists {
		return item, true, nil
	}
	return s.getMissing(table.KeyOf(text))
}

// getKey is get for a key.
func (s *storage) getKey(key table.Key) (item any, exists bool, err error) {
	item, exists = s.table.GetKey(key)
	if exists {
		return item, true, nil
	}
	return s.getMissing(key)
}

// getMissing is getKey for a key that the table did not have.
func (s *storage) getMissing(key table.Key) (item any, exists bool, err error) {
	err = s.quarantine.shared.find(key)
	if err != nil {
		return nil, false, err
	}
	// Since the first look it may have been stored, and then released from the quarantine.
	item, exists = s.table.GetKey(key)
	return item, exists, nil
}

// newest returns the origin of the newest known state of a key: of the quarantined one or, if there
// is none with a version, of the stored one.
func (s *storage) newest(key table.Key, stored table.Origin) table.Origin {
	if s.quarantine.any() {
		quarantined, _ := s.quarantine.entry(key)
		return quarantined.originOr(stored)
	}
	return stored
}

// storeWrite is a write. It calls no user function.
type storeWrite struct {
	// version becomes that of scope, unless it is empty. If setsVersion, an empty one does, too.
	scope       *scope
	version     string
	setsVersion bool
	// events is true if changes that are older than the stored states are refused.
	events bool
	// list is the list that is written, feed publishes the changes. Either may be nil.
	list *storeReplacement
	feed *publisher
}

func (w *storeWrite) endsList() bool { return w.list != nil && w.setsVersion }

// write applies prepared changes with their versions. It stops at an event that is older than the
// stored state, and returns its error and the number of changes before it. Changes that are not
// events never stop it.
func (s *storage) write(changes []change, w storeWrite) (applied int, err error) {
	s.begin(&w, changes)
	for applied < len(changes) {
		c := &changes[applied]
		err = s.apply(&w, c)
		if err != nil {
			break
		}
		w.version = cmp.Or(c.received.version, w.version)
		applied++
	}
	s.end(&w, changes[:applied])
	return applied, err
}

// begin locks the store until end.
func (s *storage) begin(w *storeWrite, changes []change) {
	s.lock(changes)
	s.open(w, changes)
}

// lock begins a write. Then the changes have the values for all indexes.
func (s *storage) lock(parts ...[]change) {
	for {
		set := s.indexers.Load()
		for _, changes := range parts {
			for i := range changes {
				changes[i].prepared.index(set, &valueBuffer{})
			}
		}
		s.writing.Lock()
		if s.indexers.Load() == set {
			return
		}
		s.writing.Unlock() // an index was announced or added
	}
}

// open opens the table for a write.
func (s *storage) open(w *storeWrite, parts ...[]change) {
	weight := 0
	for _, changes := range parts {
		for i := range changes {
			p := &changes[i].prepared
			if p.place == (table.Place{}) {
				p.place = s.table.Seek(p.key)
			}
			weight += s.table.Weight(p.place, p.values)
		}
	}
	if w.endsList() && w.list.looksAtManyKeys() {
		s.table.BeginStaged()
		return
	}
	s.table.Begin(weight)
}

// apply applies a change and records the result in it. A change that could not be prepared is
// quarantined, and the previous state stays. The error is that of an event that is too old.
func (s *storage) apply(w *storeWrite, c *change) error {
	p := &c.prepared
	at := s.table.Find(p.key, p.place)
	if w.events {
		err := p.regression(s.newest(p.key, at.Origin))
		if err != nil {
			return err
		}
	}
	if p.unchanged {
		return nil
	}
	if p.err != nil {
		s.refuse(w, c)
		return nil
	}
	if w.list != nil && w.list.hasState(c, at) {
		w.list.marks.Confirm(at)
		delete(w.list.displaced, p.key)
		return nil
	}

	if w.list != nil {
		w.list.noteApplied(p.key)
		w.list.recordChange(c, at)
	}
	s.supersedeQuarantined(w, c)
	for _, list := range s.lists {
		list.noteWrite(w, p.key, at)
	}
	if p.deletes {
		s.remove(c, at)
	} else {
		s.put(w, c, at)
	}
	return nil
}

// refuse quarantines a change that cannot be applied. A list already knows of those that could not
// be prepared. It must learn of an object that has failed for an index that was added since.
func (s *storage) refuse(w *storeWrite, c *change) {
	failsForAddedIndex := c.prepared.set != nil // it has the values for all earlier indexes
	if w.list != nil && failsForAddedIndex && !w.list.refuseInWrite(c) {
		return
	}
	s.quarantine.addInWrite(c.prepared.err, c.prepared.quarantineErr)
}

// supersedeQuarantined ends the quarantine of a key with the write that repairs it.
func (s *storage) supersedeQuarantined(w *storeWrite, c *change) {
	if !s.quarantine.any() {
		return
	}
	if w.list != nil && w.list.retains(c.prepared.key) {
		return
	}
	c.result.wasQuarantined = s.quarantine.supersede(c.prepared.key)
}

// put stores the object of a change.
func (s *storage) put(w *storeWrite, c *change, at table.Slot) {
	p := &c.prepared
	r := &c.result
	r.applied = true
	r.existed = at.Exists
	r.old = at.Object
	r.recreated = p.origin.Recreates(at.Origin)
	at.Number = s.table.Put(p.key, at, p.object, p.origin, p.values)
	at.Exists = true
	if w.list != nil { // its Commit deletes unconfirmed entries
		w.list.marks.Confirm(at)
	}
}

// remove removes the entry of a deletion, if there is one.
func (s *storage) remove(c *change, at table.Slot) {
	if !at.Exists {
		return
	}
	r := &c.result
	r.applied = true
	r.existed = true
	r.old = at.Object
	s.table.Remove(at)
}

// end publishes the write with its version, and appends the changes to the log before the next
// write can begin.
func (s *storage) end(w *storeWrite, parts ...[]change) {
	shared := s.quarantine.shared
	isStaged := shared.stageWrite()
	s.table.Commit(func() {
		if isStaged { // readers see it with the write and its version
			shared.publishStaged()
		} else {
			shared.publishWrite()
		}
		if w.version != "" || w.setsVersion {
			s.setVersion(w.scope, w.version)
		}
	})
	if w.feed != nil {
		for _, changes := range parts {
			w.feed.publish(changes, w.list != nil && w.list.isInitial, s.logged.Load())
		}
	}
	// An atomic store takes as long as a lock, and most writes of programs set no version.
	applied := s.applied.Load()
	if applied != s.logged.Load() {
		s.logged.Store(applied)
	}
	s.writing.Unlock()

	if s.gauge.Load() != nil {
		s.showVersion()
	}
	if s.versionMoved.next.Load() != nil {
		s.versionMoved.wake()
	}
}
