package cache

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// burstSource lists some objects and then sends updates of them in turn.
type burstSource struct {
	objects []*metav1.PartialObjectMetadata
	events  chan watch.Event
}

func smallObject(i, version int) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "namespace-" + strconv.Itoa(i/1000), Name: "object-" + strconv.Itoa(i),
		UID: types.UID("uid-" + strconv.Itoa(i)), ResourceVersion: strconv.Itoa(version),
	}}
}

func newBurstSource(n int) *burstSource {
	s := &burstSource{events: make(chan watch.Event, 256)}
	for i := range n {
		s.objects = append(s.objects, smallObject(i, i+1))
	}
	return s
}

func (s *burstSource) List(metav1.ListOptions) (apiruntime.Object, error) {
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(len(s.objects))}}
	for _, obj := range s.objects {
		list.Items = append(list.Items, *obj)
	}
	return list, nil
}

func (s *burstSource) Watch(metav1.ListOptions) (watch.Interface, error) { return s, nil }
func (s *burstSource) ResultChan() <-chan watch.Event                    { return s.events }
func (s *burstSource) Stop()                                             {}

func BenchmarkPipeline(b *testing.B) {
	const objects = 10_000
	for _, handlers := range []int{0, 1, 5} {
		b.Run(fmt.Sprint(handlers, " handlers"), func(b *testing.B) {
			s := newBurstSource(objects)
			events := make([]watch.Event, b.N)
			for i := range events {
				events[i] = watch.Event{Type: watch.Modified, Object: smallObject(i%objects, objects+i+1)}
			}
			inf := NewInformerFor[*metav1.PartialObjectMetadata](&ListWatch{ListFunc: s.List, WatchFunc: s.Watch}, InformerConfig[*metav1.PartialObjectMetadata]{})

			counts := make([]struct {
				n int
				_ [56]byte
			}, handlers)
			synced := []DoneChecker{inf.HasSyncedChecker()}
			told := make(chan struct{}, handlers)
			for h := range handlers {
				c := &counts[h].n
				handle, err := inf.AddHandler(TypedResourceEventHandlerFuncs[*metav1.PartialObjectMetadata]{
					UpdateFunc: func(_, _ *metav1.PartialObjectMetadata) {
						if *c++; *c == b.N {
							told <- struct{}{}
						}
					},
				}, HandlerOptions{Delivery: OrderedUnbounded})
				require.NoError(b, err)
				synced = append(synced, handle.HasSyncedChecker())
			}

			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- inf.Run(ctx) }()
			// What the handlers are told of the list is not to be part of what is measured.
			require.NoError(b, WaitForDone(ctx, synced...))
			runtime.GC()
			b.ReportAllocs()
			before := cpuTime()
			b.ResetTimer()
			for _, e := range events {
				s.events <- e
			}
			for range handlers {
				<-told
			}
			last := strconv.Itoa(objects + b.N)
			for inf.LastSyncResourceVersion() != last {
				runtime.Gosched()
			}
			b.StopTimer()
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
			cancel()
			require.NoError(b, <-done)
		})
	}
	b.Run("source", func(b *testing.B) {
		s := newBurstSource(1)
		events := make([]watch.Event, b.N)
		for i := range events {
			events[i] = watch.Event{Type: watch.Modified, Object: smallObject(i%objects, objects+i+1)}
		}
		runtime.GC()
		before := cpuTime()
		b.ResetTimer()
		go func() {
			for _, e := range events {
				s.events <- e
			}
			close(s.events)
		}()
		for range s.events {
		}
		b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
	})
}
