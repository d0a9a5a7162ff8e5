package cache

import (
	"errors"

	"github.com/watchmirror/cache/internal/table"
)

// This file says how things will stand once everything in the queue has been
// processed: what is queued counts before what is handed out, and that before
// what the consumer holds.

// standing is the state that a key has once everything in the queue has been
// processed.
type standing struct {
	// obj is the newest state; if the key is absent, the last one.
	obj any
	// present is false if the newest change is a deletion, or there is nothing.
	present bool
	// err is set if KnownObjects could not say: then the key counts as present.
	err error
}

func (f *DeltaFIFO) standingLocked(key table.Key) standing {
	if newest, ok := f.newestLocked(key); ok {
		return standing{obj: finalStateOf(newest.Object), present: newest.Type != Deleted}
	}
	if f.known == nil {
		return standing{}
	}
	obj, exists, err := f.knownLocked(key.String())
	if err != nil || !exists {
		return standing{present: err != nil, err: err}
	}
	return standing{obj: obj, present: true}
}

// knownLocked is GetByKey of KnownObjects, which there are, for which it is no error that
// nothing is there of a key because that is quarantined.
func (f *DeltaFIFO) knownLocked(key string) (obj any, exists bool, err error) {
	obj, exists, err = f.known.GetByKey(key)
	if !exists && errors.Is(err, ErrQuarantined) {
		err = nil
	}
	return obj, exists, err
}

// newestLocked returns the newest change of a key that is queued or handed out.
func (f *DeltaFIFO) newestLocked(key table.Key) (queued, bool) {
	if newest := f.log.newest(key); newest != nil {
		return newest.queued, true
	}
	return queued{}, false
}

// lastReceived is what was last received of a key.
type lastReceived struct {
	origin table.Origin
	// deleted is true if that was its deletion.
	deleted bool
}

// received is as much of it as can be said.
func (l lastReceived) received() Received { return Received{ResourceVersion: l.origin.Version()} }

func (f *DeltaFIFO) newestReceived(key table.Key) lastReceived {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newestReceivedLocked(key)
}

func (f *DeltaFIFO) newestReceivedLocked(key table.Key) (last lastReceived) {
	if newest, ok := f.newestLocked(key); ok {
		return lastReceived{newest.from(), newest.Type == Deleted}
	}
	switch known := f.known.(type) {
	case interface{ keyed() *keyedStore }:
		last.origin, _ = known.keyed().originUnder(key)
	case ReceivedGetter:
		received, _ := known.Received(key.String())
		last.origin = originOf(received)
	}
	return last
}

func (f *DeltaFIFO) mayDelete(key table.Key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mayDeleteLocked(key)
}

// mayDeleteLocked says whether a deletion of the key means anything: it is
// present, or its deletion waits and the two can become one, or the consumer
// holds back a state of it, which is to be forgotten.
func (f *DeltaFIFO) mayDeleteLocked(key table.Key) bool {
	newest := f.log.newest(key)
	if newest != nil && newest.stage == pending {
		return true
	}
	if f.standingLocked(key).present {
		return true
	}
	_, refused := f.refused(key)
	return newest == nil && refused
}

// lastHeld is the version of the quarantined state of a key, if that is what was last received
// of it: the queue's own, or a consumer's where nothing is in the queue. It may be empty.
func (f *DeltaFIFO) lastHeld(key table.Key) (version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.quarantine.any() {
		if version, held := f.quarantine.version(key.String()); held {
			return version
		}
	}
	if f.log.newest(key) != nil {
		return ""
	}
	version, _ = f.refused(key)
	return version
}

// refused is the version of the state of a key that the consumer or its store has quarantined.
func (f *DeltaFIFO) refused(key table.Key) (version string, quarantined bool) {
	if consumed := f.consumed(); consumed.any() {
		version, quarantined = consumed.version(key.String())
	}
	if !quarantined && f.own != nil && f.own.storage.quarantined.any() {
		version, quarantined = f.own.storage.quarantined.version(key.String())
	}
	return version, quarantined
}

// releaseLocked forgets that a state of a change's key is held back here. The caller holds mu.
func (f *DeltaFIFO) releaseLocked(c *queued) {
	if f.quarantine.any() {
		c.keepText()
		f.quarantine.release(c.key.String())
	}
}
