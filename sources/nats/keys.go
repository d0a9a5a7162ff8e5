package nats

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/sources"
)

const (
	// keptDeletions bounds the deleted keys that are kept for watches that are behind.
	keptDeletions = 1000
	// keptShown bounds the revisions that are kept of those shown to readers.
	keptShown = 1000
	// keptMessages bounds the last messages by which a restored bucket is recognized. Each may
	// cost a request.
	keptMessages = 3
	// comparedExpired bounds the expired messages that are compared at once.
	comparedExpired = 20
)

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
	// lastMessages are the last ones that were read, the oldest first, each of another key.
	lastMessages []messageID
	// expiring has the last messages of keys that expire, unless they leave no older one. The
	// bucket then has the older one again, without a message.
	expiring map[string]messageID
	// epoch counts the buckets of this name: each that was created again or restored is another
	// one, whose revisions repeat those of the one before.
	epoch int
	// retired is the highest revision of earlier buckets. Of the present one, shown has revisions
	// up to it that a reader may have: watches from others belong to an earlier bucket.
	retired uint64
	shown   map[uint64]bool
}

// messageID identifies a message of a bucket.
type messageID struct {
	key      string
	revision uint64
	time     time.Time
	// expires is zero if the message does not expire.
	expires time.Time
}

// keyState is the last state of a key. deleted is the revision of its deletion, 0 if that is not
// known; then it was at until or before.
type keyState struct {
	created, revision, deleted, until uint64
	value                             []byte
}

func newKeyTable() *keyTable {
	return &keyTable{
		live:     map[string]keyState{},
		dead:     map[string]keyState{},
		expiring: map[string]messageID{},
		shown:    map[uint64]bool{},
	}
}

// listed records the complete state at a revision of the bucket of an epoch. It returns false if
// that is not the present one.
func (t *keyTable) listed(
	revision uint64, state map[string]sources.KeyValue, epoch int,
) (isPresent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if epoch != t.epoch {
		return false
	}
	for _, kv := range state {
		t.putListedLocked(revision, kv)
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
	t.showLocked(revision)
	return true
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

// putListedLocked records a value that was listed at a revision, unless a later change is known. It
// may be older than a known one that has expired.
func (t *keyTable) putListedLocked(revision uint64, kv sources.KeyValue) {
	known, lives := t.live[kv.Key]
	last := t.dead[kv.Key]
	if known.revision > revision || !lives && max(last.deleted, last.until) > revision {
		return
	}
	created := kv.Revision
	if lives && known.revision <= kv.Revision {
		created = known.created
	}
	t.live[kv.Key] = keyState{created: created, revision: kv.Revision, value: kv.Value}
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

// epochNow returns the present bucket's epoch.
func (t *keyTable) epochNow() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.epoch
}

// read records a message that was read from the bucket of an epoch. It returns false if that is
// not the present one.
func (t *keyTable) read(m messageID, epoch int) (isPresent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if epoch != t.epoch {
		return false
	}
	t.newest = max(t.newest, m.revision)
	if m.revision > t.expiring[m.key].revision {
		delete(t.expiring, m.key)
		if !m.expires.IsZero() {
			t.expiring[m.key] = m
		}
	}
	if last := len(t.lastMessages) - 1; last >= 0 && m.revision <= t.lastMessages[last].revision {
		return true // another reader is further
	}
	t.lastMessages = slices.DeleteFunc(
		t.lastMessages, func(other messageID) bool { return other.key == m.key })
	if len(t.lastMessages) == keptMessages {
		t.lastMessages = slices.Delete(t.lastMessages, 0, 1)
	}
	t.lastMessages = append(t.lastMessages, m)
	return true
}

// messagesUpTo returns the last messages up to a revision, the newest first.
func (t *keyTable) messagesUpTo(revision uint64) []messageID {
	t.mu.Lock()
	defer t.mu.Unlock()
	messages := slices.Clone(t.lastMessages)
	slices.Reverse(messages)
	return slices.DeleteFunc(messages, func(m messageID) bool { return m.revision > revision })
}

// expired returns some of the messages up to a revision that have expired.
func (t *keyTable) expired(revision uint64) (messages []messageID) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.expiring {
		if m.revision <= revision && m.expires.Before(now) {
			messages = append(messages, m)
		}
		if len(messages) == comparedExpired {
			break
		}
	}
	return messages
}

// removed records that an expired message has left no older one, or that a later one will be read.
func (t *keyTable) removed(m messageID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.expiring[m.key] == m {
		delete(t.expiring, m.key)
	}
}

// show records that a reader may have a revision of the bucket of an epoch. It returns false if that
// is not the present one.
func (t *keyTable) show(revision uint64, epoch int) (isPresent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if epoch != t.epoch {
		return false
	}
	t.showLocked(revision)
	return true
}

func (t *keyTable) showLocked(revision uint64) {
	if revision > t.retired {
		return
	}
	if len(t.shown) == keptShown {
		clear(t.shown) // the readers list
	}
	t.shown[revision] = true
}

// isShown returns whether a reader may have a revision of the present bucket.
func (t *keyTable) isShown(revision uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return revision > t.retired || t.shown[revision]
}

// newestSeen returns the highest revision that a response or a message has shown.
func (t *keyTable) newestSeen() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.newest
}

// sawBucket records a bucket's creation time and newest revision, and returns its epoch. before is
// newestSeen at the time of the request. If the bucket was created again or restored from an older
// copy, the table forgets all keys.
func (t *keyTable) sawBucket(created time.Time, newest, before uint64) (epoch int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	another := !t.created.IsZero() && !t.created.Equal(created)
	if another || newest < before {
		t.forgetLocked()
	}
	t.created = created
	t.newest = max(t.newest, newest)
	return t.epoch
}

// forget forgets the bucket: the next one is another.
func (t *keyTable) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forgetLocked()
}

func (t *keyTable) forgetLocked() {
	clear(t.live)
	clear(t.dead)
	t.order = nil
	t.complete = false
	t.evicted = 0
	t.lastMessages = nil
	clear(t.expiring)
	t.epoch++
	t.retired = max(t.retired, t.newest)
	clear(t.shown)
	t.newest = 0
}
