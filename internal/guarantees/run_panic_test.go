package guarantees

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// channelWatch is a watch whose Stop calls a function.
type channelWatch struct {
	events chan watch.Event
	stop   func()
}

func (w *channelWatch) ResultChan() <-chan watch.Event { return w.events }
func (w *channelWatch) Stop()                          { w.stop() }

func numberedPartial(n int) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "a", Name: strconv.Itoa(n), UID: types.UID(strconv.Itoa(n)), ResourceVersion: strconv.Itoa(n),
	}}
}

// panicOfRun runs an informer on an empty list and some events, calls then, which makes the run
// panic, and returns the panic's value.
func panicOfRun(t *testing.T, w *channelWatch, stream bool, index func(name string) error, then func()) (value any) {
	source := &cache.ListWatch{
		ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
			return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		},
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return w, nil },
	}
	strategy := cache.ListUnpaged
	if stream {
		strategy = cache.ListStreaming
	}
	informer := cache.NewTypedInformer(source, cache.InformerConfig[*metav1.PartialObjectMetadata]{
		ReflectorOptions: cache.ReflectorOptions{
			Strategy:     strategy,
			ErrorHandler: func(context.Context, *cache.Reflector, error) { panic("the handler's own") },
		},
		Indexes: cache.TypedIndexers[*metav1.PartialObjectMetadata]{
			"checked": func(obj *metav1.PartialObjectMetadata) ([]string, error) { return nil, index(obj.Name) },
		},
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { value = recover() }()
		informer.Run(t.Context())
	}()
	synctest.Wait()
	then()
	<-ended
	return value
}

func requirePanicOfHandler(t *testing.T, value any) {
	t.Helper()
	var panicked *cache.PanicError
	require.IsType(t, panicked, value)
	require.Equal(t, "the handler's own", value.(*cache.PanicError).Value)
	require.Contains(t, string(value.(*cache.PanicError).Stack), "panicOfRun")
}

// Events that were received ahead are applied after a flood. Fails if their receiver is ended twice
// because the error handler panics meanwhile.
func TestAPanicOfTheErrorHandlerWhileReceivedEventsAreDrainedComesOutOfRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const flood, lone = 64, 8 // pending events that make a flood, and single events that end one
		last := 1 + flood + lone
		w := &channelWatch{events: make(chan watch.Event, flood), stop: func() {}}
		send := func(n int) { w.events <- watch.Event{Type: watch.Added, Object: numberedPartial(n)} }
		for n := range flood {
			send(2 + n)
		}
		gate := make(chan struct{})
		requirePanicOfHandler(t, panicOfRun(t, w, false, func(name string) error {
			switch name {
			case strconv.Itoa(last):
				<-gate
			case "bad":
				return errors.New("refused")
			}
			return nil
		}, func() {
			for n := range lone {
				send(2 + flood + n)
				synctest.Wait()
			}
			bad := numberedPartial(last + 1)
			bad.Name = "bad"
			w.events <- watch.Event{Type: watch.Added, Object: bad}
			synctest.Wait()
			close(gate) // the last single event is applied, and then the pending ones
		}))
	})
}

// Fails if a panic of a watch's Stop replaces the panic because of which the watch is stopped.
func TestAPanicOfStopDoesNotReplaceThePanicThatEndsTheWatch(t *testing.T) {
	for name, stream := range map[string]bool{"watch": false, "streaming list": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &channelWatch{events: make(chan watch.Event, 1), stop: func() { panic("the source's") }}
				requirePanicOfHandler(t, panicOfRun(t, w, stream, func(string) error { return nil }, func() {
					w.events <- watch.Event{Type: "UNKNOWN"}
				}))
			})
		})
	}
}

// parcel is an object that is not comparable because it has a slice. Tests use values and
// pointers.
type parcel struct {
	metav1.ObjectMeta
	Words []string
}

func (p parcel) GetObjectMeta() metav1.Object     { return &p.ObjectMeta }
func (p parcel) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }
func (p parcel) DeepCopyObject() runtime.Object   { return p }

func parcelAt(name string, uid types.UID, version string) parcel {
	return parcel{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: uid, ResourceVersion: version}, Words: []string{version}}
}

// parcelList is a list of parcels, as values or as pointers.
type parcelList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

func (l *parcelList) DeepCopyObject() runtime.Object { return l }

// parcelSource lists once and sends the events of one watch.
func parcelSource(version string, items []runtime.Object, events chan watch.Event) *cache.ListWatch {
	return &cache.ListWatch{
		ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
			return &parcelList{ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: items}, nil
		},
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) {
			return watch.NewProxyWatcher(events), nil
		},
	}
}

// Fails if a value that is not comparable counts as another one than itself.
func TestAnObjectThatIsAnUncomparableValueIsMirroredAsAPointerIs(t *testing.T) {
	forms := map[string]func(parcel) runtime.Object{
		"value":   func(p parcel) runtime.Object { return p },
		"pointer": func(p parcel) runtime.Object { return &p },
	}
	// In a burst all events are pending, and are applied together.
	for _, burst := range []bool{false, true} {
		for name, form := range forms {
			t.Run(fmt.Sprintf("%s, burst %v", name, burst), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					events := make(chan watch.Event, 10)
					source := parcelSource("10", []runtime.Object{form(parcelAt("1", "u1", "3")), form(parcelAt("2", "u2", "10"))}, events)
					var mu sync.Mutex
					var calls, failures []string
					note := func(format string, args ...any) {
						mu.Lock()
						defer mu.Unlock()
						calls = append(calls, fmt.Sprintf(format, args...))
					}
					says := func(obj any) string {
						key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
						require.NoError(t, err)
						if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
							obj = tombstone.Obj
						}
						return key + "@" + obj.(metav1.ObjectMetaAccessor).GetObjectMeta().GetResourceVersion()
					}
					informer := cache.NewSharedIndexInformer(source, form(parcel{}), 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
					require.NoError(t, informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { failures = append(failures, err.Error()) }))
					_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
						AddFunc:    func(obj any) { note("add %s", says(obj)) },
						UpdateFunc: func(old, obj any) { note("update %s %s", says(old), says(obj)) },
						DeleteFunc: func(obj any) { note("delete %s", says(obj)) },
					})
					require.NoError(t, err)
					ctx, cancel := context.WithCancel(t.Context())
					var running sync.WaitGroup
					running.Go(func() { informer.RunWithContext(ctx) })
					synctest.Wait()
					require.True(t, informer.HasSynced())
					calls = nil
					for _, e := range []watch.Event{
						{Type: watch.Modified, Object: form(parcelAt("1", "u1", "5"))},
						{Type: watch.Modified, Object: form(parcelAt("1", "u1", "6"))},
						{Type: watch.Added, Object: form(parcelAt("2", "u2-again", "12"))},
						{Type: watch.Deleted, Object: form(parcelAt("2", "u2-again", "13"))},
					} {
						events <- e
						if !burst {
							synctest.Wait()
						}
					}
					synctest.Wait()
					assert.Equal(t, []string{
						"update a/1@3 a/1@5", "update a/1@5 a/1@6", "delete a/2@10", "add a/2@12", "delete a/2@13",
					}, calls)
					assert.Empty(t, failures)
					assert.Equal(t, "13", informer.LastSyncResourceVersion())
					cancel()
					running.Wait()
				})
			})
		}
	}
}
