package clientgo

import (
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
// the indexers of client-go's informers do. It panics if indexer is nil.
func Indexer(indexer cache.Indexer) toolscache.Indexer {
	if isNil(indexer) {
		panic("clientgo.Indexer: the indexer is nil")
	}
	return storeWithIndexes{indexer}
}

// storeWithIndexes has the methods of ours, but for those that mention other types in
// client-go, and those that may be given a tombstone.
type storeWithIndexes struct{ cache.Indexer }

func (s storeWithIndexes) Get(obj any) (item any, exists bool, err error) {
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		return s.GetByKey(tombstone.Key)
	}
	return s.Indexer.Get(obj)
}

// Delete deletes by key, so that what is stored does as well as what is to be deleted, and
// unlike a tombstone it has that key by any key function.
func (s storeWithIndexes) Delete(obj any) error {
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		stored, exists, err := s.GetByKey(tombstone.Key)
		if err != nil || !exists {
			return err
		}
		obj = stored
	}
	return s.Indexer.Delete(obj)
}

func (s storeWithIndexes) GetIndexers() toolscache.Indexers {
	ours := s.Indexer.GetIndexers()
	theirs := make(toolscache.Indexers, len(ours))
	for name, function := range ours {
		theirs[name] = toolscache.IndexFunc(function)
	}
	return theirs
}

func (s storeWithIndexes) AddIndexers(indexers toolscache.Indexers) error {
	return s.Indexer.AddIndexers(indexersFrom(indexers))
}

// indexersFrom makes our index functions of client-go's. One that is nil stays nil, for
// ours to refuse by its name.
func indexersFrom(theirs toolscache.Indexers) cache.Indexers {
	ours := make(cache.Indexers, len(theirs))
	for name, function := range theirs {
		ours[name] = cache.IndexFunc(function)
	}
	return ours
}
