package cache

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache/internal/table"
)

// directAhead is what is there of some events' objects, looked at before any of them is
// prepared: so the memory that has to be read of each is waited for together.
type directAhead struct {
	// keys are those that were looked for, if any were: those of a function of the user's are
	// not known so soon.
	looked bool
	keys   []table.Key
	// changes is what the table said before anything was looked for.
	changes uint64
	there   []table.Found
	// uids are what the objects there say of themselves, and said is all of it, of those
	// that are not known to be older. follows says which are.
	uids    []types.UID
	said    []metadata
	follows []bool
}

func newDirectAhead(places int) directAhead {
	return directAhead{
		keys: make([]table.Key, places), there: make([]table.Found, places), uids: make([]types.UID, places),
		said: make([]metadata, places), follows: make([]bool, places),
	}
}

// look looks at what a store has of some events' objects, where those say their keys.
func (l *directAhead) look(store *keyedStore, events []event) {
	if l.looked = store.named; !l.looked {
		return
	}
	for i := range events {
		if says := events[i].says; says.name != "" {
			l.keys[i] = says.named()
		}
	}
	l.changes = store.storage.table.Changes()
	there := l.there[:len(events)]
	if len(events) == 1 {
		there[0], _ = store.storage.table.Get(l.keys[0])
	} else {
		store.storage.table.GetAll(l.keys[:len(events)], there)
	}
	readUIDs(l.uids[:len(events)], func(i int) any { return there[i].Object })
	// Afterwards, so that it is not below what was found.
	if !l.follow(store.storage.highestVersion(), events) {
		readTogether(l.said[:len(events)], func(i int) any {
			if l.follows[i] {
				return nil
			}
			return there[i].Object
		})
	}
}

// follow finds out which of the events are of the objects that were found, and not older: of
// what was found nothing is above highest. It says whether all are.
func (l *directAhead) follow(highest string, events []event) (all bool) {
	all = true
	for i := range events {
		is := events[i].says.received
		l.follows[i] = !recreated(Received{UID: l.uids[i]}, is) && !sortsBefore(is.ResourceVersion, highest)
		all = all && l.follows[i]
	}
	return all
}

// has says whether it has looked for an event's key.
func (l *directAhead) has(e *event) bool { return l.looked && e.says.name != "" }

// sight is what was there under the key of the event at a place, for which it has looked. If
// the event follows that, nothing but its UID counts of what was received of it, and nothing
// else is in the sighting.
func (l *directAhead) sight(m *threadSafeMap, at int, seen *sighting) (follows bool) {
	there := &l.there[at]
	if there.Object == nil {
		return false
	}
	if l.follows[at] && !m.receipted.Load() {
		seen.Found, seen.exists, seen.received.UID, seen.known = *there, true, l.uids[at], true
		return true
	}
	if l.said[at].readable {
		*seen = m.sightOf(l.keys[at], there, &l.said[at])
	} else {
		*seen = m.sight(l.keys[at])
	}
	return false
}

func (l *directAhead) clear(n int) {
	clear(l.keys[:n])
	clear(l.there[:n])
	clear(l.uids[:n])
	clear(l.said[:n])
}
