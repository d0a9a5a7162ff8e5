package calls

import (
	"errors"
	"fmt"

	theircache "k8s.io/client-go/tools/cache"

	ourcache "github.com/watchmirror/cache"
)

var (
	errLost  = errors.New("an object is missing")
	errCount = errors.New("another number of objects")
)

// store has the measured methods that also the store of another library has.
type store interface {
	Add(obj any) error
	Update(obj any) error
	GetByKey(key string) (item any, exists bool, err error)
	Replace(list []any, resourceVersion string) error
}

// indexer is client-go's or ours.
type indexer interface {
	store
	Delete(obj any) error
	ByIndex(indexName, indexedValue string) ([]any, error)
	List() []any
	ListKeys() []string
}

// storeOptions says how stores are made.
type storeOptions struct {
	// indexes are the functions, whose names are their numbers.
	indexes []indexFunction
	// ownKeys gives the store a key function of the program's, whose keys cannot be derived from
	// the object.
	ownKeys bool
}

type indexFunction = func(obj any) ([]string, error)

func indexName(number int) string { return fmt.Sprint(number) }

// makeStore makes an empty store.
type makeStore func(options storeOptions) store

func makeTheirs(options storeOptions) store { return theirIndexer(options) }

func makeOurs(options storeOptions) store { return ourIndexer(options) }

func theirIndexer(options storeOptions) indexer {
	indexers := theircache.Indexers{}
	for number, function := range options.indexes {
		indexers[indexName(number)] = function
	}
	if options.ownKeys {
		return theircache.NewIndexer(ownKey, indexers)
	}
	return theircache.NewIndexer(theircache.MetaNamespaceKeyFunc, indexers)
}

func ourIndexer(options storeOptions) indexer {
	indexers := ourcache.Indexers{}
	for number, function := range options.indexes {
		indexers[indexName(number)] = function
	}
	if options.ownKeys {
		return ourcache.NewIndexer(ownKey, indexers)
	}
	return ourcache.NewIndexer(ourcache.MetaNamespaceKeyFunc, indexers)
}

// ownKey is a program's own key function.
func ownKey(obj any) (string, error) { return keyOf(obj.(*object)) + "#", nil }

// begin returns the work of a round. The first call is of object first.
type begin func(in store, first int) round

// measureStores fills a store of another library and one of ours, and makes them take turns. Ours
// begins in the middle of the objects, so that neither side finds an object in the processor's
// caches that the other one read.
func (t turns) measureStores(
	theirs makeStore, options storeOptions, objects []*object, begin begin,
) (Result, error) {
	their := theirs(options)
	our := makeOurs(options)
	err := errors.Join(their.Replace(asList(objects), "1"), our.Replace(asList(objects), "1"))
	if err != nil {
		return Result{}, err
	}
	return t.measure(begin(their, 0), begin(our, len(objects)/2))
}

// repeated is a round of so many calls, whose numbers continue from round to round.
func repeated(calls, first int, call func(n int) error) round {
	next := first
	return round{work: func() error {
		for range calls {
			if err := call(next); err != nil {
				return err
			}
			next++
		}
		return nil
	}}
}

func checkCount(found, want int) error {
	if found != want {
		return fmt.Errorf("%d of %d: %w", found, want, errCount)
	}
	return nil
}
