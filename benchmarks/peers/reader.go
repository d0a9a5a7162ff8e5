package peers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reader is controller-runtime's, of config maps.
type Reader struct {
	cache cache.Cache
	stop  func()
}

var errNotSynced = errors.New("the cache did not sync")

// NewReader makes a reader of config maps, and returns when it has them.
func NewReader(objects []corev1.ConfigMap) (*Reader, error) {
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: objects}
	source := noStream{&toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return list, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewFake(), nil
		},
	}}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	config := &rest.Config{Host: "http://127.0.0.1:1"} // it is never called
	all, err := cache.New(config, cache.Options{
		HTTPClient: http.DefaultClient,
		Scheme:     scheme.Scheme,
		Mapper:     mapper,
		NewInformer: func(
			_ toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers,
		) toolscache.SharedIndexInformer {
			return toolscache.NewSharedIndexInformer(source, example, resync, indexers)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("controller-runtime: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = all.Start(ctx) })
	r := &Reader{cache: all, stop: func() {
		cancel()
		running.Wait()
	}}
	if _, err := all.GetInformer(ctx, &corev1.ConfigMap{}); err != nil {
		r.Stop()
		return nil, fmt.Errorf("controller-runtime: %w", err)
	}
	if !all.WaitForCacheSync(ctx) {
		r.Stop()
		return nil, errNotSynced
	}
	return r, nil
}

// noStream makes client-go list, and not try to stream first.
type noStream struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported is how client-go asks.
func (noStream) IsWatchListSemanticsUnSupported() bool { return true }

// Get reads an object, as a copy or not.
func (r *Reader) Get(namespace, name string, isCopy bool) error {
	var object corev1.ConfigMap
	key := client.ObjectKey{Namespace: namespace, Name: name}
	return r.cache.Get(context.Background(), key, &object, client.UnsafeDisableDeepCopyOption(!isCopy))
}

// List reads the objects of a namespace, as copies or not, and returns their number.
func (r *Reader) List(namespace string, isCopy bool) (int, error) {
	var list corev1.ConfigMapList
	err := r.cache.List(context.Background(), &list,
		client.InNamespace(namespace), client.UnsafeDisableDeepCopyOption(!isCopy))
	return len(list.Items), err
}

// Stop ends the reader.
func (r *Reader) Stop() { r.stop() }
