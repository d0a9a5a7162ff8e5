// Command measured runs each route of package route, which builds it with coverage counters.
//
// It runs in virtual time, on one processor and without garbage collections, so that the counts
// depend on little besides the code. Counters are cleared and read when all goroutines are
// blocked.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/coverage"
	"runtime/debug"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// passes is the number of runs of each route; the shortest counts.
const passes = 8

type object = metav1.PartialObjectMetadata

func main() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1) // a collection empties pools, and refilling them is not part of a route
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	// testing.Main lets a program run tests, and so a bubble of virtual time. It ends the program.
	everything := func(_, _ string) (bool, error) { return true, nil }
	testing.Main(everything, []testing.InternalTest{{Name: "routes", F: func(t *testing.T) {
		for pass := range passes {
			for _, measure := range []func(*recorder){informer, storeAndHandler, process, reflector, firstLists, relists} {
				synctest.Test(t, func(t *testing.T) {
					measure(&recorder{T: t, directory: filepath.Join(os.Args[1], strconv.Itoa(pass))})
				})
			}
		}
	}}}, nil, nil)
}

// recorder writes the counters of each route of a pass to its own directory.
type recorder struct {
	*testing.T
	directory string
}

func (r *recorder) must(err error) {
	if err != nil {
		r.Fatal(err)
	}
}

// settle waits for the time, and then until all goroutines are blocked.
func settle(within time.Duration) {
	synctest.Wait()
	time.Sleep(within)
	synctest.Wait()
}

// route records the functions entered from do until all goroutines are blocked.
func (r *recorder) route(name string, do func()) { r.routeWithin(name, time.Second, do) }

func (r *recorder) routeWithin(name string, within time.Duration, do func()) {
	settle(time.Second)
	r.must(coverage.ClearCounters())
	do()
	settle(within)
	directory := filepath.Join(r.directory, name)
	r.must(os.MkdirAll(directory, 0o755))
	r.must(coverage.WriteCountersDir(directory))
	r.must(coverage.WriteMetaDir(directory))
}

// running runs a mirror until stop is called.
func (r *recorder) running(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	settle(time.Second)
	return func() {
		cancel()
		<-ended
	}
}

func (r *recorder) source(objects int, options cachetest.Options) *cachetest.Source {
	options.NewObject = func() apiruntime.Object { return &object{} }
	options.NewList = func() apiruntime.Object { return &metav1.PartialObjectMetadataList{} }
	options.BookmarkInterval = -1
	source := cachetest.NewSource(options)
	r.Cleanup(source.Close)
	for i := range objects {
		r.must(source.Apply(named(i, "")))
	}
	return source
}

func named(i int, mark string) *object {
	return &object{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: fmt.Sprintf("object-%d", i), Labels: map[string]string{"mark": mark},
	}}
}

// listed is the number of a source's objects if it does not matter.
const listed = 10

// events records an update, an add and a deletion on a watch, after a few warm-up events.
func (r *recorder) events(through string, source *cachetest.Source) {
	for i := range 3 {
		r.must(source.Apply(named(1, strconv.Itoa(i)), named(listed, "")))
		_, err := source.Delete("default", named(listed, "").Name)
		r.must(err)
		settle(time.Second)
	}
	r.route(through+" update", func() { r.must(source.Apply(named(1, "now"))) })
	r.route(through+" add", func() { r.must(source.Apply(named(listed, ""))) })
	r.route(through+" delete", func() {
		_, err := source.Delete("default", named(listed, "").Name)
		r.must(err)
	})
}

// handler does nothing.
var handler = cache.ResourceEventHandlerFuncs{
	AddFunc: func(any) {}, UpdateFunc: func(_, _ any) {}, DeleteFunc: func(any) {},
}

func newInformer(source *cachetest.Source, options cache.ReflectorOptions) *cache.Informer[*object] {
	return cache.NewTypedInformer(source, cache.InformerConfig[*object]{ReflectorOptions: options})
}

func (r *recorder) addHandler(informer *cache.Informer[*object]) {
	_, err := informer.Shared().AddEventHandler(handler)
	r.must(err)
}

