// The objects that the consumer of a queue has applied, as KnownObjects shows them. In which state
// will a key be once everything in the queue has been processed?

package cache

import (
	"errors"

	"github.com/watchmirror/cache/internal/deltalog"
	"github.com/watchmirror/cache/internal/table"
)

// lastState is the state of a key once everything in the queue has been processed.
type lastState struct {
	object any
	// present is also true if KnownObjects returned err, an *ObjectError.
	present bool
	err     error
	// origin is zero if the object is deleted.
	origin table.Origin
	// queued is the last change in the queue, or nil.
	queued *deltalog.Record
	// refused is a later state that the consumer or its store has quarantined, if nothing is
	// queued.
	refused     quarantineEntry
	quarantined bool
}

// isDeletable reports whether a deletion must be queued. It must if another deletion is pending:
// addLocked merges the two.
func (s lastState) isDeletable() bool {
	return s.present || s.quarantined || s.queued != nil && !s.queued.IsHandedOut()
}

// is reports whether a listed object has this state.
func (s lastState) is(listed table.Origin) bool { return !s.quarantined && listed.Same(s.origin) }

// stateAfter is the state of a key once a queued change has been processed.
func stateAfter(queued *deltalog.Record) lastState {
	last := lastState{queued: queued, object: queued.Object}
	if queued.Kind != deltalog.Deleted {
		last.present = true
		last.origin = queued.Origin
	}
	if tombstone, ok := queued.Object.(DeletedFinalStateUnknown); ok {
		last.object = tombstone.Obj
	}
	return last
}

// knownObjects are the KnownObjects of a queue. They are read under the queue's lock.
type knownObjects interface {
	// last returns the state of a key for which nothing is queued.
	last(key table.Key) lastState
	eachKey(visit func(table.Key))
	// size returns the number of keys, 0 if it is not known.
	size() int
	// quarantined returns the objects that the consumer's store has quarantined.
	quarantined() []Quarantined
	// version returns the version of the consumer's store, empty if there is none.
	version() string
}

func knownObjectsOf(objects KeyListerGetter) knownObjects {
	if objects == nil {
		return nothingKnown{}
	}
	if store, isOwn := keyedStoreOf(objects); isOwn {
		return knownStore{store}
	}
	return foreignObjects{objects}
}

// nothingKnown is for a queue without KnownObjects.
type nothingKnown struct{}

func (nothingKnown) last(table.Key) lastState   { return lastState{} }
func (nothingKnown) eachKey(func(table.Key))    {}
func (nothingKnown) size() int                  { return 0 }
func (nothingKnown) quarantined() []Quarantined { return nil }
func (nothingKnown) version() string            { return "" }

// knownStore is a store of this package. Its keys need no texts.
type knownStore struct{ store *keyedStore }

func (k knownStore) last(key table.Key) lastState {
	stored := k.store.entry(key)
	last := lastState{object: stored.Object, present: stored.Exists, origin: stored.Origin}
	last.refused, last.quarantined = k.store.storage.quarantine.entry(key)
	return last
}

func (k knownStore) eachKey(visit func(table.Key)) {
	for entry := range k.store.storage.table.Snapshot().Each {
		key := entry.Key()
		if k.store.hasKey(key) {
			visit(key)
		}
	}
}

func (k knownStore) size() int {
	if k.store.prefix != "" {
		return 0
	}
	return k.store.storage.table.Len()
}

func (k knownStore) quarantined() []Quarantined { return k.store.quarantinedObjects() }

func (k knownStore) version() string { return k.store.LastStoreSyncResourceVersion() }

// receivedGetter is an optional interface of DeltaFIFOOptions.KnownObjects. Without it a queue
// delivers every listed object, as client-go's does.
type receivedGetter interface {
	ObjectVersion(key string) (ObjectVersion, bool)
}

// foreignObjects are KnownObjects of another package.
type foreignObjects struct{ objects KeyListerGetter }

func (k foreignObjects) last(key table.Key) (last lastState) {
	obj, exists, err := k.objects.GetByKey(key.String())
	if errors.Is(err, ErrQuarantined) && !exists {
		return last
	}
	if err != nil {
		cause := &StoreError{Op: "GetByKey", Name: key.String(), Err: withoutObject(err)}
		last.err = &ObjectError{Key: key.String(), Stage: stageProcess, Err: cause}
		last.present = true
	} else if exists {
		last.object = obj
		last.present = true
	}
	if known, ok := k.objects.(receivedGetter); ok {
		received, _ := known.ObjectVersion(key.String())
		last.origin = originOf(received)
	}
	return last
}

func (k foreignObjects) eachKey(visit func(table.Key)) {
	for _, key := range k.objects.ListKeys() {
		visit(table.KeyOf(key))
	}
}

func (foreignObjects) size() int { return 0 }

// quarantined returns nothing: the queue has what its consumer refused.
func (foreignObjects) quarantined() []Quarantined { return nil }

func (k foreignObjects) version() string { return storeVersionOf(k.objects) }

// storeVersionOf returns the version of a store that has one, or "".
func storeVersionOf(store any) string {
	versioned, ok := store.(interface{ LastStoreSyncResourceVersion() string })
	if !ok {
		return ""
	}
	return versioned.LastStoreSyncResourceVersion()
}
