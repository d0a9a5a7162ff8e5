package sides

import (
	"k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache/benchmarks/local"
)

func newTheirStore(keys Keys, indexes []local.Index) Store {
	indexers := cache.Indexers{}
	for _, index := range indexes {
		indexers[index.Name] = index.Untyped
	}
	return indexerStore{cache.NewIndexer(keys.keyFunc(cache.MetaNamespaceKeyFunc), indexers)}
}
