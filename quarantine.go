// The objects whose latest state could not be applied, and the errors that readers receive for
// them. Which keys are quarantined, by which stage, and since which version?

package cache

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/watchmirror/cache/internal/table"
)

// quarantine has the keys whose latest state could not be applied. A pipeline has one: its
// reflector, queue, consumer and store have their own entries in it, and readers of the store find
// the entries of all. The zero value is ready.
type quarantine struct {
	mu      sync.Mutex
	entries map[quarantineKey]quarantineEntry
	// unpublished are the keys of the entries that the store's open write has added or superseded.
	// It is used under the store's writing.
	unpublished []quarantineKey
	// readable has the entries for readers of the store, as a []quarantineEntry under each of the
	// store's keys. It is a table because a snapshot of the store needs one of the quarantine. It
	// is nil while there are no entries. Then no caller acquires the lock.
	readable atomic.Pointer[table.Table]
}

// quarantineOwner is a stage of a pipeline. A stage releases only its own entries, since the stages
// are at different versions.
type quarantineOwner uint8

const (
	byStore quarantineOwner = iota
	byConsumer
	byQueue
	byReflector
)

// quarantineKey is a key in a part. The reflector's key may be a name: see
// Reflector.quarantineKeyOf.
type quarantineKey struct {
	part quarantinePart
	key  table.Key
}

type quarantineEntry struct {
	Quarantined
	at       quarantineKey
	storeKey table.Key
	// superseded is true from the application of a later state until the end of its write. Until
	// then that state cannot be read, so readers must find the entry. Writers do not find it.
	superseded bool
}

// originOr returns the origin of the entry's version, or other if it has none.
func (e quarantineEntry) originOr(other table.Origin) table.Origin {
	if e.ResourceVersion == "" {
		return other
	}
	return table.OriginOf(e.ResourceVersion, "")
}

// quarantinePart is the entries of one owner.
type quarantinePart struct {
	// shared is the quarantine that has the entries, with those of other owners.
	shared *quarantine
	owner  quarantineOwner
	// prefix is that of the namespace view that the owner writes to, if any.
	prefix string
}

// of returns the part of another owner of the same quarantine.
func (p quarantinePart) of(owner quarantineOwner) quarantinePart {
	return quarantinePart{shared: p.shared, owner: owner, prefix: p.prefix}
}

// at returns the place of a key's entry.
func (p quarantinePart) at(key table.Key) quarantineKey { return quarantineKey{part: p, key: key} }

// any reports whether the quarantine has any entries, of whichever owner.
func (p quarantinePart) any() bool { return p.shared.any() }

// find returns the error for readers of a key without an object, or nil if the key is not
// quarantined. An entry is removed after a later state can be read. So a reader that has found
// neither an object nor then an entry must look for the object again.
func (q *quarantine) find(key table.Key) error {
	readable := q.readable.Load()
	if readable == nil {
		return nil
	}
	entries, _ := readable.GetKey(key)
	return quarantinedError(key, entries)
}

// snapshot returns the entries for readers of the store as they are now, nil if there are none.
func (q *quarantine) snapshot() *table.Snapshot {
	readable := q.readable.Load()
	if readable == nil {
		return nil
	}
	return readable.Snapshot()
}

// findIn is find for a snapshot of the quarantine.
func findIn(quarantined *table.Snapshot, key table.Key) error {
	if quarantined == nil {
		return nil
	}
	entry, found := quarantined.Get(key)
	if !found {
		return nil
	}
	return quarantinedError(key, entry.Object())
}

// quarantinedError returns the error for a key with these entries in quarantine.readable, or nil.
func quarantinedError(key table.Key, entries any) error {
	all, _ := entries.([]quarantineEntry)
	if len(all) == 0 {
		return nil
	}
	e := all[0]
	return &ObjectError{
		Key: key.String(), ResourceVersion: e.ResourceVersion, Stage: e.Stage, Err: e.Err,
	}
}

// any reports whether there are any entries.
func (q *quarantine) any() bool { return q.readable.Load() != nil }

// addChange quarantines a refused change, unless it has no key.
func (p quarantinePart) addChange(c *change) {
	e := c.prepared.err
	if e.hasKey() {
		ownKey := table.KeyOf(e.Key) // that of the change may share memory with the object
		p.add(ownKey, e, c.prepared.quarantineErr)
	}
}

