package cache

import "errors"

// Resync queues, as Sync, every known object that is neither queued nor handed
// out. They are not transformed: they were when they came. An object that
// KnownObjects lists and cannot return is logged and left out; the error is
// always nil.
func (f *DeltaFIFO) Resync() error {
	if f.known == nil {
		return nil
	}
	for key, err := range f.resync() {
		f.logger.Error(err, "A known object could not be read, it is not resynced", "key", key)
	}
	return nil
}

// resync returns the keys that could not be read, and why: a logger is not to be
// called under the lock.
func (f *DeltaFIFO) resync() map[string]error {
	f.mu.Lock()
	defer f.unlock()
	unread := map[string]error{}
	for _, key := range f.known.ListKeys() {
		if _, busy := f.newestLocked(key); busy {
			continue
		}
		obj, exists, err := f.known.GetByKey(key)
		if err == nil && !exists {
			err = errListedUnknown
		}
		if err != nil {
			unread[key] = err
			continue
		}
		received := f.newestReceivedLocked(key).Received
		f.log.add(change{Delta: Delta{Sync, obj}, key: key, received: received}, !f.populated)
	}
	return unread
}

// errListedUnknown is logged where KnownObjects lists a key and then has nothing
// under it, as happens if someone else changes it meanwhile.
var errListedUnknown = errors.New("KnownObjects lists the key and has nothing under it")
