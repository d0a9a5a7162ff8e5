package clientgo_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/mutation"
)

// An informer of this library in a program that only knows client-go's type.
func ExampleNewInformer() {
	server := smallCluster()
	defer server.Close()
	client, err := rest.RESTClientFor(&rest.Config{ // or clientset.CoreV1().RESTClient()
		Host: server.URL, BearerToken: "s3cret", APIPath: "/api",
		ContentConfig: rest.ContentConfig{
			GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	lw := clientgo.NewListWatchFromClient(client, "pods", "shop", nil)
	informer := clientgo.NewInformer(lw, &corev1.Pod{}, 0, toolscache.Indexers{
		toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
	})
	handle, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) {}, // enqueue the key
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	toolscache.WaitFor(ctx, "", informer.HasSyncedChecker(), handle.HasSyncedChecker())
	pods, err := corelisters.NewPodLister(informer.GetIndexer()).Pods("shop").List(labels.Everything())
	fmt.Println(len(pods), "pods", err)
	status := informer.(cache.StatusReporter).Status() // as for any informer of this library
	fmt.Println("version", status.AppliedVersion, "with", status.Handlers[0].Delivered, "calls of the handler")
	cancel()
	running.Wait()
	// Output:
	// 2 pods <nil>
	// version 2 with 2 calls of the handler
}

// A function that makes informers with options, for code that requires such a function, for example
// NewInformer of controller-runtime's cache.Options.
func ExampleNewInformerFunc() {
	newInformer := clientgo.NewInformerFunc(cache.SharedIndexInformerOptions{
		Handlers: cache.HandlerOptions{
			Delivery:      cache.OrderedUnbounded, // every change, however slow a handler is
			RecoverPanics: true,
		},
		DetectMutations: mutation.Options{SampleEvery: 100}.New,
	})

	informer := newInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, nil)
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{}); err != nil {
		fmt.Println(err)
	}
	status := informer.(cache.StatusReporter).Status()
	fmt.Println(status.Handlers[0].Delivery)
	// Output: ordered, unbounded
}

// A generated lister over an indexer that the program or an informer fills.
func ExampleIndexer() {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
	})
	if err := indexer.Add(pod("web-0", "1")); err != nil {
		fmt.Println(err)
	}

	lister := corelisters.NewPodLister(clientgo.Indexer(indexer))
	found, err := lister.Pods("shop").Get("web-0")
	fmt.Println(found.Name, err)
	_, err = lister.Pods("shop").Get("web-1")
	fmt.Println(err)
	// Output:
	// web-0 <nil>
	// pod "web-1" not found
}
