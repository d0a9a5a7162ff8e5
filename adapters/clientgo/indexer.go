package clientgo

import (
	"errors"
	"sync/atomic"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
)

// Indexer presents an indexer of this library as one of client-go's, for example to the
// constructors of generated listers:
//
//	lister := corelisters.NewPodLister(clientgo.Indexer(indexer))
//
// The objects are the same, and so are the indexes, whichever side adds them. Get and
// Delete take a DeletedFinalStateUnknown of client-go for the object that it stands for, as
// the indexers of client-go's informers do. The map that GetIndexers returns is the same
// until an index is added, and must not be changed. It panics if indexer is nil.
func Indexer(indexer cache.Indexer) toolscache.Indexer {
	if isNil(indexer) {
		panic("clientgo.Indexer: the indexer is nil")
	}
	return &storeWithIndexes{Indexer: indexer}
}

// storeWithIndexes has the methods of ours, but for those that mention other types in
// client-go, and those that may be given a tombstone.
type storeWithIndexes struct {
	cache.Indexer
	// indexers is what GetIndexers returned last, or nil.
	indexers atomic.Pointer[toolscache.Indexers]
}

func (s *storeWithIndexes) Get(obj any) (item any, exists bool, err error) {
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		return s.GetByKey(tombstone.Key)
	}
	return s.Indexer.Get(obj)
}

// Delete deletes by key, so that the stored object does as well as the one to be deleted, and
// unlike a tombstone it has that key by any key function.
func (s *storeWithIndexes) Delete(obj any) error {
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		stored, exists, err := s.GetByKey(tombstone.Key)
		if !exists {
			if errors.Is(err, cache.ErrQuarantined) {
				err = nil // there is nothing to delete
			}
			return err
		}
		obj = stored
	}
	return s.Indexer.Delete(obj)
}

// GetIndexers keeps the map, as controller-runtime asks for it with each list that has a
// field selector. Indexes are only ever added, on either side: as many are the same.
func (s *storeWithIndexes) GetIndexers() toolscache.Indexers {
	ours := s.Indexer.GetIndexers()
	if kept := s.indexers.Load(); kept != nil && len(*kept) == len(ours) {
		return *kept
	}
	theirs := make(toolscache.Indexers, len(ours))
	for name, function := range ours {
		theirs[name] = toolscache.IndexFunc(function)
	}
	s.indexers.Store(&theirs)
	return theirs
}

func (s *storeWithIndexes) AddIndexers(indexers toolscache.Indexers) error {
	return s.Indexer.AddIndexers(Indexers(indexers))
}

// Indexers makes index functions of this library of client-go's, for example for the
// options of NewInformerWithOptions. The functions are the same; one that is nil stays
// nil, which is then refused by its name. The map is a new one, never nil.
func Indexers(indexers toolscache.Indexers) cache.Indexers {
	ours := make(cache.Indexers, len(indexers))
	for name, function := range indexers {
		ours[name] = cache.IndexFunc(function)
	}
	return ours
}