// addInWrite is addChange for a change that the store's open write has refused with e: readers find
// the entry at the end of the write, writers at once.
func (p quarantinePart) addInWrite(e *ObjectError, cause error) {
	if !e.hasKey() {
		return
	}
	q := p.shared
	q.mu.Lock()
	defer q.mu.Unlock()
	at := p.at(table.KeyOf(e.Key))
	q.setLocked(at, e, cause)
	q.unpublished = append(q.unpublished, at)
}

// hasKey reports whether the object of the error has a key in the store.
func (e *ObjectError) hasKey() bool { return e.Stage != stageKey && e.Stage != stageMetadata }

// hasSince reports whether any owner has quarantined a key of the store at version or later.
func (q *quarantine) hasSince(key table.Key, version string) bool {
	readable := q.readable.Load()
	if readable == nil {
		return false
	}
	entries, _ := readable.GetKey(key)
	all, _ := entries.([]quarantineEntry)
	return slices.ContainsFunc(all, func(e quarantineEntry) bool {
		return !versionBefore(e.ResourceVersion, version)
	})
}

// add quarantines a key, with cause in place of e.Err: see withoutStack. It marks e as repeated if
// the same version failed at the same stage before: such a failure is not reported again. Without a
// version, each failure is reported.
func (p quarantinePart) add(key table.Key, e *ObjectError, cause error) {
	q := p.shared
	q.mu.Lock()
	defer q.mu.Unlock()
	at := p.at(key)
	before, again := q.setLocked(at, e, cause)
	readable := q.readable.Load()
	readable.Begin(2)
	if again {
		hide(readable, before)
	}
	show(readable, q.entries[at])
	readable.Commit(nil)
}

// setLocked sets an entry, which readers do not see yet. It returns the one before it.
func (q *quarantine) setLocked(
	at quarantineKey, e *ObjectError, cause error,
) (before quarantineEntry, again bool) {
	before, again = q.entries[at]
	e.repeated = before.repeats(e)
	if q.entries == nil {
		q.entries = map[quarantineKey]quarantineEntry{}
		q.readable.Store(table.New(0, func() string { return "" }))
	}
	q.entries[at] = quarantineEntry{
		Quarantined: Quarantined{e.Key, e.ResourceVersion, e.Stage, cause},
		at:          at,
		storeKey:    cmp.Or(e.storeKey, table.KeyOf(e.Key)),
	}
	return before, again
}

// show adds an entry to those of its store's key, for readers.
func show(readable *table.Table, e quarantineEntry) {
	slot := readable.Find(e.storeKey, readable.Seek(e.storeKey))
	others, _ := slot.Object.([]quarantineEntry)
	all := append(slices.Clone(others), e) // readers may have the old slice
	readable.Put(e.storeKey, slot, all, table.Origin{}, nil)
}

// hide removes an entry from those of its store's key, if it was shown.
func hide(readable *table.Table, e quarantineEntry) {
	slot := readable.Find(e.storeKey, readable.Seek(e.storeKey))
	if !slot.Exists {
		return
	}
	all, _ := slot.Object.([]quarantineEntry)
	others := slices.DeleteFunc(slices.Clone(all), func(other quarantineEntry) bool {
		return other.at == e.at
	})
	if len(others) == 0 {
		readable.Remove(slot)
		return
	}
	readable.Put(e.storeKey, slot, others, table.Origin{}, nil)
}

func (e quarantineEntry) repeats(failure *ObjectError) bool {
	return failure.ResourceVersion != "" &&
		e.ResourceVersion == failure.ResourceVersion &&
		e.Stage == failure.Stage
}

// entry returns a key's entry, unless it is superseded.
func (p quarantinePart) entry(key table.Key) (e quarantineEntry, quarantined bool) {
	if !p.any() {
		return quarantineEntry{}, false
	}
	p.shared.mu.Lock()
	defer p.shared.mu.Unlock()
	e, quarantined = p.shared.entries[p.at(key)]
	if e.superseded {
		return quarantineEntry{}, false
	}
	return e, quarantined
}

// supersede marks a key's entry for removal at the end of the write, which has applied a later
// state, or has deleted the object. It reports whether there is an entry that the write has not
// marked before.
func (p quarantinePart) supersede(key table.Key) bool {
	p.shared.mu.Lock()
	defer p.shared.mu.Unlock()
	return p.shared.supersedeLocked(p.at(key))
}

