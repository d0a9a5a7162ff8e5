package cache

import (
	"errors"

	"github.com/watchmirror/cache/internal/table"
)

// onlyRepeats says whether a delta that came out of a queue tells again what its consumer
// has, and nothing of what the source has. A queue that hands out listed objects as Sync
// too leaves that open.
func onlyRepeats(queue Queue, d Delta) bool {
	f, ours := queue.(*DeltaFIFO)
	return ours && d.Type == Sync && f.listedType == Replaced
}

// Resync queues, as Sync, every known object that is neither queued nor handed
// out. They are not transformed: they were when they came. The error joins an
// *ObjectError for each object that KnownObjects could not return: it is left out, all
// others are queued.
func (f *DeltaFIFO) Resync() error {
	if f.known == nil {
		return nil
	}
	vanished, unread := f.resync()
	for _, key := range vanished {
		// As happens if someone else changes KnownObjects meanwhile: no failure.
		f.logger.Info("KnownObjects lists a key and has nothing under it: there is nothing to resync", "key", key)
	}
	return errors.Join(unread...)
}

// resync returns the keys that are listed and not there, and the errors of those that
// could not be read: a logger is not to be called under the lock.
func (f *DeltaFIFO) resync() (vanished []string, unread []error) {
	f.mu.Lock()
	defer f.unlock()
	for _, text := range f.known.ListKeys() {
		key := table.KeyOf(text)
		if _, busy := f.newestLocked(key); busy {
			continue
		}
		obj, exists, err := f.knownLocked(text)
		if err == nil && !exists {
			vanished = append(vanished, text)
			continue
		}
		if err != nil {
			unread = append(unread, unreadKnown(text, f.newestReceivedLocked(key).received(), err))
			continue
		}
		last := f.newestReceivedLocked(key)
		f.log.add(&queued{Delta: Delta{Sync, obj}, key: key, received: last.received(), origin: last.origin}, !f.populated)
	}
	return vanished, unread
}

// unreadKnown is the error of an object that KnownObjects lists and could not return.
func unreadKnown(key string, received Received, err error) *ObjectError {
	return &ObjectError{
		Key: key, ResourceVersion: received.ResourceVersion, Stage: StageProcess,
		Err: &StoreError{Op: "GetByKey", Name: key, Err: withoutObject(err)},
	}
}
