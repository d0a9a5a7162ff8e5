package calls

import (
	"fmt"

	theircache "k8s.io/client-go/tools/cache"

	ourcache "github.com/watchmirror/cache"
)

// store has the measured methods of an Indexer, client-go's and ours.
type store interface {
	Add(obj any) error
	Update(obj any) error
	Delete(obj any) error
	GetByKey(key string) (item any, exists bool, err error)
	ByIndex(indexName, indexedValue string) ([]any, error)
	Replace(list []any, resourceVersion string) error
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
type makeStore func(options storeOptions) store

func indexName(number int) string { return fmt.Sprint(number) }

func makeTheirs(options storeOptions) store {
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

func makeOurs(options storeOptions) store {
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

// both makes the round of each side. The second side begins in the middle of the objects, so
// that neither side finds an object in the processor's caches that the other one read.
func both(s Scale, options storeOptions, begin begin) (theirs, ours round, err error) {
	theirs, err = begin(makeTheirs(options), 0)
	if err != nil {
		return round{}, round{}, err
	}
	ours, err = begin(makeOurs(options), s.Objects/2)
	return theirs, ours, err
}

// byTurns measures both sides' stores by turns of so many calls.
func byTurns(s Scale, calls, rounds int, options storeOptions, begin begin) (Result, error) {
	theirs, ours, err := both(s, options, begin)
	if err != nil {
		return Result{}, err
	}
	return turns{rounds: rounds, calls: calls}.measure(theirs, ours)
}
