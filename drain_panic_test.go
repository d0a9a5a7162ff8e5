package cache_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// channelWatch is a watch whose Stop does what a test wants.
type channelWatch struct {
	events chan watch.Event
	stop   func()
}

func (w *channelWatch) ResultChan() <-chan watch.Event { return w.events }
func (w *channelWatch) Stop()                          { w.stop() }

func numbered(n int) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "a", Name: strconv.Itoa(n), UID: types.UID(strconv.Itoa(n)), ResourceVersion: strconv.Itoa(n),
	}}
}

// panicOfRun runs an informer on an empty list and some events, and calls then, which has the run
// panic. It returns the panic's value.
func panicOfRun(t *testing.T, w *channelWatch, stream bool, index func(name string) error, then func()) (value any) {
	source := &cache.ListWatch{
		ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
			return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		},
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return w, nil },
	}
	strategy := cache.ListWhole
	if stream {
		strategy = cache.ListStreaming
	}
	informer := cache.NewInformerFor(source, cache.InformerConfig[*metav1.PartialObjectMetadata]{
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

// Events that were received ahead are applied when a flood is over. Fails if what received them is
// ended a second time because the error handler panics meanwhile.
func TestAPanicOfTheErrorHandlerWhileReceivedEventsAreDrainedComesOutOfRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const flood, lone = 64, 8 // what makes a flood, and how many events in a row end one
		last := 1 + flood + lone
		w := &channelWatch{events: make(chan watch.Event, flood), stop: func() {}}
		send := func(n int) { w.events <- watch.Event{Type: watch.Added, Object: numbered(n)} }
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
			bad := numbered(last + 1)
			bad.Name = "bad"
			w.events <- watch.Event{Type: watch.Added, Object: bad}
			synctest.Wait()
			close(gate) // the last lone event is applied, and then what has come meanwhile
		}))
	})
}

// Fails if a panic of a watch's Stop takes the place of the panic for which the watch is stopped.
func TestAPanicOfStopDoesNotReplaceThePanicThatEndsTheWatch(t *testing.T) {
	for name, stream := range map[string]bool{"watch": false, "streaming list": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &channelWatch{events: make(chan watch.Event, 1), stop: func() { panic("the source's") }}
				requirePanicOfHandler(t, panicOfRun(t, w, stream, func(string) error { return nil }, func() {
					w.events <- watch.Event{Type: "UNKNOWN", Object: numbered(2)}
				}))
			})
		})
	}
}
