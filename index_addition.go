// Indexes that are added to a store with objects. How does a store compute the values of an index
// without blocking writers?

package cache

import (
	"fmt"
	"slices"

	"github.com/watchmirror/cache/internal/table"
)

// GetIndexers returns a copy of the index functions.
func (s *storage) GetIndexers() Indexers {
	set := s.indexers.Load()
	indexers := make(Indexers, len(set.names))
	for at, name := range set.names {
		indexers[name] = set.functions[at]
	}
	return indexers
}

// AddIndexers adds indexes. It computes the values of the stored objects without a lock. One pass
// is enough, because writes compute those of the objects that change meanwhile.
func (s *storage) AddIndexers(newIndexers Indexers) error {
	_, err := s.indexers.Load().with(newIndexers) // before any function is called
	if err != nil {
		return err
	}
	addition, err := (&indexerSet{}).with(newIndexers)
	if err != nil {
		return err
	}
	stored := s.announce(addition)
	defer s.withdraw(addition)
	for e := range stored.Each {
		addition.compute(e.Object())
		err := s.failure(addition, e)
		if err != nil {
			return err
		}
	}
	return s.commitAddition(addition, newIndexers)
}

// announce makes later writes compute the values of an addition. It returns the objects of earlier
// ones.
func (s *storage) announce(addition *indexerSet) *table.Snapshot {
	return s.setAdditions(func(all []*indexerSet) []*indexerSet { return append(all, addition) })
}

// withdraw ends what announce began.
func (s *storage) withdraw(addition *indexerSet) {
	s.setAdditions(func(all []*indexerSet) []*indexerSet {
		return slices.DeleteFunc(all, func(other *indexerSet) bool { return other == addition })
	})
	addition.computed.Clear() // a snapshot may refer to it
}

// setAdditions changes the additions for which later writes compute values. It returns the objects
// of earlier writes.
func (s *storage) setAdditions(change func([]*indexerSet) []*indexerSet) *table.Snapshot {
	s.writing.Lock()
	defer s.writing.Unlock()
	set := s.indexers.Load()
	additions := change(slices.Clone(set.additions))
	s.indexers.Store(&indexerSet{names: set.names, functions: set.functions, additions: additions})
	return s.table.Snapshot()
}

// failure returns the error of an addition for an object, if that is still stored.
func (s *storage) failure(addition *indexerSet, e table.Entry) error {
	err := addition.computedFor(e.Object()).err
	if err == nil {
		return nil
	}
	stored, _ := s.table.GetKey(e.Key())
	if !table.Same(stored, e.Object()) {
		return nil
	}
	return fmt.Errorf("no index was added, because of object %q: %w", e.Key().String(), err)
}

// commitAddition makes the indexes of an addition visible, unless one of them failed for an object
// that was written meanwhile.
func (s *storage) commitAddition(addition *indexerSet, newIndexers Indexers) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	after, err := s.indexers.Load().with(newIndexers) // another call may have added the name
	if err != nil {
		return err
	}
	for e := range s.table.Snapshot().Each {
		err := s.failure(addition, e)
		if err != nil {
			return err
		}
	}

	s.table.BeginStaged()
	s.table.AddIndexes(len(newIndexers), func(obj any) [][]string {
		return addition.computedFor(obj).values
	})
	s.table.Commit(nil)
	s.indexers.Store(after)
	return nil
}
