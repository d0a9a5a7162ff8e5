package cache

import "fmt"

// TypedIndexFunc is an IndexFunc for objects of one type. What is said there holds here.
type TypedIndexFunc[T any] func(obj T) ([]string, error)

// TypedIndexers are typed index functions by the name of their index.
type TypedIndexers[T any] map[string]TypedIndexFunc[T]

// TypedIndexer is an Indexer that can be asked for objects of their type.
type TypedIndexer[T any] interface {
	Indexer

	// TypedIndex is Index, ByTypedIndex is ByIndex. They fail, too, if one of the
	// objects found is no T.
	TypedIndex(indexName string, obj T) ([]T, error)
	ByTypedIndex(indexName, indexedValue string) ([]T, error)
	// AddTypedIndexers is AddIndexers.
	AddTypedIndexers(newIndexers TypedIndexers[T]) error
}

// TypedIndexersToIndexers makes Indexers of typed index functions, as
// TypedIndexerFuncToIndexerFunc does of one.
func TypedIndexersToIndexers[T any](indexers TypedIndexers[T]) Indexers {
	untyped := make(Indexers, len(indexers))
	for name, function := range indexers {
		untyped[name] = TypedIndexerFuncToIndexerFunc(function)
	}
	return untyped
}

// TypedIndexerFuncToIndexerFunc makes an IndexFunc of a typed one. It fails for an object
// that is no T with an UnexpectedTypeError: a store does not take that object. Of nil it
// makes nil, which whoever is given it refuses.
func TypedIndexerFuncToIndexerFunc[T any](indexer TypedIndexFunc[T]) IndexFunc {
	if indexer == nil {
		return nil
	}
	return func(obj any) ([]string, error) {
		typed, ok := typedOf[T](obj)
		if !ok {
			return nil, misfitOf[T](obj)
		}
		return indexer(typed)
	}
}

// typedIndexer is an Indexer seen as one of Ts.
type typedIndexer[T any] struct{ Indexer }

func newTypedIndexer[T any](indexer Indexer) TypedIndexer[T] {
	return typedIndexer[T]{indexer}
}

func (i typedIndexer[T]) TypedIndex(indexName string, obj T) ([]T, error) {
	return typedObjects[T](i.Index(indexName, obj))
}

func (i typedIndexer[T]) ByTypedIndex(indexName, indexedValue string) ([]T, error) {
	return typedObjects[T](i.ByIndex(indexName, indexedValue))
}

func (i typedIndexer[T]) AddTypedIndexers(newIndexers TypedIndexers[T]) error {
	return i.AddIndexers(TypedIndexersToIndexers(newIndexers))
}

// typedObjects returns objects as Ts, or the error that came instead of them.
func typedObjects[T any](objects []any, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	typed := make([]T, 0, len(objects))
	for _, obj := range objects {
		one, ok := typedOf[T](obj)
		if !ok {
			return nil, fmt.Errorf("index holds %s: %w", describe(obj), misfitOf[T](obj))
		}
		typed = append(typed, one)
	}
	return typed, nil
}
