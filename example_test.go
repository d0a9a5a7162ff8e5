package cache_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// mirror prints the objects of a source and ends.
func mirror(ctx context.Context, source cache.Source) error {
	pods := cache.NewTypedInformer(source, cache.InformerConfig[*unstructured.Unstructured]{})
	handler, err := pods.AddHandler(cache.TypedResourceEventHandlerFuncs[*unstructured.Unstructured]{
		AddFunc: func(pod *unstructured.Unstructured) { fmt.Println("added:", pod.GetName()) },
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- pods.Run(ctx) }()
	if err = pods.WaitSynced(ctx); err == nil { // else the error has the last failure
		// until the handler has processed the first list
		err = cache.WaitForDone(ctx, handler.HasSyncedChecker())
	}
	if err == nil {
		fmt.Println(pods.Len(), "objects at version", pods.ResourceVersion())
	}
	cancel()
	return errors.Join(err, <-ran)
}

func ExampleNewTypedInformer() {
	source := cachetest.NewSource(cachetest.Options{}) // or kubeapi.New(...), or your own
	defer source.Close()
	source.Apply(configMap("shop", "prices", "1"), configMap("shop", "stock", "7"))
	if err := mirror(context.Background(), source); err != nil {
		fmt.Println(err)
	}
	// Output:
	// added: prices
	// added: stock
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

func ExampleInformerSet() {
	source := cachetest.NewSource(cachetest.Options{})
	defer source.Close()
	source.Apply(configMap("shop", "prices", "1"))
	config := cache.InformerConfig[*unstructured.Unstructured]{}
	shop := cache.NewTypedInformer(source.Namespace("shop"), config)
	lab := cache.NewTypedInformer(source.Namespace("lab"), config)

	var set cache.InformerSet
	if err := set.Add(shop, lab); err != nil {
		fmt.Println(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { set.Run(ctx) })
	if err := set.WaitSynced(ctx); err != nil {
		fmt.Println(err) // which have not synced, and why
	}
	fmt.Println(len(set.Status()), "informers,", shop.Len()+lab.Len(), "object")
	cancel()
	running.Wait()
	// Output:
	// 2 informers, 1 object
}

// A handler that only notes what to look at does not need every change.
func ExampleHandlerOptions() {
	source := cachetest.NewSource(cachetest.Options{})
	defer source.Close()
	informer := cache.NewTypedInformer(source, cache.InformerConfig[*unstructured.Unstructured]{})
	look := make(chan string, 1)
	handled, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[*unstructured.Unstructured]{
		AddFunc: func(object *unstructured.Unstructured) { look <- object.GetName() },
	}, cache.HandlerOptions{Name: "notes", Delivery: cache.Coalesced, RecoverPanics: true})
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

func ExampleReader() {
	source := cachetest.NewSource(cachetest.Options{})
	defer source.Close()
	source.Apply(
		configMap("shop", "prices", "1"),
		configMap("shop", "stock", "7"),
		configMap("lab", "prices", "1"),
	)
	informer := cache.NewTypedInformer(source, cache.InformerConfig[*unstructured.Unstructured]{
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

// Reads of one snapshot agree, whatever is written meanwhile.
func ExampleReader_Snapshot() {
	type Pod = metav1.PartialObjectMetadata
	pod := func(name, app string) *Pod {
		return &Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default",
			Name:      name,
			Labels:    map[string]string{"app": app},
		}}
	}
	source := cachetest.NewSourceOf[*Pod]()
	defer source.Close()
	source.Apply(pod("web-1", "shop"), pod("web-2", "shop"), pod("front", "blog"))
	pods := cache.NewTypedInformer(source, cache.InformerConfig[*Pod]{
		Indexes: cache.TypedIndexers[*Pod]{
			"app": func(pod *Pod) ([]string, error) { return []string{pod.Labels["app"]}, nil },
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { pods.Run(ctx) })
	_ = pods.WaitSynced(ctx)

	count := func() error {
		now := pods.Snapshot() // the reads of a snapshot agree
		shop, err := now.ByIndex("app", "shop")
		if err != nil {
			return err
		}
		fmt.Println(len(shop), "of", now.Len(), "pods at version", now.ResourceVersion())
		return nil
	}
	before := pods.Snapshot()
	first := count()
	source.Apply(pod("web-3", "shop"))
	fresh := pods.Fresh(ctx) // waits until the store has what was just written
	fmt.Println(errors.Join(first, fresh, count()), before.Len())
	cancel()
	running.Wait()
	// Output:
	// 2 of 3 pods at version 3
	// 3 of 4 pods at version 4
	// <nil> 3
}

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

// A result of several reads is right only if they are consistent: a
// snapshot's are, however much is written in the meantime.
func ExampleSnapshotter() {
	type Pod = metav1.PartialObjectMetadata
	pod := func(namespace, name, version string) any {
		return &Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace:       namespace,
			Name:            name,
			ResourceVersion: version,
		}}
	}
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
	})
	list := []any{
		pod("shop", "prices-1", "4"),
		pod("shop", "prices-2", "6"),
		pod("blog", "front", "7"),
	}
	if err := store.Replace(list, "7"); err != nil {
		fmt.Println(err)
	}

	snapshot := store.(cache.Snapshotter).Snapshot()
	if err := store.Delete(pod("shop", "prices-1", "8")); err != nil {
		fmt.Println(err)
	}
	inShop, err := snapshot.ByIndex(cache.NamespaceIndex, "shop")
	version := snapshot.ResourceVersion()
	fmt.Println(len(inShop), "of", snapshot.Len(), "are in the shop at version", version, err)
	_, exists := snapshot.Lookup("shop/prices-1")
	fmt.Println(exists, len(store.List()))
	// Output:
	// 2 of 3 are in the shop at version 7 <nil>
	// true 2
}

func shop(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace:       "shop",
		Name:            name,
		ResourceVersion: version,
	}}
}

