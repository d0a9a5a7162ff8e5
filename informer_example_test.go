package cache_test

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// Two parts of a program want the same objects: there is one informer.
func ExampleInformerOf() {
	source := cachetest.NewSource(cachetest.Options{})
	defer source.Close()
	source.Apply(configMap("shop", "prices", "1"))

	var set cache.InformerSet
	one, releaseOne, _ := cache.InformerOf(&set, source, cache.InformerConfig[*unstructured.Unstructured]{})
	two, releaseTwo, _ := cache.InformerOf(&set, source, cache.InformerConfig[*unstructured.Unstructured]{})
	fmt.Println("the same:", one == two)

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { set.Run(ctx) })
	if err := set.WaitSynced(ctx); err != nil {
		fmt.Println(err) // which have not synced, and why
	}
	fmt.Println(one.Len(), "object")

	releaseOne()
	fmt.Println("informers:", len(set.Status()))
	releaseTwo() // nobody wants it any more: it stops
	fmt.Println("informers:", len(set.Status()))
	cancel()
	running.Wait()
	// Output:
	// the same: true
	// 1 object
	// informers: 1
	// informers: 0
}

// A handler that only notes what to look at need not be told of every change.
func ExampleHandlerOptions() {
	source := cachetest.NewSource(cachetest.Options{})
	defer source.Close()
	informer := cache.NewInformerFor(source, cache.InformerConfig[*unstructured.Unstructured]{})
	look := make(chan string, 1)
	handled, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[*unstructured.Unstructured]{
		AddFunc: func(object *unstructured.Unstructured) { look <- object.GetName() },
	}, cache.HandlerOptions{Name: "notes", Delivery: cache.Coalesced, SurvivePanics: true})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { informer.Run(ctx) })
	_ = cache.WaitForDone(ctx, handled.HasSyncedChecker())
	source.Apply(configMap("shop", "prices", "1"))
	fmt.Println("look at", <-look)
	fmt.Println(informer.Status().Handlers[0].Name, "is", informer.Status().Handlers[0].Delivery)
	_ = informer.ShutDownHandler(handled) // its last call has returned now
	cancel()
	running.Wait()
	// Output:
	// look at prices
	// notes is coalesced
}

func ExampleTypedLister() {
	source := cachetest.NewSource(cachetest.Options{})
	defer source.Close()
	source.Apply(configMap("shop", "prices", "1"), configMap("shop", "stock", "7"), configMap("lab", "prices", "1"))
	informer := cache.NewInformerFor(source, cache.InformerConfig[*unstructured.Unstructured]{
		Indexes: cache.TypedIndexers[*unstructured.Unstructured]{
			"value": func(object *unstructured.Unstructured) ([]string, error) {
				value, _, err := unstructured.NestedString(object.Object, "data", "value")
				return []string{value}, err
			},
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { informer.Run(ctx) })
	_ = informer.WaitSynced(ctx)

	_, err := informer.ByNamespace("shop").Get("orders")
	fmt.Println(err)
	all, _ := informer.ByNamespace("shop").List(labels.Everything())
	fmt.Println(len(all), "in shop")
	ones, _ := informer.ByIndex("value", "1")
	fmt.Println(len(ones), "with value 1")
	inShop, _ := informer.ByNamespace("shop").AllByIndex("value", "1")
	for key, object := range inShop {
		fmt.Println(key, object.GetName())
	}
	cancel()
	running.Wait()
	// Output:
	// unstructureds "orders" not found
	// 2 in shop
	// 2 with value 1
	// shop/prices prices
}
