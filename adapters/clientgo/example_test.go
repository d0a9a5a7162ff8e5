package clientgo_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

// smallCluster is an API server with two pods that requires a token.
func smallCluster() *httptest.Server {
	source := cachetest.NewSource(cachetest.Options{NewList: func() runtime.Object { return &corev1.PodList{} }})
	for _, name := range []string{"web-0", "web-1"} {
		err := source.Apply(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
		if err != nil {
			panic(err)
		}
	}
	return httptest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Source: source}},
		Token:     "s3cret",
	}))
}

// A mirror of pods with the program's rest.Config.
func ExampleNewSource() {
	server := smallCluster()
	defer server.Close()
	config := &rest.Config{Host: server.URL, BearerToken: "s3cret"} // or rest.InClusterConfig(), or clientcmd

	source, err := clientgo.NewSource(config, kubeapi.Options{
		Resource:   corev1.SchemeGroupVersion.WithResource("pods"),
		Namespace:  "shop",
		ObjectType: &corev1.Pod{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	controller := cache.New(&cache.Config{ListerWatcher: source, Store: store})

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { controller.RunWithContext(ctx) })
	<-controller.HasSyncedChecker().Done()

	object, _, _ := store.GetByKey("shop/web-0")
	fmt.Println(len(store.List()), "pods, one of them", object.(*corev1.Pod).Name)
	cancel()
	running.Wait()
	// Output: 2 pods, one of them web-0
}

// The REST client of a clientset is at clientset.CoreV1().RESTClient().
func ExampleNewSourceForClient() {
	server := smallCluster()
	defer server.Close()
	client, err := rest.RESTClientFor(&rest.Config{
		Host: server.URL, BearerToken: "s3cret", APIPath: "/api",
		ContentConfig: rest.ContentConfig{GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	source, err := clientgo.NewSourceForClient(client, kubeapi.Options{
		Resource:   schema.GroupVersionResource{Resource: "pods"}, // the version is the client's
		ObjectType: &corev1.Pod{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = source.ListItems(context.Background(), metav1.ListOptions{}, func(_ metav1.ListMeta, item runtime.Object) error {
		fmt.Println(item.(*corev1.Pod).Name)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// web-0
	// web-1
}
