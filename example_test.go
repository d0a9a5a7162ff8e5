package cache_test

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// The README shows the body of this example.
func ExampleNew() {
	source := cachetest.NewSource(cachetest.Options{}) // or kubeapi.New(...), or your own
	defer source.Close()
	source.Apply(configMap("shop", "prices", "1"), configMap("shop", "stock", "7"))

	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
	})
	controller := cache.New(&cache.Config{
		ListerWatcher: source,
		Store:         indexer,
		Handler: cache.ResourceEventHandlerFuncs{
			DeleteFunc: func(obj any) { fmt.Println("gone:", name(obj)) },
		},
	})

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	stopped := make(chan struct{})
	go func() { defer close(stopped); controller.RunWithContext(ctx) }()
	<-controller.HasSyncedChecker().Done()

	inShop, _ := indexer.ByIndex(cache.NamespaceIndex, "shop")
	fmt.Println(len(inShop), "objects at version", controller.LastSyncResourceVersion())

	cancel()
	<-stopped
	// Output: 2 objects at version 2
}

func configMap(namespace, name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"namespace": namespace, "name": name},
		"data":       map[string]any{"value": value},
	}}
}

func name(obj any) string {
	name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return err.Error()
	}
	return name
}
