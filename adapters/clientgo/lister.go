package clientgo

import (
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
)

// GenericLister returns a lister of this library as a client-go GenericLister, as in the
// GenericInformer of a generated factory. For generated listers use Indexer. It panics if lister is
// nil.
func GenericLister(lister cache.GenericLister) toolscache.GenericLister {
	if isNil(lister) {
		panic("clientgo.GenericLister: the lister is nil")
	}
	return genericLister{lister}
}

type genericLister struct{ cache.GenericLister }

func (l genericLister) ByNamespace(namespace string) toolscache.GenericNamespaceLister {
	return l.GenericLister.ByNamespace(namespace)
}
