package cache

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/watchmirror/cache/internal/table"
)

// threadSafeMap is what all stores of this package are made of: a table, the functions of
// its indexes, and what is known besides of the objects in it and of those held back.
//
// Whoever reads objects takes no lock that is held for longer than a few changes take: see
// the package table. Whoever writes prepares that first, with all calls of user code (see
// staged), and then makes one write of it, however large: readers see all of it or nothing.
//
// Locks, in the order in which they are taken: writing, asideMu, the table's own, mu. Who
// begins a write to the table has asideMu already if he will need it: it may be held by
// somebody who copies much, and readers wait for the table meanwhile. User code is called
// under none of them.
type threadSafeMap struct {
	table *table.Table
	// indexers are read without a lock, and set by who holds writing.
	indexers atomic.Pointer[indexerSet]

	// writing is held by who writes, for as long as that takes. moves calls, under mu, what
	// that one has set as also: it is made once, and not for each write.
	writing sync.Mutex
	also    func()
	moves   func()
	// highest is of what was written: who holds writing reads and raises it.
	highest highestVersion
	// relisted, if not nil, are cells that a list has brought unchanged. Who holds writing
	// reads and changes them, and sees to it that they have keys before a number can become
	// another cell's: see beforeRenumbering.
	relisted *relistedCells

	// asideMu is taken by who writes, if anything is or will be aside, until the table shows
	// what was written; and by who asks what is held back, or for a receipt. Who reads
	// objects does not take it.
	asideMu sync.RWMutex
	held    quarantine
	// receipts are what was received of objects that do not say so themselves, because a
	// transform has been at them, by key: of all others it is read off the object. They
	// change with the table: under asideMu the two are of one moment.
	receipts ebbing[Received]

	// mu is held while versions are read or moved: for a few of them, and for all views'
	// only where those cannot be compared. See viewVersions.
	mu sync.RWMutex
	// whole is the scope of everything; mu guards those of views, too.
	whole scope
	// writes counts the batches that were applied. Who is the only one to apply any may
	// read it without the lock.
	writes uint64
	// version is that of all of it; the owner's, where there are views.
	version func() string

	// gauge shows the version, if there is one.
	gauge atomic.Pointer[versionGauge]

	// quarantined is what readers know of quarantined keys, here and on the way here.
	quarantined quarantineIndex

	// odd is true if anything is held back, or has a receipt: most often there is
	// nothing to look for. receipted is true if anything has a receipt, before the table
	// shows that.
	odd, receipted atomic.Bool
	// spare are *oneStaged.
	spare sync.Pool
}

func newThreadSafeMap(indexers Indexers, opts ...ThreadSafeStoreOption) *threadSafeMap {
	for name, function := range indexers {
		mustHave(function != nil, fmt.Sprintf("NewThreadSafeStore: index %q has no function", name))
	}
	m := &threadSafeMap{}
	m.held.readers = quarantineReaders{index: &m.quarantined, by: byStore}
	m.version = func() string { return m.whole.version }
	m.moves = func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.also()
	}
	m.table = table.New(len(indexers), m.label)
	m.indexers.Store(newIndexerSet(indexers))
	for _, option := range opts {
		option(m)
	}
	return m
}

// unlockAside unlocks asideMu, of which what is held back, or the receipts, may have changed.
func (m *threadSafeMap) unlockAside() {
	m.held.ebb()
	m.receipts.ebb()
	m.receipted.Store(len(m.receipts.all) > 0)
	m.odd.Store(m.held.holdsAny() || len(m.receipts.all) > 0)
	m.asideMu.Unlock()
}

// label is what a snapshot of the table says of itself.
func (m *threadSafeMap) label() table.Label {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return table.Label{Version: m.version(), Writes: m.writes}
}

// len is how many objects there are.
func (m *threadSafeMap) len() int { return m.table.Len() }

// mark is what the table keeps of what was received of an object: too few bits to tell what
// it was, and enough to tell whether it was something else.
func (m *threadSafeMap) mark(received Received) uint32 {
	return uint32(hashOfBoth(string(received.UID), received.ResourceVersion))
}

// hashOfBoth is a hash of two texts, of which one does not stand for the other.
func hashOfBoth(one, other string) uint64 {
	return bits.RotateLeft64(maphash.String(keySeed, one), 17) ^ maphash.String(keySeed, other)
}
