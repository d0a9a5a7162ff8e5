package clientgo

import (
	"errors"
	"sync/atomic"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
)

// Indexer returns an indexer of this library as a client-go Indexer, for example for the
// constructors of generated listers:
//
//	lister := corelisters.NewPodLister(clientgo.Indexer(indexer))
//
// Objects and indexes are shared, and indexes may be added on either side. Get and Delete accept
// client-go's DeletedFinalStateUnknown for an object, as client-go's indexers do. GetIndexers
// returns the same map until an index is added; it must not be changed. It panics if indexer is
// nil.
func Indexer(indexer cache.Indexer) toolscache.Indexer {
	if isNil(indexer) {
		panic("clientgo.Indexer: the indexer is nil")
	}
	return &storeWithIndexes{Indexer: indexer}
}

// storeWithIndexes replaces the methods whose types differ in client-go, and those that may receive
// a tombstone.
type storeWithIndexes struct {
	cache.Indexer
	// indexers is the last result of GetIndexers, or nil.
	indexers atomic.Pointer[toolscache.Indexers]
}

func (s *storeWithIndexes) Get(obj any) (item any, exists bool, err error) {
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		return s.GetByKey(tombstone.Key)
	}
	return s.Indexer.Get(obj)
}

// Delete deletes a tombstone's object by key: it passes the stored object on, which has that key by
// any key function.
func (s *storeWithIndexes) Delete(obj any) error {
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		stored, exists, err := s.GetByKey(tombstone.Key)
		if !exists {
			if errors.Is(err, cache.ErrQuarantined) {
				err = nil // nothing is stored
			}
			return err
		}
		obj = stored
	}
	return s.Indexer.Delete(obj)
}

// GetIndexers caches the map, since controller-runtime calls it for each list with a field
// selector. Indexes are never removed, so an equal number means equal indexes.
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

// Indexers returns client-go's index functions as this library's, for example for the options of
// NewInformerWithOptions. A nil function stays nil, and is then refused by name. It returns a new
// map, never nil.
func Indexers(indexers toolscache.Indexers) cache.Indexers {
	ours := make(cache.Indexers, len(indexers))
	for name, function := range indexers {
		ours[name] = cache.IndexFunc(function)
	}
	return ours
}