// informer records the events of an informer with one handler, and the join of another.
func informer(r *recorder) {
	source := r.source(listed, cachetest.Options{})
	informer := newInformer(source, cache.ReflectorOptions{})
	r.addHandler(informer)
	defer r.running(func(ctx context.Context) { _ = informer.Run(ctx) })()
	r.events("informer", source)
	r.route("informer join", func() { r.addHandler(informer) })
}

// relists records the list after an expired watch, whole and as a stream, when one object has
// changed.
func relists(r *recorder) {
	for name, supported := range map[string]bool{"informer relist": false, "informer relist by a stream": true} {
		source := r.source(listed, cachetest.Options{WatchListUnsupported: !supported})
		informer := newInformer(source, cache.ReflectorOptions{})
		r.addHandler(informer)
		stop := r.running(func(ctx context.Context) { _ = informer.Run(ctx) })
		settle(time.Minute) // a long watch does not count as a failure
		changes := 0
		change := func() error {
			changes++
			return source.Apply(named(1, "relisted"))
		}
		source.OnList(func(metav1.ListOptions) error { return change() })
		source.OnWatch(func(options metav1.ListOptions) error {
			if options.SendInitialEvents == nil {
				return nil
			}
			return change()
		})
		r.routeWithin(name, 10*time.Second, func() { source.BreakWatches(cachetest.ErrExpired()) })
		obj, err := informer.ByNamespace("default").Get(named(1, "").Name)
		r.must(err)
		if mark := obj.Labels["mark"]; changes != 1 || mark != "relisted" {
			r.Fatalf("%s: %d lists, and the object's mark is %q", name, changes, mark)
		}
		stop()
	}
}

// storeAndHandler records the events of a controller with Store and Handler.
func storeAndHandler(r *recorder) {
	source := r.source(listed, cachetest.Options{})
	controller := cache.New(&cache.Config{
		ListerWatcher: source, ObjectType: &object{},
		Store: cache.NewStore(cache.MetaNamespaceKeyFunc), Handler: handler,
	})
	defer r.running(controller.RunWithContext)()
	r.events("store and handler", source)
}

// process records the events of a controller whose Process updates a store, as in client-go.
func process(r *recorder) {
	source := r.source(listed, cachetest.Options{})
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	controller := cache.New(&cache.Config{
		ListerWatcher: source, ObjectType: &object{},
		Queue: cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: store, EmitDeltaTypeReplaced: true}),
		Process: func(obj any, _ bool) error {
			for _, delta := range obj.(cache.Deltas) {
				write := store.Update
				if delta.Type == cache.Deleted {
					write = store.Delete
				}
				if err := write(delta.Object); err != nil {
					return err
				}
			}
			return nil
		},
	})
	defer r.running(controller.RunWithContext)()
	r.events("process", source)
}

// reflector records the events of a reflector that fills a store.
func reflector(r *recorder) {
	source := r.source(listed, cachetest.Options{})
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	mirror := cache.NewReflectorWithOptions(source, &object{}, store, cache.ReflectorOptions{})
	defer r.running(mirror.RunWithContext)()
	r.events("reflector and store", source)
}

// firstLists records an informer's first list in three pages, and as a stream.
func firstLists(r *recorder) {
	// Few objects, so that most passes have no hash collision in the store.
	const page, objects = 4, 3*4 - 1
	for _, list := range []struct {
		name           string
		options        cache.ReflectorOptions
		lists, watches int
	}{
		{"informer first list of three pages", cache.ReflectorOptions{Strategy: cache.ListPaged, PageSize: page}, 3, 1},
		{"informer streaming list", cache.ReflectorOptions{Strategy: cache.ListStreaming}, 0, 1},
	} {
		source := r.source(objects, cachetest.Options{})
		informer := newInformer(source, list.options)
		r.addHandler(informer)
		var stop func()
		r.route(list.name, func() {
			stop = r.running(func(ctx context.Context) { _ = informer.Run(ctx) })
		})
		if informer.Len() != objects || source.ListCalls() != list.lists || source.WatchCalls() != list.watches {
			r.Fatalf("%s: %d objects by %d lists and %d watches", list.name, informer.Len(), source.ListCalls(), source.WatchCalls())
		}
		stop()
	}
}