// supersedeIf is supersede for the keys for which superseded returns true.
func (p quarantinePart) supersedeIf(superseded func(key table.Key) bool) {
	p.shared.mu.Lock()
	defer p.shared.mu.Unlock()
	for at := range p.shared.entries {
		if at.part == p && superseded(at.key) {
			p.shared.supersedeLocked(at)
		}
	}
}

// supersedeLocked marks an entry. It returns false if there is none, or if it was marked before.
func (q *quarantine) supersedeLocked(at quarantineKey) bool {
	e, isQuarantined := q.entries[at]
	if !isQuarantined || e.superseded {
		return false
	}
	e.superseded = true
	q.entries[at] = e
	q.unpublished = append(q.unpublished, at)
	return true
}

// stageWrite stages many changes of the store's write, so that readers do not wait for them. If it
// returns true, the quarantine is locked until publishStaged, under the store table's lock.
func (q *quarantine) stageWrite() (isStaged bool) {
	if len(q.unpublished) <= table.InPlace {
		return false
	}
	q.mu.Lock()
	// In place would deadlock: a snapshot waits for readable under the lock that the commit needs.
	q.readable.Load().BeginStaged()
	q.applyWriteLocked()
	return true
}

// publishStaged publishes the changes of stageWrite.
func (q *quarantine) publishStaged() {
	defer q.mu.Unlock()
	q.commitLocked()
}

// publishWrite publishes the changes of the store's write that are not staged.
func (q *quarantine) publishWrite() {
	if len(q.unpublished) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.readable.Load().Begin(2 * len(q.unpublished))
	q.applyWriteLocked()
	q.commitLocked()
}

// applyWriteLocked removes the entries that are still superseded, and shows the added ones.
func (q *quarantine) applyWriteLocked() {
	readable := q.readable.Load()
	for _, at := range q.unpublished {
		e, isQuarantined := q.entries[at]
		if !isQuarantined { // a write may supersede a key several times
			continue
		}
		hide(readable, e)
		if e.superseded {
			delete(q.entries, at)
			continue
		}
		show(readable, e)
	}
	q.unpublished = nil
}

// commitLocked publishes a write of readable.
func (q *quarantine) commitLocked() {
	q.readable.Load().Commit(nil)
	if len(q.entries) == 0 { // maps and tables keep memory
		q.entries = nil
		q.readable.Store(nil)
	}
}

// release removes a key's entry: a later state can be read, or the object was deleted.
func (p quarantinePart) release(key table.Key) {
	if !p.any() {
		return
	}
	at := p.at(key)
	p.shared.mu.Lock()
	defer p.shared.mu.Unlock()
	if _, quarantined := p.shared.entries[at]; quarantined {
		p.shared.removeLocked([]quarantineKey{at})
	}
}

// releaseIf releases the keys for which released returns true.
func (p quarantinePart) releaseIf(released func(key table.Key) bool) {
	if !p.any() {
		return
	}
	p.shared.mu.Lock()
	defer p.shared.mu.Unlock()
	var keys []quarantineKey
	for at := range p.shared.entries {
		if at.part == p && released(at.key) {
			keys = append(keys, at)
		}
	}
	p.shared.removeLocked(keys)
}

// removeLocked removes entries in one step for readers.
func (q *quarantine) removeLocked(keys []quarantineKey) {
	if len(keys) == 0 {
		return
	}
	readable := q.readable.Load()
	readable.Begin(len(keys))
	for _, at := range keys {
		hide(readable, q.entries[at])
		delete(q.entries, at)
	}
	q.commitLocked()
}

// list returns the entries for which in returns true, sorted by key, and only the newest version of
// each key.
func (q *quarantine) list(in func(e quarantineEntry) bool) []Quarantined {
	if !q.any() {
		return nil
	}
	var all []Quarantined
	q.mu.Lock()
	for _, e := range q.entries {
		if in(e) {
			all = append(all, e.Quarantined)
		}
	}
	q.mu.Unlock()
	return mergeQuarantined(all)
}

// shares reports whether an entry of any owner is in p's part of the store.
func (p quarantinePart) shares(e quarantineEntry) bool {
	if p.prefix == "" || e.at.part.prefix == p.prefix {
		return true
	}
	return e.at.part.owner == byStore && e.at.key.IsIn(p.prefix)
}
