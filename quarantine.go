package cache

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/watchmirror/cache/internal/table"
)

// quarantine has the keys whose latest state could not be applied. A pipeline has one: its reflector, queue, consumer and
// store have their own entries in it, and readers of the store find the entries of all. Its lock is the last one in the
// order. The zero value is ready.
type quarantine struct {
	// size counts the entries. While it is zero, no caller acquires the lock.
	size    atomic.Int64
	mu      sync.RWMutex
	entries map[quarantineKey]quarantineEntry
	// byKey has the keys of the entries by the key that readers of the store use.
	byKey map[table.Key][]quarantineKey
}

// quarantineOwner is a stage of a pipeline. A stage releases only its own entries, since the stages are at different versions.
type quarantineOwner uint8

const (
	byStore quarantineOwner = iota
	byConsumer
	byQueue
	byReflector
)

// quarantineKey is a key in a part. The reflector's key may be a name: see Reflector.quarantineKeyOf.
type quarantineKey struct {
	part quarantinePart
	key  table.Key
}

type quarantineEntry struct {
	Quarantined
	storeKey table.Key
}

// originOr returns the origin of the entry's version, or other if it has none.
func (e quarantineEntry) originOr(other table.Origin) table.Origin {
	if e.ResourceVersion == "" {
		return other
	}
	return table.OriginOf(e.ResourceVersion, "")
}

// quarantinePart is the entries of one owner. prefix is that of the namespace view that the owner writes to, if any.
type quarantinePart struct {
	*quarantine
	owner  quarantineOwner
	prefix string
}

// find returns the error for readers of a key without an object, or nil if the key is not quarantined.
func (q *quarantine) find(key table.Key) error {
	if q.any() {
		q.mu.RLock()
		defer q.mu.RUnlock()
		for _, at := range q.byKey[key] {
			e := q.entries[at]
			return &ObjectError{Key: key.String(), ResourceVersion: e.ResourceVersion, Stage: e.Stage, Err: e.Err}
		}
	}
	return nil
}

// any reports whether there are any entries.
func (q *quarantine) any() bool { return q.size.Load() > 0 }

// addChange quarantines a refused change, unless it has no key.
func (p quarantinePart) addChange(c *change) {
	if c.err.Stage != stageKey && c.err.Stage != stageMetadata {
		p.add(table.KeyOf(c.err.Key), c.err, c.quarantineErr) // c.key may share memory with the object
	}
}

// hasSince reports whether any owner has quarantined a key of the store at version or later.
func (q *quarantine) hasSince(key table.Key, version string) bool {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return slices.ContainsFunc(q.byKey[key], func(at quarantineKey) bool {
		return !versionBefore(q.entries[at].ResourceVersion, version)
	})
}

// add quarantines a key, with cause in place of e.Err: see withoutStack. It marks e as repeated if the same version failed at
// the same stage before: such a failure is not reported again. Without a version, each failure is reported.
func (p quarantinePart) add(key table.Key, e *ObjectError, cause error) {
	at := quarantineKey{p, key}
	p.mu.Lock()
	defer p.mu.Unlock()
	e.repeated = p.entries[at].repeats(e)
	p.removeLocked(at)
	if p.entries == nil {
		p.entries, p.byKey = map[quarantineKey]quarantineEntry{}, map[table.Key][]quarantineKey{}
	}
	key = cmp.Or(e.storeKey, table.KeyOf(e.Key))
	p.entries[at] = quarantineEntry{Quarantined{e.Key, e.ResourceVersion, e.Stage, cause}, key}
	p.byKey[key] = append(p.byKey[key], at)
	p.size.Add(1)
}

func (e quarantineEntry) repeats(failure *ObjectError) bool {
	return failure.ResourceVersion != "" && e.ResourceVersion == failure.ResourceVersion && e.Stage == failure.Stage
}

// entry returns a key's entry.
func (p quarantinePart) entry(key table.Key) (e quarantineEntry, quarantined bool) {
	if p.any() {
		p.mu.RLock()
		defer p.mu.RUnlock()
		e, quarantined = p.entries[quarantineKey{p, key}]
	}
	return e, quarantined
}

// release removes a key's entry: a later state was applied, or the object was deleted.
func (p quarantinePart) release(key table.Key) {
	if p.any() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.removeLocked(quarantineKey{p, key})
	}
}

// releaseIf releases the keys for which released returns true.
func (p quarantinePart) releaseIf(released func(key table.Key) bool) {
	if p.any() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for at := range p.entries {
			if at.part == p && released(at.key) {
				p.removeLocked(at)
			}
		}
	}
}

// removeLocked removes an entry, if it exists.
func (q *quarantine) removeLocked(at quarantineKey) {
	e, known := q.entries[at]
	if !known {
		return
	}
	delete(q.entries, at)
	others := slices.DeleteFunc(q.byKey[e.storeKey], func(other quarantineKey) bool { return other == at })
	if q.byKey[e.storeKey] = others; len(others) == 0 {
		delete(q.byKey, e.storeKey)
	}
	q.size.Add(-1)
	if len(q.entries) == 0 {
		q.entries, q.byKey = nil, nil // maps do not shrink
	}
}

// list returns the entries for which in returns true, sorted by key, and only the newest version of each key.
func (q *quarantine) list(in func(at quarantineKey) bool) []Quarantined {
	if !q.any() {
		return nil
	}
	var all []Quarantined
	q.mu.RLock()
	for at, e := range q.entries {
		if in(at) {
			all = append(all, e.Quarantined)
		}
	}
	q.mu.RUnlock()
	return mergeQuarantined(all)
}

// shares reports whether an entry of any owner is in p's part of the store.
func (p quarantinePart) shares(at quarantineKey) bool {
	return p.prefix == "" || at.part.prefix == p.prefix || at.part.owner == byStore && at.key.IsIn(p.prefix)
}
