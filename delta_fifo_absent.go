package cache

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/watchmirror/cache/internal/table"
)

// What a list lacks: it is looked for in the queue, in what is handed out, and with
// the consumer.

// deletionsLocked returns the tombstones of what is present, here or with the
// consumer, and was not listed; and an *ObjectError for each of them whose last state
// could not be read. The caller holds the queue's mu.
func (r *queueReplacement) deletionsLocked() (deletions []queued, unread []error) {
	f := r.queue
	met := sets.Set[string]{}
	keys := r.absent
	if !r.absentKnown {
		keys = f.keysLocked()
	}
	for _, text := range keys {
		if r.listed.Has(text) || met.Has(text) {
			continue
		}
		met.Insert(text)
		key := table.KeyOf(text)
		newest := f.newestReceivedLocked(key)
		if newest.deleted {
			continue
		}
		last := f.standingLocked(key)
		if last.err != nil {
			unread = append(unread, unreadKnown(text, newest.received(), last.err))
		}
		deletions = append(deletions, queued{
			Delta: Delta{Deleted, DeletedFinalStateUnknown{Key: text, Obj: last.obj}}, key: key, received: newest.received(),
		})
	}
	return deletions, unread
}

// keysLocked are the keys of which there is anything: those that are queued, in
// their order, those that are handed out, those that are known, and those that
// the consumer holds back, which are to be forgotten with the rest. Some come
// more than once. The caller holds mu.
func (f *DeltaFIFO) keysLocked() []string {
	keys := append(f.log.pendingKeys(), f.log.keysOut()...)
	if f.known != nil {
		keys = append(keys, f.known.ListKeys()...)
	}
	for _, bad := range append(f.consumed().list(everyKey), quarantinedIn(f.known)...) {
		keys = append(keys, bad.Key)
	}
	return keys
}