// A Reflector puts changes in; the caller that mirrors them takes them out, one key at a
// time, until the queue is closed and empty.
func ExampleDeltaFIFO_Pop() {
	held := cache.NewStore(cache.MetaNamespaceKeyFunc)
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
		KnownObjects:          held,
		EmitDeltaTypeReplaced: true,
	})

	err := errors.Join(
		queue.Replace([]any{shop("prices", "1"), shop("orders", "2")}, "2"),
		queue.Update(shop("prices", "3")),
		queue.Delete(shop("orders", "4")),
	)
	if err != nil {
		fmt.Println(err)
	}
	queue.Close()

	apply := func(obj any, isInInitialList bool) error {
		for _, delta := range obj.(cache.Deltas) {
			key, err := queue.KeyOf(delta.Object)
			if err != nil {
				return err
			}
			fmt.Println(delta.Type, key)
			if delta.Type == cache.Deleted {
				err = held.Delete(cache.ExplicitKey(key))
			} else {
				err = held.Update(delta.Object)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for {
		if _, err := queue.Pop(apply); errors.Is(err, cache.ErrFIFOClosed) {
			break
		} else if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("synced:", queue.HasSynced(), "held:", held.ListKeys())
	fmt.Println("at version", held.LastStoreSyncResourceVersion())
	// Output:
	// Replaced shop/prices
	// Updated shop/prices
	// Replaced shop/orders
	// Deleted shop/orders
	// synced: true held: [shop/prices]
	// at version 2
}

// PopBatch hands out the pending changes in the order in which they came. A Bookmark
// says up to which version that is.
func ExampleDeltaFIFO_PopBatch() {
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{EmitDeltaTypeReplaced: true})
	if err := queue.Replace([]any{shop("prices", "1"), shop("orders", "2")}, "2"); err != nil {
		fmt.Println(err)
	}
	err := queue.PopBatch(func(deltas []cache.Delta, isInInitialList bool) error {
		for _, delta := range deltas {
			if bookmark, ok := delta.Object.(cache.BookmarkInfo); ok {
				fmt.Println(delta.Type, bookmark.ResourceVersion)
				continue
			}
			key, err := queue.KeyOf(delta.Object)
			if err != nil {
				return err
			}
			fmt.Println(delta.Type, key)
		}
		return nil
	}, nil)
	fmt.Println(err)
	// Output:
	// Replaced shop/prices
	// Replaced shop/orders
	// Bookmark 2
	// <nil>
}

// A program that may read some namespaces, and not all, has a source for each. It
// begins to work with those that it may read, and says which it may not.
func ExampleConfig_namespaces() {
	server := cachetest.NewSource(cachetest.Options{})
	defer server.Close()
	server.Apply(
		configMap("shop", "prices", "1"),
		configMap("blog", "front", "hello"),
		configMap("bank", "vault", "?"),
	)
	shut := cachetest.NewSource(cachetest.Options{}) // answers nothing but errors
	defer shut.Close()
	shut.FailLists(cachetest.Forever, cachetest.ErrConnectionRefused())
	shut.FailWatches(cachetest.Forever, cachetest.ErrConnectionRefused())

	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
	})
	controller := cache.New(&cache.Config{
		Namespaces: map[string]cache.Source{
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
		synced, _ := controller.SyncedIn(namespace)
		<-synced.Done()
	}
	fmt.Println(len(indexer.ListKeys()), "objects, all synced:", controller.HasSynced())
	for _, one := range controller.Status().Namespaces {
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

// A handler of typed objects needs no cast, not even for what was deleted unseen.
func ExampleDeletedObject() {
	type Pod = metav1.PartialObjectMetadata
	handler := cache.TypedResourceEventHandlerFuncs[*Pod]{
		DeleteFunc: func(deleted cache.DeletedObject[*Pod]) {
			last, known := deleted.Object()
			switch {
			case deleted.FinalStateKnown():
				fmt.Println(deleted.GetKey(), "was last labelled", last.Labels["app"])
			case known:
				fmt.Println(deleted.GetKey(), "was once labelled", last.Labels["app"])
			default:
				fmt.Println(deleted.GetKey(), "is all that is known")
			}
		},
	}

	pod := &Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop",
		Name:      "prices-1",
		Labels:    map[string]string{"app": "prices"},
	}}
	handler.OnDelete(cache.DeletedObject[*Pod]{OptionalObj: pod})
	unseen := cache.DeletedFinalStateUnknown{Key: "shop/prices-1", Obj: pod}
	handler.OnDelete(cache.DeletedObject[*Pod]{OptionalObj: pod, FinalStateUnknown: &unseen})
	unknown := &cache.DeletedFinalStateUnknown{Key: "shop/prices-2"}
	handler.OnDelete(cache.DeletedObject[*Pod]{FinalStateUnknown: unknown})
	// Output:
	// shop/prices-1 was last labelled prices
	// shop/prices-1 was once labelled prices
	// shop/prices-2 is all that is known
}

// step is a DoneChecker that can end in vain.
type step struct {
	name string
	done chan struct{}
	err  error
}

func (s *step) Name() string          { return s.name }
func (s *step) Done() <-chan struct{} { return s.done }

func (s *step) Err() error {
	if !cache.IsDone(s) {
		return nil
	}
	return s.err
}

// The error names each checker that is not done, and why. A wait ends as soon as it is in vain.
func ExampleWaitForDone() {
	over := make(chan struct{})
	close(over)
	pods := &step{name: "pods", done: over}
	nodes := &step{name: "nodes", done: make(chan struct{})}
	handler := &step{name: "handler of pods", done: over, err: cache.ErrHandlerRemoved}

	fmt.Println(cache.WaitForDone(context.Background(), pods))

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	err := cache.WaitForDone(ctx, pods, nodes)
	fmt.Println(err, errors.Is(err, context.DeadlineExceeded))

	err = cache.WaitForDone(context.Background(), pods, handler)
	fmt.Println(err, errors.Is(err, cache.ErrHandlerRemoved))
	// Output:
	// <nil>
	// nodes is not done: context deadline exceeded true
	// handler of pods: handler was removed before it had handled the first list true
}

// An error handler tells a wrongful change from other failures by its type.
func ExampleMutatedObjectError() {
	handle := func(err error) {
		if mutated, ok := errors.AsType[*cache.MutatedObjectError](err); ok {
			fmt.Println("copy before you change", mutated.Key, mutated.Changes[0])
		}
		fmt.Println(err)
	}
	handle(&cache.MutatedObjectError{
		Key:             "shop/web",
		ResourceVersion: "812",
		Changes:         []string{"metadata.labels.app removed"},
		Total:           1,
	})
	// Output:
	// copy before you change shop/web metadata.labels.app removed
	// object "shop/web" at version 812 was changed in the store, where it is shared: metadata.labels.app removed
}
