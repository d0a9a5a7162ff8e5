package sides

import "github.com/watchmirror/cache/benchmarks/local"

// indexer has the measured methods of an Indexer, client-go's and ours.
type indexer interface {
	Update(obj any) error
	GetByKey(key string) (item any, exists bool, err error)
	ByIndex(indexName, indexedValue string) ([]any, error)
	List() []any
	ListKeys() []string
	Replace(list []any, resourceVersion string) error
}

// indexerStore is an Indexer of either side. It has no way to look at objects but to list
// them.
type indexerStore struct{ indexer }

// keyFunc is that of a store, whose usual one is the side's own.
func (k Keys) keyFunc(usual func(any) (string, error)) func(any) (string, error) {
	if k == KeptKeys {
		return keptKeyOf
	}
	return usual
}

func (s indexerStore) Update(object *local.Small) error { return s.indexer.Update(object) }

func (s indexerStore) Get(key string) bool {
	_, exists, _ := s.GetByKey(key)
	return exists
}

func (s indexerStore) ByIndex(index, value string) (int, error) {
	found, err := s.indexer.ByIndex(index, value)
	return len(found), err
}

func (s indexerStore) List() int { return len(s.indexer.List()) }

func (s indexerStore) Iterate() int { return walk(s.indexer.List()) }

func (s indexerStore) ListKeys() int { return len(s.indexer.ListKeys()) }

func (s indexerStore) Replace(list []any) error { return s.indexer.Replace(list, "1") }

func (indexerStore) Close() {}

// walk looks at each object.
func walk(objects []any) int {
	n := 0
	for _, object := range objects {
		if object != nil {
			n++
		}
	}
	return n
}
