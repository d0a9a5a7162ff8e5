package cache

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/watchmirror/cache/internal/table"
)

// storage is the data of every store of this package. Writers first prepare their changes (intake.go), which calls user
// functions, and then apply them in one write, which calls none. Readers see all of a write or nothing.
//
// Lock order: writing, the table's, the quarantine's.
type storage struct {
	table *table.Table
	// indexers is set under writing and read without a lock.
	indexers   atomic.Pointer[indexerSet]
	quarantine quarantinePart

	// writing is held for the duration of a write. It guards lists, the open ones.
	writing sync.Mutex
	lists   []*storeReplacement

	// applied is the version that readers see, logged the version that handlers can read from the log.
	applied, logged atomic.Pointer[string]
	whole           scope
	// views has a store for each namespace. They are never removed. All scopes change under the table's lock.
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
	mustHave(err == nil, fmt.Sprint(err))
	m := &storage{quarantine: quarantinePart{&quarantine{}, byStore, ""}, views: map[string]*keyedStore{}}
	m.table = table.New(len(indexers), func() string { return *m.applied.Load() })
	m.whole.storage = m
	m.whole.version.Store(new(string))
	m.applied.Store(m.whole.version.Load())
	m.logged.Store(m.whole.version.Load())
	m.indexers.Store(set)
	return m
}

// get returns the object of the key with a text, or the error of a key whose only state is
// quarantined.
func (m *storage) get(text string) (item any, exists bool, err error) {
	item, exists = m.table.Get(text)
	if exists {
		return item, true, nil
	}
	return m.getMissing(table.KeyOf(text))
}

// getKey is get for a key.
func (m *storage) getKey(key table.Key) (item any, exists bool, err error) {
	item, exists = m.table.GetKey(key)
	if exists {
		return item, true, nil
	}
	return m.getMissing(key)
}

// getMissing is getKey for a key that the table did not have.
func (m *storage) getMissing(key table.Key) (item any, exists bool, err error) {
	err = m.quarantine.find(key)
	if err != nil {
		return nil, false, err
	}
	// Since the first look it may have been stored, and then released from the quarantine.
	item, exists = m.table.GetKey(key)
	return item, exists, nil
}

