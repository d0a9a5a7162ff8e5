package cache

import "reflect"

// The ways into a store that only our own reflector and controller use: an event
// with its version, and a batch.

// takeEvent takes an object and the version that comes with it in one step.
//
// Whether the event goes back in time is looked at first, without holding the
// lock until the write: one goroutine feeds a store its events. A deletion's
// final state is not transformed, for nobody gets to see it.
func (k *keyedStore) takeEvent(e event) error {
	key, err := keyOf(k.keyFunc, e.obj)
	if err != nil {
		k.advance(e.version)
		return rejection(e.obj, err)
	}
	received := receivedOf(e.obj)
	if have, known := k.Received(key); known && received.olderThan(have) {
		return &RegressionError{What: "event", Key: key, Have: have.ResourceVersion, Got: received.ResourceVersion}
	}
	s := &staged{key: key}
	if e.kind != Deleted {
		s = k.prepare(key, e.obj, received, k.transformer)
	}
	k.storage.lockFor(s)
	defer k.storage.mu.Unlock()
	k.storage.takeLocked(s)
	k.scope.advance(e.version)
	return s.failure()
}

// arrival is one change of a batch, prepared.
type arrival struct {
	*staged
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
}

// applyBatch applies a batch in one write. See batchApplier.
func (k *keyedStore) applyBatch(b batch, alreadyTransformed bool, outcomes []outcome) []outcome {
	transform := k.transformer
	if alreadyTransformed {
		transform = nil
	}
	arrivals := make([]arrival, len(b.changes))
	all := make([]*staged, len(b.changes))
	for i, change := range b.changes {
		arrivals[i] = k.arrive(change, transform)
		all[i] = arrivals[i].staged
	}
	m := k.storage
	m.lockFor(all...)
	defer m.mu.Unlock()
	for _, a := range arrivals {
		outcomes = append(outcomes, m.applyLocked(a))
	}
	k.scope.advance(b.version)
	m.writes++
	return outcomes
}

// arrive prepares a change.
func (k *keyedStore) arrive(change change, transform TransformFunc) arrival {
	a := arrival{kind: change.Type, staged: &staged{key: change.key}}
	if k.scope.lacks(change.key) {
		a.elsewhere = true
		a.err = &ObjectError{
			Key: change.key, ResourceVersion: change.received.ResourceVersion, Stage: StageKey,
			Err: k.scope.refusal(change.key, change.Object),
		}
		return a
	}
	if change.Type == Deleted {
		var err error
		if a.final, _, err = transformedUnder(change.key, k.keyFunc, transform, change.Object); err != nil {
			a.finalErr = &ObjectError{
				Key: change.key, ResourceVersion: change.received.ResourceVersion, Stage: StageTransform, Err: err,
			}
		}
		return a
	}
	if change.Type == Sync {
		if stored, _ := k.storage.Get(change.key); samePointer(stored, change.Object) {
			a.same = true
			return a
		}
	}
	a.staged = k.prepare(change.key, change.Object, change.received, transform)
	return a
}

// applyLocked writes a prepared change and says what became of it.
func (m *threadSafeMap) applyLocked(a arrival) outcome {
	switch {
	case a.elsewhere && a.kind == Deleted:
		return outcome{} // it is not there, and a state of it no longer held back
	case a.elsewhere:
		return outcome{err: a.err}
	case a.same:
		// If something else has been written since, that is newer than what a
		// Sync repeats, and stays.
		if e := m.table.entries[a.key]; e != nil {
			return outcome{old: e.obj, existed: true, obj: e.obj}
		}
		return outcome{unwanted: true}
	}
	old, taken := m.takeLocked(a.staged)
	var o outcome
	if old != nil {
		o.old, o.existed, o.was = old.obj, true, old.received
	}
	switch {
	case !taken:
		o.err = a.err
	case a.kind == Deleted:
		o.obj, o.finalErr = a.final, a.finalErr
		if o.obj == nil {
			o.obj = DeletedFinalStateUnknown{Key: a.key, Obj: o.old}
		}
	case a.entry == nil:
		o.unwanted = true
	default:
		o.obj = a.entry.obj
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
	k.storage.mu.Lock()
	defer k.storage.mu.Unlock()
	k.scope.advance(version)
}

// holds implements holder.
func (k *keyedStore) holds(key string) bool {
	k.storage.mu.RLock()
	defer k.storage.mu.RUnlock()
	return k.scope.has(key) && k.storage.held.holds(key)
}

// heldKeys implements holder.
func (k *keyedStore) heldKeys() []string {
	k.storage.mu.RLock()
	defer k.storage.mu.RUnlock()
	return k.storage.held.keysOf(k.scope.has)
}

func (k *keyedStore) quarantined() []Quarantined {
	k.storage.mu.RLock()
	defer k.storage.mu.RUnlock()
	return k.storage.held.listOf(k.scope.has)
}
