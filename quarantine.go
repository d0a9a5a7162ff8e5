package cache

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/watchmirror/cache/internal/table"
)

// Quarantined is an object whose latest state could not be applied, with the fields of ObjectError. Readers see an
// earlier state or none.
type Quarantined struct {
	Key             string
	ResourceVersion string
	Stage           string
	Err             error
}

// quarantine is the table of the keys whose latest state could not be applied. A pipeline has one:
// its reflector, queue, consumer and store have entries of their own in it, and readers of the store
// ask for those of all. Its lock is the last one in the order, and is held for a few steps only.
// The zero value is ready.
type quarantine struct {
	// size counts the entries: in the usual case nobody takes the lock.
	size    atomic.Int64
	mu      sync.RWMutex
	entries map[quarantinePlace]quarantineEntry
	// byKey has the places of the entries that have a key of the store.
	byKey map[table.Key][]quarantinePlace
}

// quarantineOwner is a stage of a pipeline. What one has quarantined another does not release:
// their versions differ.
type quarantineOwner uint8

const (
	byStore quarantineOwner = iota
	byConsumer
	byQueue
	byReflector
)

// quarantinePlace is a key, or what stands for one, in a part.
type quarantinePlace struct {
	part quarantinePart
	key  table.Key
}

type quarantineEntry struct {
	Quarantined
	storeKey table.Key
}

// quarantinePart are the entries of one owner: those of a view's have its prefix.
type quarantinePart struct {
	*quarantine
	owner  quarantineOwner
	prefix string
}

// find is the error of a key of which nothing is stored: nil if it is not quarantined.
func (q *quarantine) find(key table.Key) error {
	if !q.any() {
		return nil
	}
	q.mu.RLock()
	defer q.mu.RUnlock()
	for _, at := range q.byKey[key] {
		e := q.entries[at]
		return &ObjectError{Key: key.String(), ResourceVersion: e.ResourceVersion, Stage: e.Stage, Err: e.Err}
	}
	return nil
}

// any says whether there are any entries.
func (q *quarantine) any() bool { return q.size.Load() > 0 }

// hold quarantines a change, unless it has no key.
func (p quarantinePart) hold(c *change) {
	if c.err.Stage != stageKey && c.err.Stage != stageMetadata {
		p.add(table.KeyOf(c.err.Key), c.err, c.kept) // c.key may share memory with the object
	}
}

// hasSince reports whether a key of the store is quarantined, by any owner, in a state that is not older than version.
func (q *quarantine) hasSince(key table.Key, version string) bool {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return slices.ContainsFunc(q.byKey[key], func(at quarantinePlace) bool {
		return !versionBefore(q.entries[at].ResourceVersion, version)
	})
}

// add quarantines a key. cause is e's as it is kept: see withoutStack. e is marked as repeated if the same version of it
// failed at the same stage before: a failure is reported once a version, and each time where there is no version.
func (p quarantinePart) add(key table.Key, e *ObjectError, cause error) {
	at := quarantinePlace{p, key}
	p.mu.Lock()
	defer p.mu.Unlock()
	e.repeated = p.entries[at].repeats(e)
	p.remove(at)
	if p.entries == nil {
		p.entries, p.byKey = map[quarantinePlace]quarantineEntry{}, map[table.Key][]quarantinePlace{}
	}
	if key = e.storeKey; key == (table.Key{}) {
		key = table.KeyOf(e.Key)
	}
	p.entries[at] = quarantineEntry{Quarantined{e.Key, e.ResourceVersion, e.Stage, cause}, key}
	p.byKey[key] = append(p.byKey[key], at)
	p.size.Add(1)
}

func (e quarantineEntry) repeats(failure *ObjectError) bool {
	return failure.ResourceVersion != "" && e.ResourceVersion == failure.ResourceVersion && e.Stage == failure.Stage
}

// entry is that of a key.
func (p quarantinePart) entry(key table.Key) (e quarantineEntry, quarantined bool) {
	if !p.any() {
		return e, false
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	e, quarantined = p.entries[quarantinePlace{p, key}]
	return e, quarantined
}

// release ends that a key is quarantined: a later state was applied, or the object is deleted.
func (p quarantinePart) release(key table.Key) {
	if p.any() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.remove(quarantinePlace{p, key})
	}
}

// releaseIf releases the keys for which released is true.
func (p quarantinePart) releaseIf(released func(key table.Key) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := range p.entries {
		if at.part == p && released(at.key) {
			p.remove(at)
		}
	}
}

// remove removes an entry, if it is there. The caller holds mu.
func (q *quarantine) remove(at quarantinePlace) {
	e, known := q.entries[at]
	if !known {
		return
	}
	delete(q.entries, at)
	others := slices.DeleteFunc(q.byKey[e.storeKey], func(other quarantinePlace) bool { return other == at })
	if q.byKey[e.storeKey] = others; len(others) == 0 {
		delete(q.byKey, e.storeKey)
	}
	q.size.Add(-1)
	if len(q.entries) == 0 {
		q.entries, q.byKey = nil, nil // a map does not shrink
	}
}

// list returns the entries at the places for which in is true, sorted by key.
func (q *quarantine) list(in func(at quarantinePlace) bool) []Quarantined {
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
	slices.SortFunc(all, func(a, b Quarantined) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// shares says whether an entry, of any owner, is in the part of the store that p is of.
func (p quarantinePart) shares(at quarantinePlace) bool {
	return p.prefix == "" || at.part.prefix == p.prefix || at.part.owner == byStore && at.key.IsIn(p.prefix)
}

// partOf is the part of a pipeline's table that an owner in front of store has: the table is that
// of the store or queue if it is one of this package, else a new one.
func partOf(store any, owner quarantineOwner) quarantinePart {
	if k, own := ours(store); own {
		return quarantinePart{k.storage.quarantine.quarantine, owner, k.scope.prefix}
	}
	if queue, own := store.(interface{ itself() *DeltaFIFO }); own {
		return quarantinePart{queue.itself().quarantine.quarantine, owner, ""}
	}
	return quarantinePart{&quarantine{}, owner, ""}
}

// withoutStack is an error as it is kept, once for each of many objects: of a panic it has the
// value and not the stack, which has been reported. It calls the error's methods.
func withoutStack(err error) error {
	panicked, ok := errors.AsType[*PanicError](err)
	if !ok || panicked.Stack == nil {
		return err
	}
	return &PanicError{Value: panicked.Value, text: err.Error()}
}

// heldIn says whether the store that an object was for has it in quarantine. Ours quarantine by key: an object without
// one, or that was not passed on, is quarantined, by its name, by the one that has it.
func heldIn(store any, object *ObjectError) bool {
	switch object.Stage {
	case stageDecode, stageType, stageMetadata, stageKey:
		return false
	}
	_, ours := store.(entryKeeper)
	return ours
}
