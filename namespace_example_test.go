package cache_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// A program that may read some namespaces, and not all, has a source for each. It
// begins to work with those that it may read, and says which it may not.
func ExampleConfig_namespaces() {
	server := cachetest.NewSource(cachetest.Options{})
	defer server.Close()
	server.Apply(configMap("shop", "prices", "1"), configMap("blog", "front", "hello"), configMap("bank", "vault", "?"))
	shut := cachetest.NewSource(cachetest.Options{}) // answers nothing but errors
	defer shut.Close()
	shut.FailLists(cachetest.Forever, cachetest.ErrConnectionRefused())
	shut.FailWatches(cachetest.Forever, cachetest.ErrConnectionRefused())

	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
	})
	controller := cache.New(&cache.Config{
		Namespaces: map[string]cache.ListerWatcher{
			"shop": server.Namespace("shop"),
			"blog": server.Namespace("blog"),
			"bank": shut.Namespace("bank"),
		},
		Store: indexer,
		ReflectorOptions: cache.ReflectorOptions{
			ErrorHandler: func(context.Context, *cache.Reflector, error) {}, // the status says it as well
		},
	})

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { controller.RunWithContext(ctx) })
	for _, namespace := range []string{"shop", "blog"} {
		synced, _ := cache.SyncedIn(controller, namespace)
		<-synced.Done()
	}
	fmt.Println(len(indexer.ListKeys()), "objects, all synced:", controller.HasSynced())
	status, _ := cache.StatusOf(controller)
	for _, one := range status.Namespaces {
		fmt.Printf("%s: synced %v at version %q\n", one.Namespace, one.Synced, one.AppliedVersion)
	}
	cancel()
	running.Wait()
	// Output:
	// 2 objects, all synced: false
	// bank: synced false at version ""
	// blog: synced true at version "3"
	// shop: synced true at version "3"
}

// A view feeds, and shows, one namespace of a store.
func ExampleInNamespace() {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	shop, blog := cache.InNamespace(indexer, "shop"), cache.InNamespace(indexer, "blog")
	fmt.Println(shop.Replace([]any{configMap("shop", "prices", "1")}, "10"))
	fmt.Println(blog.Replace([]any{configMap("blog", "front", "hello")}, "12"))
	fmt.Println(shop.Replace(nil, "14")) // the shop is closed, the blog is not
	fmt.Println(indexer.ListKeys(), indexer.LastStoreSyncResourceVersion())
	fmt.Println(shop.Add(configMap("blog", "back", "bye")))
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// [blog/front] 12
	// no key for *unstructured.Unstructured "blog/back": object of another namespace: key "blog/back" does not begin with "shop/"
}
