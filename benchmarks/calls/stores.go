package calls

import (
	"fmt"

	theircache "k8s.io/client-go/tools/cache"

	ourcache "github.com/watchmirror/cache"
)

// store has the measured methods that also the stores of other libraries have.
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
	// ownKeys gives the store a key function of the program's, whose keys cannot be
	// derived from the object.
	ownKeys bool
}

type indexFunction = func(obj any) ([]string, error)

// makeStore makes an empty store.
type makeStore func(options storeOptions) (store, error)

func indexName(number int) string { return fmt.Sprint(number) }

func makeTheirs(options storeOptions) (store, error) { return theirIndexer(options), nil }

func makeOurs(options storeOptions) (store, error) { return ourIndexer(options), nil }

func theirIndexer(options storeOptions) indexer {
	indexers := theircache.Indexers{}
	for number, function := range options.indexes {
		indexers[indexName(number)] = function
	}
	key := theircache.KeyFunc(theircache.MetaNamespaceKeyFunc)
	if options.ownKeys {
		key = ownKey
	}
	return theircache.NewIndexer(key, indexers)
}

func ourIndexer(options storeOptions) indexer {
	indexers := ourcache.Indexers{}
	for number, function := range options.indexes {
		indexers[indexName(number)] = function
	}
	key := ourcache.KeyFunc(ourcache.MetaNamespaceKeyFunc)
	if options.ownKeys {
		key = ownKey
	}
	return ourcache.NewIndexer(key, indexers)
}

// ownKey is a program's own key function.
func ownKey(obj any) (string, error) { return keyOf(obj.(*object)) + "#", nil }

// begin fills a store and returns the work of a round. The first call is of object first.
type begin func(in store, first int) (round, error)

// byTurns measures a store of another library and one of ours, by turns of so many calls. Ours
// begins in the middle of the objects, so that neither side finds an object in the processor's
// caches that the other one read.
func byTurns(s Scale, theirs makeStore, options storeOptions, t turns, begin begin) (Result, error) {
	stores, err := makeBoth(theirs, options)
	if err != nil {
		return Result{}, err
	}
	var rounds [2]round
	for side, in := range stores {
		rounds[side], err = begin(in, side*s.Objects/2)
		if err != nil {
			return Result{}, err
		}
	}
	return t.measure(rounds[0], rounds[1])
}

// makeBoth makes an empty store of another library and one of ours.
func makeBoth(theirs makeStore, options storeOptions) ([2]store, error) {
	their, err := theirs(options)
	if err != nil {
		return [2]store{}, err
	}
	our, err := makeOurs(options)
	return [2]store{their, our}, err
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
