package simple

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
	Replace(list []any, resourceVersion string) error
	List() []any
}

type indexFunction = func(obj any) ([]string, error)

// makeStore makes an empty store with index functions.
type makeStore func(functions []indexFunction) store

func makeTheirs(functions []indexFunction) store {
	indexers := theircache.Indexers{}
	for i, function := range functions {
		indexers[fmt.Sprint(i)] = function
	}
	return theircache.NewIndexer(theircache.MetaNamespaceKeyFunc, indexers)
}

func makeOurs(functions []indexFunction) store {
	indexers := ourcache.Indexers{}
	for i, function := range functions {
		indexers[fmt.Sprint(i)] = function
	}
	return ourcache.NewIndexer(ourcache.MetaNamespaceKeyFunc, indexers)
}
