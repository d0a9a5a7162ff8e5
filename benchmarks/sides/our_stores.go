package sides

import (
	"context"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/benchmarks/local"
)

func newOurStore(keys Keys, indexes []local.Index) Store {
	indexers := cache.Indexers{}
	for _, index := range indexes {
		indexers[index.Name] = index.Untyped
	}
	return ourIndexer{indexerStore{cache.NewIndexer(keys.keyFunc(cache.MetaNamespaceKeyFunc), indexers)}}
}

// ourIndexer is an Indexer of ours: a snapshot is looked through without being copied.
type ourIndexer struct{ indexerStore }

func (s ourIndexer) Iterate() int {
	n := 0
	for object := range s.indexer.(cache.Snapshotter).Snapshot().Values() {
		if object != nil {
			n++
		}
	}
	return n
}

// typedStore is what a typed informer's objects are read by.
type typedStore struct {
	informer *cache.Informer[*local.Small]
	stop     context.CancelFunc
	done     chan struct{}
	failed   error // once done
}

func newTypedStore(ctx context.Context, keys Keys, indexes []local.Index, objects int) (Store, error) {
	config := cache.InformerConfig[*local.Small]{Indexes: cache.TypedIndexers[*local.Small]{}}
	for _, index := range indexes {
		if index.Name != cache.NamespaceIndex { // there by itself
			config.Indexes[index.Name] = index.Of
		}
	}
	if keys == KeptKeys {
		config.KeyFunction = keptKeyOf
	}
	s := &typedStore{informer: cache.NewTypedInformer(local.NewSmallSource(objects), config), done: make(chan struct{})}
	ctx, s.stop = context.WithCancel(ctx)
	go func() {
		defer close(s.done)
		s.failed = s.informer.Run(ctx)
	}()
	if err := s.informer.WaitSynced(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (*typedStore) Update(*local.Small) error { return errReadOnly }

func (s *typedStore) Get(key string) bool {
	_, exists := s.informer.Lookup(key)
	return exists
}

func (s *typedStore) ByIndex(index, value string) (int, error) {
	found, err := s.informer.ByIndex(index, value)
	return len(found), err
}

func (s *typedStore) List() int {
	found, _ := s.informer.List(nil) // its error is always nil
	return len(found)
}

func (s *typedStore) Iterate() int {
	n := 0
	for object := range s.informer.Values() {
		if object != nil {
			n++
		}
	}
	return n
}

func (s *typedStore) ListKeys() int { return len(s.informer.Shared().GetStore().ListKeys()) }

func (*typedStore) Replace([]any) error { return errReadOnly }

func (s *typedStore) Close() {
	s.stop()
	<-s.done
}
