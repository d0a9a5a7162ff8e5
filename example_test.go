package cache_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// The README shows this function: TestTheREADMEShowsTheExample.
func mirror(source cache.ListerWatcher) error {
	informer := cache.NewInformerFor(source, cache.InformerConfig[*unstructured.Unstructured]{})
	handler, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[*unstructured.Unstructured]{
		DeleteFunc: func(deleted cache.DeletedObject[*unstructured.Unstructured]) {
			fmt.Println("deleted:", deleted.GetKey(), "final state known:", deleted.Exact())
		},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { informer.Run(ctx) })
	if err := informer.WaitSynced(ctx); err != nil { // until the store has the first list
		return err
	}
	if err := cache.WaitForDone(ctx, handler.HasSyncedChecker()); err != nil { // until the handler has processed it
		return err
	}
	for key, object := range informer.ByNamespace("shop").All() {
		fmt.Println(key, "is a", object.GetKind())
	}
	fmt.Println(informer.Len(), "objects at version", informer.LastSyncResourceVersion())
	return nil
}

func ExampleNewInformerFor() {
	source := cachetest.NewSource(cachetest.Options{}) // or kubeapi.New(...), or your own
	defer source.Close()
	source.Apply(configMap("shop", "prices", "1"), configMap("shop", "stock", "7"))
	if err := mirror(source); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// shop/prices is a ConfigMap
	// shop/stock is a ConfigMap
	// 2 objects at version 2
}

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
			DeleteFunc: func(obj any) { fmt.Println("deleted:", name(obj)) },
		},
	})

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { controller.RunWithContext(ctx) })
	<-controller.HasSyncedChecker().Done()

	inShop, _ := indexer.ByIndex(cache.NamespaceIndex, "shop")
	fmt.Println(len(inShop), "objects at version", controller.LastSyncResourceVersion())
	cancel()
	running.Wait()
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

// The README's example is the function mirror, line by line, and at most 30 lines.
func TestTheREADMEShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	code, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, shown, found := strings.Cut(string(readme), "```go\n")
	require.True(t, found)
	shown, _, _ = strings.Cut(shown, "```")
	_, body, found := strings.Cut(string(code), "func mirror(")
	require.True(t, found)
	body, _, _ = strings.Cut(body, "\n}\n")
	assert.Equal(t, "func mirror("+body+"\n}\n", shown)
	assert.LessOrEqual(t, strings.Count(shown, "\n"), 30)
}