// newest returns the origin of the newest known state of a key: of the quarantined one or, if there is none with a version,
// of the stored one.
func (m *storage) newest(key table.Key, stored table.Origin) table.Origin {
	if m.quarantine.any() {
		quarantined, _ := m.quarantine.entry(key)
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

// begin locks the store until end.
func (m *storage) begin(w *storeWrite, changes []change) {
	m.lock(changes)
	m.open(w, changes)
}

// lock begins a write. Then the changes have the values for all indexes.
func (m *storage) lock(changes []change) {
	for set := m.indexers.Load(); ; set = m.indexers.Load() {
		for i := range changes {
			changes[i].index(set, &valueBuffer{})
		}
		m.writing.Lock()
		if m.indexers.Load() == set {
			return
		}
		m.writing.Unlock() // an index was announced or added
	}
}

// open opens the table for a write.
func (m *storage) open(w *storeWrite, changes []change) {
	weight := 0
	for i := range changes {
		c := &changes[i]
		c.place = m.table.Seek(c.key)
		weight += m.table.Weight(c.place, c.values)
	}
	if w.endsList() && (w.list.marks.Missing() > 0 || m.quarantine.any()) {
		m.table.BeginStaged() // the end of the list looks at all missing and quarantined keys
		return
	}
	m.table.Begin(weight)
}

func (w *storeWrite) endsList() bool { return w.list != nil && w.setsVersion }

// apply applies a change and records the result in it. A change that could not be prepared is quarantined, and the
// previous state stays. The error is that of an event that is too old.
func (m *storage) apply(w *storeWrite, c *change) error {
	at := m.table.Find(c.key, c.place)
	if w.events {
		if err := c.regression(m.newest(c.key, at.Origin)); err != nil {
			return err
		}
	}
	c.existed, c.old = at.Exists, at.Object
	if !c.unchanged && c.err == nil && w.list != nil && w.list.hasState(c, at) {
		w.list.marks.Confirm(at)
		delete(w.list.displaced, c.key)
		c.unchanged = true
	}
	switch {
	case c.unchanged:
	case c.err != nil:
		if w.list != nil && c.set != nil { // it fails for an index that was added meanwhile
			w.list.refuse(c)
		}
		m.quarantine.addChange(c)
	default:
		if m.quarantine.any() && (w.list == nil || !w.list.retains(c.key)) {
			wasQuarantined := m.quarantine.supersede(c.key)
			if wasQuarantined && c.kind == Deleted {
				c.object = nil // nobody has received the final state
			}
		}
		for _, list := range m.lists {
			list.noteWrite(w, c.key, at)
		}
		if c.kind == Deleted {
			m.remove(w, c, at)
		} else {
			m.put(w, c, at)
		}
	}
	return nil
}

// put stores the object of a change.
func (m *storage) put(w *storeWrite, c *change, at table.Slot) {
	c.applied = true
	c.recreated = c.origin.Recreates(at.Origin)
	at.Number = m.table.Put(c.key, at, c.object, c.origin, c.values)
	at.Exists = true
	if w.list != nil { // its Commit deletes unconfirmed entries
		w.list.marks.Confirm(at)
	}
}

// remove removes the entry of a deletion, if there is one. Handlers receive the last state as the object of a deletion
// that has none.
func (m *storage) remove(w *storeWrite, c *change, at table.Slot) {
	if !at.Exists {
		return
	}
	c.applied = true
	m.table.Remove(at)
	if c.object == nil && w.feed != nil {
		c.object = DeletedFinalStateUnknown{Key: c.key.String(), Obj: c.old}
	}
}

// end publishes the write with its version, and appends the changes to the log before the next write can begin.
func (m *storage) end(w *storeWrite, changes []change) {
	m.table.Commit(func() {
		if m.quarantine.any() {
			m.quarantine.releaseSuperseded() // readers see it with the write and its version
		}
		if w.version != "" || w.setsVersion {
			m.setVersion(w.scope, w.version)
		}
	})
	if w.feed != nil {
		w.feed.publish(changes, w.list != nil && w.list.initial, m.logged.Load())
	}
	// An atomic store takes as long as a lock, and most writes of programs set no version.
	if applied := m.applied.Load(); applied != m.logged.Load() {
		m.logged.Store(applied)
	}
	m.writing.Unlock()
	if m.gauge.Load() != nil {
		m.showVersion()
	}
	if m.versionMoved.next.Load() != nil {
		m.versionMoved.wake()
	}
}

// write applies prepared changes with their versions. It stops at an event that is older than the stored state, and returns
// its error and the number of changes before it. Changes that are not events never stop it.
func (m *storage) write(changes []change, w storeWrite) (applied int, err error) {
	m.begin(&w, changes)
	for ; applied < len(changes); applied++ {
		if err = m.apply(&w, &changes[applied]); err != nil {
			break
		}
		w.version = cmp.Or(changes[applied].version, w.version)
	}
	m.end(&w, changes[:applied])
	return applied, err
}

// versionReached reports whether a store at version has everything up to wanted.
func versionReached(version, wanted string) bool {
	return version == wanted || versionBefore(wanted, version)
}

// waitForVersion waits until the store has everything up to version, ctx ends or ended is closed.
func (s *scope) waitForVersion(ctx context.Context, version string, ended <-chan struct{}) error {
	for seen := ""; ; {
		moved := s.storage.versionMoved.changed()
		have := s.LastStoreSyncResourceVersion()
		if versionReached(have, version) {
			return nil
		}
		if _, err := resourceversion.CompareResourceVersion(version, version); err != nil {
			return fmt.Errorf("resource version %q cannot be waited for: %w", version, err)
		}
		if _, err := resourceversion.CompareResourceVersion(have, version); err != nil && have != "" {
			// The version of some sources is not a number while they have no object.
			if now := s.storage.table.Snapshot(); now.Version == have && now.Len() > 0 {
				return fmt.Errorf("resource version %s cannot be compared with the store's %q: %w", version, have, err)
			}
		}
		if versionBefore(have, seen) {
			return &VersionRegressionError{Kind: "store", Current: seen, Received: have}
		}
		seen = have
		select {
		case <-moved:
		case <-ended:
			return fmt.Errorf("waiting for resource version %s: %w", version, ErrInformerStopped)
		case <-ctx.Done():
			return fmt.Errorf("waiting for resource version %s, the store has %q: %w", version, have, context.Cause(ctx))
		}
	}
}

// GetIndexers returns a copy of the index functions.
func (m *storage) GetIndexers() Indexers {
	set := m.indexers.Load()
	indexers := make(Indexers, len(set.names))
	for at, name := range set.names {
		indexers[name] = set.functions[at]
	}
	return indexers
}

// failure returns the error of an addition for an object, if that is still stored.
func (m *storage) failure(addition *indexerSet, e table.Entry) error {
	err := addition.computedFor(e.Object()).err
	if err == nil {
		return nil
	}
	if stored, _ := m.table.GetKey(e.Key()); !table.Same(stored, e.Object()) {
		return nil
	}
	return fmt.Errorf("no index was added, because of object %q: %w", e.Key().String(), err)
}

// announce makes later writes compute the values of an addition. It returns the objects of earlier ones.
func (m *storage) announce(addition *indexerSet) *table.Snapshot {
	return m.setAdditions(func(all []*indexerSet) []*indexerSet { return append(all, addition) })
}

// AddIndexers adds indexes. It computes the values of the stored objects without a lock. One pass is enough, because writes
// compute those of the objects that change meanwhile.
func (m *storage) AddIndexers(newIndexers Indexers) error {
	if _, err := m.indexers.Load().with(newIndexers); err != nil { // before any function is called
		return err
	}
	addition, _ := (&indexerSet{}).with(newIndexers)
	stored := m.announce(addition)
	defer m.withdraw(addition)
	for e := range stored.Each {
		addition.compute(e.Object())
		if err := m.failure(addition, e); err != nil {
			return err
		}
	}
	return m.commitAddition(addition, newIndexers)
}

// publishVersion makes the gauge for the applied version.
func (m *storage) publishVersion(id InformerNameAndResource, metrics InformerMetricsProvider) {
	m.gauge.Store(nil)
	if provider := defaultInformerMetrics.or(metrics); provider != nil && id.Reserved() {
		m.gauge.Store(&versionGauge{id: id, gauge: provider.NewStoreResourceVersionMetric(id)})
	}
}

// versionGauge publishes the applied version of a store.
type versionGauge struct {
	id    InformerNameAndResource
	gauge GaugeMetric
	// calls counts the pending calls of showVersion. The first one handles all of them, and alone uses shown.
	calls atomic.Int64
	shown string
}

// showVersion updates the gauge after a write. Callers hold no lock, since the instrument is user code. It does not wait for a
// running call, which then sets the newest version.
func (m *storage) showVersion() {
	g := m.gauge.Load()
	if g == nil || !g.id.Reserved() || g.calls.Add(1) > 1 {
		return
	}
	for seen := int64(0); !g.calls.CompareAndSwap(seen, 0); {
		seen = g.calls.Load()
		version := *m.applied.Load()
		if version == g.shown || m.gauge.Load() != g {
			continue
		}
		g.shown = version
		setVersionGauge(g.gauge, version)
	}
}

// scope is a store, or the part of one whose keys begin with prefix. Entries do not refer to their scope, so listing a
// part reads the whole store.
type scope struct {
	storage *storage
	prefix  string
	// version is the applied one. committed is true once a replacement was committed.
	version   atomic.Pointer[string]
	committed bool
}

// LastStoreSyncResourceVersion returns the applied version. A store with views of namespaces has the lowest one of them:
// see InNamespace.
func (s *scope) LastStoreSyncResourceVersion() string {
	if s == &s.storage.whole {
		return *s.storage.applied.Load()
	}
	return *s.version.Load()
}

func (s *scope) has(key string) bool {
	return s.prefix == "" || strings.HasPrefix(key, s.prefix)
}

// hasKey is has for a Key, without building its text.
func (s *scope) hasKey(key table.Key) bool { return s.prefix == "" || key.IsIn(s.prefix) }

// setVersion sets the version of a scope, and that of the store. The caller holds the table's lock.
func (m *storage) setVersion(of *scope, version string) {
	before := *of.version.Load()
	own := new(version)
	of.version.Store(own)
	if len(m.views) == 0 {
		m.applied.Store(own)
		return
	}
	m.replaceVersion(before, version)
	m.applied.Store(new(m.lowest()))
}

// replaceVersion records that a view, or the whole store, has another version.
func (m *storage) replaceVersion(before, after string) {
	if before != "" {
		m.versions.remove(before)
	}
	if after != "" {
		m.versions.add(after)
	}
}

// lowest returns the lowest version of a store with views and of these, empty if they cannot be
// compared. A view without a version counts as having the store's.
func (m *storage) lowest() string {
	hasWhole := *m.whole.version.Load() != ""
	views := m.versions.total
	if hasWhole {
		views--
	}
	if !hasWhole && views < len(m.views) {
		return ""
	}
	return m.versions.lowest()
}

// setAdditions changes the additions for which later writes compute values. It returns the objects of earlier writes.
func (m *storage) setAdditions(change func([]*indexerSet) []*indexerSet) *table.Snapshot {
	m.writing.Lock()
	defer m.writing.Unlock()
	set := m.indexers.Load()
	additions := change(slices.Clone(set.additions))
	m.indexers.Store(&indexerSet{names: set.names, functions: set.functions, additions: additions})
	return m.table.Snapshot()
}

// withdraw ends what announce began.
func (m *storage) withdraw(addition *indexerSet) {
	m.setAdditions(func(all []*indexerSet) []*indexerSet {
		return slices.DeleteFunc(all, func(s *indexerSet) bool { return s == addition })
	})
	addition.computed.Clear() // a snapshot may refer to it
}

// commitAddition makes the indexes of an addition visible, unless one of them failed for an object that was written meanwhile.
func (m *storage) commitAddition(addition *indexerSet, newIndexers Indexers) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	after, err := m.indexers.Load().with(newIndexers) // another call may have added the name
	if err != nil {
		return err
	}
	for e := range m.table.Snapshot().Each {
		if err := m.failure(addition, e); err != nil {
			return err
		}
	}
	m.table.BeginStaged()
	m.table.AddIndexes(len(newIndexers), func(obj any) [][]string { return addition.computedFor(obj).values })
	m.table.Commit(nil)
	m.indexers.Store(after)
	return nil
}
