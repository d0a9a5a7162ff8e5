// Indexes that are added to a store with objects. How does a store compute the values of an index
// without blocking writers?

package cache

import (
	"fmt"
	"slices"

	"github.com/watchmirror/cache/internal/table"
)

// GetIndexers returns a copy of the index functions.
func (m *storage) GetIndexers() Indexers {
	set := m.indexers.Load()
	indexers := make(Indexers, len(set.names))
	for at, name := range set.names {
		indexers[name] = set.functions[at]
	}
	return indexers
}

// AddIndexers adds indexes. It computes the values of the stored objects without a lock. One pass is
// enough, because writes compute those of the objects that change meanwhile.
func (m *storage) AddIndexers(newIndexers Indexers) error {
	_, err := m.indexers.Load().with(newIndexers) // before any function is called
	if err != nil {
		return err
	}
	addition, err := (&indexerSet{}).with(newIndexers)
	if err != nil {
		return err
	}
	stored := m.announce(addition)
	defer m.withdraw(addition)
	for e := range stored.Each {
		addition.compute(e.Object())
		err := m.failure(addition, e)
		if err != nil {
			return err
		}
	}
	return m.commitAddition(addition, newIndexers)
}

// announce makes later writes compute the values of an addition. It returns the objects of earlier
// ones.
func (m *storage) announce(addition *indexerSet) *table.Snapshot {
	return m.setAdditions(func(all []*indexerSet) []*indexerSet { return append(all, addition) })
}

// withdraw ends what announce began.
func (m *storage) withdraw(addition *indexerSet) {
	m.setAdditions(func(all []*indexerSet) []*indexerSet {
		return slices.DeleteFunc(all, func(s *indexerSet) bool { return s == addition })
	})
	addition.computed.Clear() // a snapshot may refer to it
}

// setAdditions changes the additions for which later writes compute values. It returns the objects
// of earlier writes.
func (m *storage) setAdditions(change func([]*indexerSet) []*indexerSet) *table.Snapshot {
	m.writing.Lock()
	defer m.writing.Unlock()
	set := m.indexers.Load()
	additions := change(slices.Clone(set.additions))
	m.indexers.Store(&indexerSet{names: set.names, functions: set.functions, additions: additions})
	return m.table.Snapshot()
}

// failure returns the error of an addition for an object, if that is still stored.
func (m *storage) failure(addition *indexerSet, e table.Entry) error {
	err := addition.computedFor(e.Object()).err
	if err == nil {
		return nil
	}
	stored, _ := m.table.GetKey(e.Key())
	if !table.Same(stored, e.Object()) {
		return nil
	}
	return fmt.Errorf("no index was added, because of object %q: %w", e.Key().String(), err)
}

// commitAddition makes the indexes of an addition visible, unless one of them failed for an object
// that was written meanwhile.
func (m *storage) commitAddition(addition *indexerSet, newIndexers Indexers) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	after, err := m.indexers.Load().with(newIndexers) // another call may have added the name
	if err != nil {
		return err
	}
	for e := range m.table.Snapshot().Each {
		err := m.failure(addition, e)
		if err != nil {
			return err
		}
	}

	m.table.BeginStaged()
	m.table.AddIndexes(len(newIndexers), func(obj any) [][]string {
		return addition.computedFor(obj).values
	})
	m.table.Commit(nil)
	m.indexers.Store(after)
	return nil
}
