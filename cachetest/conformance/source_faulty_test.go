package conformance

import (
	"context"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// faulty is a source over a good one with one fault.
type faulty struct {
	*cachetest.Source
	// released is closed at the end of the test, and ends whatever a fault left running.
	released chan struct{}
	// Functions of the fault; nil means as the good source.
	list   func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch  func(context.Context, metav1.ListOptions) (watch.Interface, error)
	tamper func(watch.Event) []watch.Event
	items  func(list runtime.Object, take func(runtime.Object) error) error

	mu sync.Mutex // for faults with state
}

func newFaulty(t testing.TB, options cachetest.Options) *faulty {
	options.GroupVersionKind.Version, options.GroupVersionKind.Kind = "v1", "Pod"
	f := &faulty{Source: cachetest.NewSource(options), released: make(chan struct{})}
	t.Cleanup(func() {
		close(f.released)
		f.Close()
	})
	return f
}

func (f *faulty) List(options metav1.ListOptions) (runtime.Object, error) {
	return f.ListWithContext(context.Background(), options)
}

func (f *faulty) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if f.list != nil {
		return f.list(ctx, options)
	}
	return f.Source.ListWithContext(ctx, options)
}

func (f *faulty) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return f.WatchWithContext(context.Background(), options)
}

func (f *faulty) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	open := f.watch
	if open == nil {
		open = f.Source.WatchWithContext
	}
	w, err := open(ctx, options)
	if err != nil || f.tamper == nil {
		return w, err
	}
	return f.tampered(w, f.tamper), nil
}

// ListItems is the good source's unless items is set.
func (f *faulty) ListItems(ctx context.Context, options metav1.ListOptions, take func(metav1.ListMeta, runtime.Object) error) (metav1.ListMeta, error) {
	list, err := f.ListWithContext(ctx, options)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	about := metav1.ListMeta{ResourceVersion: accessor.GetResourceVersion(), Continue: accessor.GetContinue()}
	each := f.items
	if each == nil {
		each = inOrder
	}
	return about, each(list, func(item runtime.Object) error { return take(about, item) })
}

func inOrder(list runtime.Object, take func(runtime.Object) error) error {
	return meta.EachListItem(list, take)
}

// forwarded is a watch whose events pass through a function.
type forwarded struct {
	watch.Interface
	results chan watch.Event
	stop    func()
}

func (w *forwarded) ResultChan() <-chan watch.Event { return w.results }
func (w *forwarded) Stop()                          { w.stop() }

func (f *faulty) tampered(inner watch.Interface, tamper func(watch.Event) []watch.Event) *forwarded {
	stopped := make(chan struct{})
	var once sync.Once
	w := &forwarded{Interface: inner, results: make(chan watch.Event)}
	w.stop = func() {
		once.Do(func() { close(stopped) })
		inner.Stop()
	}
	go func() {
		defer close(w.results)
		for event := range inner.ResultChan() {
			for _, event := range tamper(event) {
				select {
				case w.results <- event:
				case <-stopped:
					return
				case <-f.released:
					return
				}
			}
		}
	}()
	return w
}

// stopping returns a watch whose Stop calls stop.
func stopping(inner watch.Interface, stop func()) watch.Interface {
	return &restopped{inner, stop}
}

type restopped struct {
	watch.Interface
	stop func()
}

func (w *restopped) Stop() { w.stop() }

// rechanneled returns another channel for each call.
type rechanneled struct{ watch.Interface }

func (w rechanneled) ResultChan() <-chan watch.Event { return make(chan watch.Event) }

// edited changes a copy of an object's metadata.
func edited(obj runtime.Object, edit func(*unstructured.Unstructured)) runtime.Object {
	u := obj.DeepCopyObject().(*unstructured.Unstructured)
	edit(u)
	return u
}

func only(event watch.Event) []watch.Event { return []watch.Event{event} }
