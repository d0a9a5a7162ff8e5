package nats

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/sources"
)

// keptDeletions bounds the deleted keys that are kept for watches that are behind.
const keptDeletions = 1000

// keyTable has information that a bucket's messages lack: whether a key existed before, and the
// last value of a deleted key. All watches and lists of a source share it, each at its own
// revision.
type keyTable struct {
	mu   sync.Mutex
	live map[string]keyState
	// dead has the last states of deleted keys; order has their keys, the oldest first.
	dead  map[string]keyState
	order []string
	// complete is true once a list has shown all keys, at revision since. Later deletions are kept,
	// unless they are at or before evicted.
	complete       bool
	since, evicted uint64
	// created is when the bucket was created, newest the highest revision seen.
	created time.Time
	newest  uint64
}

// keyState is the last state of a key. deleted is the revision of its deletion, 0 if that is not
// known; then it was at until or before.
type keyState struct {
	created, revision, deleted, until uint64
	value                             []byte
}

func newKeyTable() *keyTable {
	return &keyTable{live: map[string]keyState{}, dead: map[string]keyState{}}
}

// listed records the complete state at a revision.
func (t *keyTable) listed(revision uint64, state map[string]sources.KeyValue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, kv := range state {
		t.putLocked(kv)
	}
	for key, known := range t.live {
		if _, exists := state[key]; !exists && known.revision <= revision {
			t.buryLocked(key, known, revision)
		}
	}
	if !t.complete {
		t.complete = true
		t.since = revision
	}
}

// at returns the keys at a revision, and whether they are known. Some of them may have been deleted
// before it.
func (t *keyTable) at(revision uint64) (keys map[string]bool, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys = make(map[string]bool, len(t.live))
	for key, state := range t.live {
		if state.created <= revision {
			keys[key] = true
		}
	}
	for key, state := range t.dead {
		if state.created <= revision && revision < state.until {
			keys[key] = true
		}
	}
	return keys, t.complete && revision >= max(t.since, t.evicted)
}

// change returns the change that a message means. redundant is true if it deletes a key that did
// not exist.
func (t *keyTable) change(m message) (c sources.KeyChange, redundant bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.KeyValue = m.KeyValue
	if !m.deletion {
		c.Type = t.putLocked(m.KeyValue)
		return c, false
	}
	c.Type = watch.Deleted
	known, lives := t.live[m.Key]
	last, died := t.dead[m.Key]
	switch {
	case lives && known.revision < m.Revision:
		known.deleted = m.Revision
		c.Value = known.value
		t.buryLocked(m.Key, known, m.Revision)
	case died && last.deleted > 0 && last.deleted < m.Revision && !lives:
		return c, true
	case died && last.revision < m.Revision:
		c.Value = last.value
	case !lives && !died && t.complete && m.Revision > t.evicted:
		return c, true
	default:
		c.LastUnknown = true
	}
	return c, false
}

// putLocked records a value, unless a later one is known, and returns watch.Added or
// watch.Modified.
func (t *keyTable) putLocked(kv sources.KeyValue) watch.EventType {
	known, lives := t.live[kv.Key]
	last, died := t.dead[kv.Key]
	switch {
	case lives && kv.Revision > known.revision:
		t.live[kv.Key] = keyState{created: known.created, revision: kv.Revision, value: kv.Value}
	case !lives && (!died || kv.Revision > max(last.deleted, last.revision)):
		t.live[kv.Key] = keyState{created: kv.Revision, revision: kv.Revision, value: kv.Value}
		return watch.Added
	}
	if lives && kv.Revision == known.created {
		return watch.Added
	}
	return watch.Modified
}

// buryLocked records the deletion of a key at or before a revision.
func (t *keyTable) buryLocked(key string, last keyState, until uint64) {
	delete(t.live, key)
	last.until = until
	if _, again := t.dead[key]; !again {
		t.order = append(t.order, key)
	}
	t.dead[key] = last
	if len(t.order) > keptDeletions {
		oldest := t.dead[t.order[0]]
		t.evicted = max(t.evicted, oldest.until)
		delete(t.dead, t.order[0])
		t.order = t.order[1:]
	}
}

// newestSeen returns the highest revision that a response has shown.
func (t *keyTable) newestSeen() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.newest
}

// sawBucket records a bucket's creation time and newest revision. before is newestSeen at the time
// of the request. If the bucket was created again (then it returns true) or restored from an older
// copy, it forgets all keys.
func (t *keyTable) sawBucket(created time.Time, newest, before uint64) (another bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	another = !t.created.IsZero() && !t.created.Equal(created)
	if another || newest < before {
		clear(t.live)
		clear(t.dead)
		t.order = nil
		t.complete = false
		t.evicted = 0
		t.newest = 0
	}
	t.created = created
	t.newest = max(t.newest, newest)
	return another
}
