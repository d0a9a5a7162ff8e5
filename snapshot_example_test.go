package cache_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
)

// What is computed from several answers is right only if they are of one moment: a
// snapshot's are, however much is written in the meantime.
func ExampleSnapshotOf() {
	type Pod = metav1.PartialObjectMetadata
	pod := func(namespace, name, version string) any {
		return &Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: version}}
	}
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
	})
	list := []any{pod("shop", "prices-1", "4"), pod("shop", "prices-2", "6"), pod("blog", "front", "7")}
	if err := store.Replace(list, "7"); err != nil {
		fmt.Println(err)
	}

	snapshot, _ := cache.SnapshotOf(store)
	if err := store.Delete(pod("shop", "prices-1", "8")); err != nil {
		fmt.Println(err)
	}
	inShop, err := snapshot.ByIndex(cache.NamespaceIndex, "shop")
	fmt.Println(len(inShop), "of", snapshot.Len(), "are in the shop at version", snapshot.ResourceVersion(), err)
	_, exists := snapshot.Get("shop/prices-1")
	fmt.Println(exists, len(store.List()))
	// Output:
	// 2 of 3 are in the shop at version 7 <nil>
	// true 2
}
