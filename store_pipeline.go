package cache

import (
	"context"
	"reflect"

	"github.com/watchmirror/cache/internal/table"
)

// The ways into a store that only our own reflector and controller use: an event
// with its version, and a batch.

// takeEvent takes an object and the version that comes with it in one step.
//
// Whether the event goes back in time is looked at first, without holding the
// lock until the write: one goroutine feeds a store its events. A deletion's
// final state is not transformed, for nobody gets to see it.
func (k *keyedStore) takeEvent(e event) error {
	var m metadata
	key, err := k.look(e.obj, &m)
	received := m.received
	if err != nil {
		k.advance(e.version)
		return rejection(e.obj, err)
	}
	have, _ := k.lastReceived(key)
	if regression := k.regression(have, key, received); regression != nil {
		return regression
	}
	one := k.storage.oneStaged()
	defer k.storage.put(one)
	one.key = key
	if e.kind != Deleted {
		k.prepare(&one.staged, key, e.obj, received, k.transformer)
	}
	w := k.storage.begin(0, one.all[:]...)
	w.take(&one.staged)
	w.commit(func() { k.scope.advance(e.version) })
	return one.failure()
}

// regression is the error of an event that is older than what was last received of its key: the
// quarantined state, if one is that has a version, or else have.
func (k *keyedStore) regression(have Received, key table.Key, received Received) *RegressionError {
	if !k.storage.quarantined.isEmpty() {
		if version, _ := k.heldVersion(key.String()); version != "" {
			have = Received{ResourceVersion: version}
		}
	}
	if !received.olderThan(have) {
		return nil
	}
	return &RegressionError{What: "event", Key: key.String(), Have: have.ResourceVersion, Got: received.ResourceVersion}
}

// eventKey implements entryKeeper.
func (k *keyedStore) eventKey(obj any) (table.Key, error) { return k.keyOf(obj) }

// olderThanEntry implements entryKeeper. The version that stands in for one that is not
// known is that of the whole store: a list may have brought the object before.
func (k *keyedStore) olderThanEntry(key table.Key, received Received) *RegressionError {
	seen := k.storage.sight(key)
	return k.regression(seen.received, key, received) // nothing was received of what is not known
}

// arrival is one change of a batch, prepared.
type arrival struct {
	staged
	kind DeltaType
	// elsewhere is true if the key is outside the scope: nothing is written, nor
	// held back under what is another namespace's key.
	elsewhere bool
	// same is true for a Sync of the very object that is stored: there is
	// nothing to write, and an index must not see what a reader may have done to
	// the object.
	same bool
	// final is what a deletion is told with; nil if its object could not be used
	// and a tombstone is to be made. finalErr says why, unless the transform
	// does not want such objects.
	final    any
	finalErr *ObjectError
	// seen is what was there when it was prepared.
	seen sighting
}

// applyBatch applies a batch in one write. See batchApplier.
func (k *keyedStore) applyBatch(ctx context.Context, b batch, alreadyTransformed bool, outcomes []outcome) []outcome {
	transform := k.transformer
	if alreadyTransformed {
		transform = nil
	}
	arrivals := make([]arrival, len(b.changes))
	all := make([]*staged, len(b.changes))
	values := newValueSlab(len(b.changes), len(k.storage.indexers.Load().names))
	for i, change := range b.changes {
		if ctx.Err() != nil {
			return outcomes
		}
		arrivals[i] = k.arrive(change, transform, values.of(i))
		all[i] = &arrivals[i].staged
	}
	m := k.storage
	w := m.begin(0, all...)
	before := stagedBefore{staged: all}
	for i := range arrivals {
		outcomes = append(outcomes, w.apply(&arrivals[i], &before, i))
	}
	w.commit(func() {
		k.scope.advance(b.version)
		m.writes++
	})
	return outcomes
}

// valueSlab is room for the index values of many objects, in two pieces of memory: one value
// for each index, and slices for them.
type valueSlab struct {
	slices  [][]string
	indexes int
}

func newValueSlab(objects, indexes int) valueSlab {
	texts, slices := make([]string, objects*indexes), make([][]string, objects*indexes)
	for i := range slices {
		slices[i] = texts[i : i : i+1]
	}
	return valueSlab{slices, indexes}
}

