package cache

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// rawItems is a source of many large objects that counts those of them that nobody has
// stripped yet, and those that are still alive.
type rawItems struct {
	itemScript
	objects, version  int
	stripped          atomic.Int64
	made              int64
	most              int64 // made and not stripped
	alive             []weak.Pointer[object]
	aliveMost, counts int
}

func newRawItems(objects int) *rawItems {
	s := &rawItems{objects: objects}
	s.watch = func(_ context.Context, n int) (watch.Interface, error) {
		if n == 1 {
			return newProbe(errorEvent(cachetest.ErrExpired())), nil
		}
		return newProbe(), nil
	}
	s.list = func(_ context.Context, _ int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
		s.version += objects
		about := metav1.ListMeta{ResourceVersion: itoa(s.version)}
		for i := range objects {
			if err := take(about, s.make(i)); err != nil {
				return about, err
			}
		}
		return about, nil
	}
	return s
}

func (s *rawItems) make(i int) *object {
	o := podAt("a", itoa(i), itoa(s.version-s.objects+i+1))
	o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: string(make([]byte, 1000))}}
	s.made++
	s.most = max(s.most, s.made-s.stripped.Load())
	s.alive = append(s.alive, weak.Make(o))
	if len(s.alive)%1000 == 0 {
		s.count()
	}
	return o
}

func (s *rawItems) count() {
	runtime.GC()
	s.counts++
	s.alive = slices.DeleteFunc(s.alive, func(p weak.Pointer[object]) bool { return p.Value() == nil })
	s.aliveMost = max(s.aliveMost, len(s.alive))
}

func (s *rawItems) strip(obj any) (any, error) {
	s.stripped.Add(1)
	o := obj.(*object)
	return podAt(o.Namespace, o.Name, o.ResourceVersion), nil
}

// Of a list that comes item by item, no more than a batch on each side is alive before
// it is stripped, on the first list and on a relist of which every object has changed;
// whoever transforms, the queue or the store. Fails if a list is collected anywhere, or
// a stage keeps what it has passed on.
func TestOfAListItemByItemSomeHundredItemsAreAlive(t *testing.T) {
	const objects = 20_000
	run := map[string]func(*rawItems) (run func(context.Context), store Store){
		"the queue transforms": func(s *rawItems) (func(context.Context), Store) {
			store := NewStore(MetaNamespaceKeyFunc)
			c := New(&Config{ListerWatcher: s, Store: store, Transform: s.strip, ReflectorOptions: ReflectorOptions{ErrorHandler: (&heard{}).handle}})
			return c.RunWithContext, store
		},
		"the store transforms": func(s *rawItems) (func(context.Context), Store) {
			store := NewStore(MetaNamespaceKeyFunc, WithTransformer(s.strip))
			r := NewReflectorWithOptions(s, nil, store, ReflectorOptions{ErrorHandler: (&heard{}).handle})
			return r.RunWithContext, store
		},
	}
	for name, build := range run {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newRawItems(objects)
				run, store := build(source)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); run(ctx) }()
				sleep(time.Minute)
				assert.Equal(t, int64(2*objects), source.stripped.Load())
				assert.Equal(t, itoa(2*objects), store.LastStoreSyncResourceVersion())
				assert.Len(t, store.ListKeys(), objects)
				assert.LessOrEqual(t, source.most, int64(2*partSize+2))
				assert.LessOrEqual(t, source.aliveMost, 4*partSize)
				assert.Greater(t, source.counts, 20)
				t.Logf("not stripped at once: %d; alive at once: %d", source.most, source.aliveMost)
				cancel()
				<-done
			})
		})
	}
}
