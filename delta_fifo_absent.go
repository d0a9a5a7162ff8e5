package cache

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// What a list lacks: it is looked for in the queue, in what is handed out, and with
// the consumer.

// deletionsLocked returns the tombstones of what is present, here or with the
// consumer, and was not listed; and the keys whose last state could not be read.
// The caller holds the queue's mu.
func (r *queueReplacement) deletionsLocked() (deletions []change, unread map[string]error) {
	f := r.queue
	met := sets.Set[string]{}
	unread = map[string]error{}
	for _, key := range f.keysLocked() {
		if r.listed.Has(key) || met.Has(key) {
			continue
		}
		met.Insert(key)
		newest := f.newestReceivedLocked(key)
		if newest.deleted {
			continue
		}
		last := f.standingLocked(key)
		if last.err != nil {
			unread[key] = last.err
		}
		deletions = append(deletions, change{
			Delta: Delta{Deleted, DeletedFinalStateUnknown{Key: key, Obj: last.obj}}, key: key, received: newest.Received,
		})
	}
	return deletions, unread
}

// keysLocked are the keys of which there is anything: those that are queued, in
// their order, those that are handed out, those that are known, and those that
// the consumer holds back, which are to be forgotten with the rest. Some come
// more than once. The caller holds mu.
func (f *DeltaFIFO) keysLocked() []string {
	keys := append(f.log.pendingKeys(), slices.Sorted(maps.Keys(f.inFlight))...)
	if f.known != nil {
		keys = append(keys, f.known.ListKeys()...)
	}
	for _, h := range f.holders {
		keys = append(keys, h.heldKeys()...)
	}
	return keys
}