func (s valueSlab) of(object int) [][]string {
	from := object * s.indexes
	return s.slices[from : from : from+s.indexes]
}

// arrive prepares a change. values is room for those of its indexes.
func (k *keyedStore) arrive(change change, transform TransformFunc, values [][]string) arrival {
	a := arrival{kind: change.Type, staged: staged{key: change.key}}
	if !k.scope.hasKey(change.key) {
		a.elsewhere = true
		a.err = &ObjectError{
			Key: change.key.String(), ResourceVersion: change.received.ResourceVersion, Stage: StageKey,
			Err: k.scope.refusal(change.key.String(), change.Object),
		}
		return a
	}
	a.seen = k.storage.sight(a.key)
	if change.Type == Deleted {
		var err error
		if a.final, _, err = transformedUnder(change.key, k.keyFunc, transform, change.Object); err != nil {
			a.finalErr = &ObjectError{
				Key: change.key.String(), ResourceVersion: change.received.ResourceVersion, Stage: StageTransform, Err: err,
			}
		}
		return a
	}
	if change.Type == Sync && samePointer(a.seen.Object, change.Object) {
		a.same = true
		return a
	}
	a.values = values
	k.prepare(&a.staged, a.key, change.Object, change.received, transform)
	return a
}

// apply writes a prepared change, the one at a place of all, and says what became of it. It
// calls no user code.
func (w storeWrite) apply(a *arrival, all *stagedBefore, at int) outcome {
	switch {
	case a.elsewhere && a.kind == Deleted:
		return outcome{} // it is not there, and a state of it no longer held back
	case a.elsewhere:
		return outcome{err: a.err}
	case a.same:
		// If something else has been written since, that is newer than what a
		// Sync repeats, and stays.
		if found, exists := w.table.Find(a.key); exists {
			return outcome{old: found.Object, existed: true, obj: found.Object}
		}
		return outcome{unwanted: true}
	}
	var was Received
	if found, exists := w.table.Find(a.key); exists {
		was, _ = w.before(found, &a.seen, all, at) // now, as what was received of it will be forgotten
	}
	old, existed, taken := w.take(&a.staged)
	o := outcome{old: old.Object, existed: existed, was: was}
	switch {
	case !taken:
		o.err = a.err
	case a.kind == Deleted:
		o.obj, o.finalErr = a.final, a.finalErr
		if o.obj == nil {
			o.obj = DeletedFinalStateUnknown{Key: a.key.String(), Obj: o.old}
		}
	case !a.present:
		o.unwanted = true
	default:
		o.obj = a.obj
	}
	return o
}

// samePointer is true if both are one pointer. Other values are never the same
// here; comparing them could panic.
func samePointer(a, b any) bool {
	return a != nil && reflect.TypeOf(a).Kind() == reflect.Pointer && a == b
}

// advance moves the version, unless it is told none.
func (k *keyedStore) advance(version string) {
	k.storage.moveVersion(func() { k.scope.advance(version) })
}

// heldVersion implements holder.
func (k *keyedStore) heldVersion(key string) (version string, held bool) {
	k.storage.asideMu.RLock()
	defer k.storage.asideMu.RUnlock()
	if k.scope.lacks(key) {
		return "", false
	}
	return k.storage.held.version(key)
}

// heldKeys implements holder.
func (k *keyedStore) heldKeys() []string {
	k.storage.asideMu.RLock()
	defer k.storage.asideMu.RUnlock()
	return k.storage.held.keysOf(k.scope.has)
}

// mayHold implements holder, for all of the storage: that is soon answered.
func (k *keyedStore) mayHold() bool {
	k.storage.asideMu.RLock()
	defer k.storage.asideMu.RUnlock()
	return k.storage.held.holdsAny()
}

func (k *keyedStore) quarantined() []Quarantined { return sortedByKey(k.copyOfHeld()) }

func (k *keyedStore) copyOfHeld() []Quarantined {
	k.storage.asideMu.RLock()
	defer k.storage.asideMu.RUnlock()
	return k.storage.held.copyOf(k.scope.has)
}
