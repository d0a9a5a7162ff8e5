package cache

import (
	"slices"

	"github.com/watchmirror/cache/internal/table"
)

// sighting is what there is under a key, and what was received of it.
type sighting struct {
	table.Found
	exists   bool
	received Received
	// known is false if what was received cannot be told any more: a reader has changed
	// what the object says of itself. received is then empty.
	known bool
}

// sight looks at what is under a key. It calls the object's methods: the caller holds no
// lock of the store's.
func (m *threadSafeMap) sight(key table.Key) sighting {
	if m.receipted.Load() {
		return m.sightAside(key)
	}
	found, exists := m.table.Get(key)
	if !exists {
		return sighting{}
	}
	says, _ := readMetadata(found.Object)
	return m.sightOf(key, &found, &says)
}

// sightOf is sight where the table has been asked already, and the object, which says so of
// itself. That counts if it is what it said when it was received, whatever has become of it
// since; but where there are receipts it may be that of this very state that counts.
func (m *threadSafeMap) sightOf(key table.Key, found *table.Found, says *metadata) sighting {
	if !m.receipted.Load() && m.mark(says.received) == found.Mark {
		return sighting{*found, true, says.received, true}
	}
	return m.sightAside(key)
}

// sightAside is sight where there may be a receipt. What the table had before may have got
// another one since: so it is asked again, at a moment at which both are of one state.
func (m *threadSafeMap) sightAside(key table.Key) sighting {
	seen := m.withReceipt(key)
	if !seen.exists || seen.known {
		return seen
	}
	if received := receivedOf(seen.Object); m.mark(received) == seen.Mark {
		seen.received, seen.known = received, true
	}
	return seen
}

// withReceipt is what the table has and what its receipt says; known is true if there is
// one.
func (m *threadSafeMap) withReceipt(key table.Key) (seen sighting) {
	m.asideMu.RLock()
	defer m.asideMu.RUnlock()
	if seen.Found, seen.exists = m.table.Get(key); seen.exists {
		seen.received, seen.known = m.receipts.all[key.String()]
	}
	return seen
}

// of says whether found is what was seen. The mark tells a state from another one that was
// stored in the same object.
func (s *sighting) of(found table.Found) bool {
	return s.exists && s.Mark == found.Mark && table.Same(s.Object, found.Object)
}

// lastReceived is what was last received of what is under a key.
//
// Where that cannot be told any more, it was no later than the applied version, which the
// source had reached by then: so that version stands in for the one that is not known, and
// an event which is older than that does not go unnoticed. (Of one above which the store has
// received nothing it is known that it is not older: see directAhead.) The UID is empty: nobody
// is told that the object was made anew.
func (k *keyedStore) lastReceived(key table.Key) (received Received, exists bool) {
	seen := k.storage.sight(key)
	if seen.exists && !seen.known {
		return k.receivedByNow(), true
	}
	return seen.received, seen.exists
}

// receivedByNow stands in for what cannot be known. See lastReceived.
func (k *keyedStore) receivedByNow() Received {
	return Received{ResourceVersion: k.storage.versionOf(k.scope)}
}

// before is what was received of what the write has found under the key of all[at], which
// is staged along with the others and was preceded by them. seen is what was there when it
// was prepared, without a lock. known is false if somebody else has written since, or if it
// was not known then.
func (w storeWrite) before(found table.Found, seen *sighting, all *stagedBefore, at int) (received Received, known bool) {
	key := all.staged[at].key
	if w.aside && len(w.m.receipts.all) > 0 {
		if receipt, given := w.m.receipts.all[key.String()]; given {
			return receipt, true
		}
	}
	if seen.of(found) {
		return seen.received, seen.known
	}
	if earlier := all.of(at); earlier != nil {
		return earlier.received, true
	}
	return Received{}, false
}

// stagedBefore finds among the writes of one batch the one that a later one of the same key
// comes after.
type stagedBefore struct {
	staged []*staged
	// byKey has the last of each key among the first so many of them: it is made when it is
	// first needed, which it is where one key comes more than once.
	byKey map[table.Key]*staged
	upTo  int
}

// of is what has put there what is under the key of staged[at]; nil if none of them has.
func (b *stagedBefore) of(at int) *staged {
	if at <= directly {
		for _, s := range slices.Backward(b.staged[:at]) {
			if s.puts() && s.key == b.staged[at].key {
				return s
			}
		}
		return nil
	}
	if b.byKey == nil {
		b.byKey = make(map[table.Key]*staged, len(b.staged))
	}
	for ; b.upTo < at; b.upTo++ {
		if s := b.staged[b.upTo]; s.puts() {
			b.byKey[s.key] = s
		}
	}
	return b.byKey[b.staged[at].key]
}

// puts says whether a write, once it has been made, has left its object there.
func (s *staged) puts() bool { return s.present && s.err == nil }
