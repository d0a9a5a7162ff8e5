package cache

import (
	"testing"

	"github.com/watchmirror/cache/cachetest"
)

// The conformance suite for stores, run on those of this package.

func TestStoresKeepThePromisesOfAStore(t *testing.T) {
	for name, makeStore := range map[string]func() cachetest.ReflectorStore{
		"NewStore":   func() cachetest.ReflectorStore { return NewStore(MetaNamespaceKeyFunc) },
		"NewIndexer": func() cachetest.ReflectorStore { return NewIndexer(MetaNamespaceKeyFunc, nil) },
		"InNamespace": func() cachetest.ReflectorStore {
			return InNamespace(NewStore(MetaNamespaceKeyFunc), cachetest.StoreNamespace)
		},
		"transforming": func() cachetest.ReflectorStore {
			same := func(obj any) (any, error) { return obj, nil }
			return NewStore(MetaNamespaceKeyFunc, WithTransformer(same))
		},
		"NewThreadSafeStore": func() cachetest.ReflectorStore {
			return keyedByCaller{NewThreadSafeStore(Indexers{}, nil)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cachetest.TestStore(t, cachetest.StoreConfig{
				New:           func(testing.TB) cachetest.ReflectorStore { return makeStore() },
				NoIndexErrors: name == "NewThreadSafeStore", // its writing methods return nothing
			})
		})
	}
}

// keyedByCaller makes the keys for a ThreadSafeStore, as its users do.
type keyedByCaller struct{ ThreadSafeStore }

func (k keyedByCaller) Add(obj any) error { return k.Update(obj) }

func (k keyedByCaller) Update(obj any) error {
	key, err := MetaNamespaceKeyFunc(obj)
	if err == nil {
		k.ThreadSafeStore.Update(key, obj)
	}
	return err
}

func (k keyedByCaller) Delete(obj any) error {
	key, err := MetaNamespaceKeyFunc(obj)
	if err == nil {
		k.ThreadSafeStore.Delete(key)
	}
	return err
}

func (k keyedByCaller) Replace(list []any, version string) error {
	items := make(map[string]any, len(list))
	for _, obj := range list {
		key, err := MetaNamespaceKeyFunc(obj)
		if err != nil {
			return err
		}
		items[key] = obj
	}
	k.ThreadSafeStore.Replace(items, version)
	return nil
}

func (k keyedByCaller) Get(obj any) (any, bool, error) {
	key, err := MetaNamespaceKeyFunc(obj)
	if err != nil {
		return nil, false, err
	}
	return k.GetByKey(key)
}

func (k keyedByCaller) GetByKey(key string) (any, bool, error) {
	obj, exists := k.ThreadSafeStore.Get(key)
	return obj, exists, nil
}

// A queue's content is what its consumer makes of it: here a store, into which all that
// is pending is popped.
func TestDeltaFIFOKeepsThePromisesOfAReflectorStore(t *testing.T) {
	cachetest.TestStore(t, cachetest.StoreConfig{
		New: func(testing.TB) cachetest.ReflectorStore {
			known := NewStore(MetaNamespaceKeyFunc)
			return &queueAndStore{known: known, DeltaFIFO: NewDeltaFIFOWithOptions(DeltaFIFOOptions{
				KnownObjects: known, EmitDeltaTypeReplaced: true,
			})}
		},
		Content: func(store cachetest.ReflectorStore) ([]any, error) { return store.(*queueAndStore).content() },
	})
}

type queueAndStore struct {
	*DeltaFIFO
	known Store
}

func (q *queueAndStore) content() ([]any, error) {
	for len(q.log.pendingKeys()) > 0 {
		if _, err := q.Pop(q.apply); err != nil {
			return nil, err
		}
	}
	return q.known.List(), nil
}

func (q *queueAndStore) apply(obj any, _ bool) error {
	for _, delta := range obj.(Deltas) {
		write := q.known.Update
		if delta.Type == Deleted {
			write = q.known.Delete
			if gone, ok := delta.Object.(DeletedFinalStateUnknown); ok {
				delta.Object = gone.Obj
			}
		}
		if err := write(delta.Object); err != nil {
			return err
		}
	}
	return nil
}
