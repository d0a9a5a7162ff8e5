package cache_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
)

// An index needs a function that says under which values an object is found. It
// may be none, one or several.
func ExampleNewIndexer() {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		"app": func(obj any) ([]string, error) {
			app, labelled := obj.(metav1.Object).GetLabels()["app"]
			if !labelled {
				return nil, nil
			}
			return []string{app}, nil
		},
	})
	for _, meta := range []metav1.ObjectMeta{
		{Namespace: "shop", Name: "prices-1", Labels: map[string]string{"app": "prices"}},
		{Namespace: "shop", Name: "prices-2", Labels: map[string]string{"app": "prices"}},
		{Namespace: "blog", Name: "front"},
	} {
		if err := indexer.Add(&metav1.PartialObjectMetadata{ObjectMeta: meta}); err != nil {
			fmt.Println(err)
		}
	}

	keys, err := indexer.IndexKeys("app", "prices")
	fmt.Println(keys, err)
	inBlog, err := indexer.ByIndex(cache.NamespaceIndex, "blog")
	fmt.Println(len(inBlog), err)
	_, err = indexer.ByIndex("colour", "red")
	fmt.Println(err)
	// Output:
	// [shop/prices-1 shop/prices-2] <nil>
	// 1 <nil>
	// Index with name colour does not exist
}
