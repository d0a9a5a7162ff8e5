package guarantees

import (
	"context"
	"math/bits"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// burstSource lists some objects and then sends updates of each in turn.
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

func (s *burstSource) ResultChan() <-chan watch.Event { return s.events }

func (s *burstSource) Stop() {}

// BenchmarkPipeline is an update in a burst, also beside a program that asks for the status.
func BenchmarkPipeline(b *testing.B) {
	b.Run("1 handler", func(b *testing.B) { benchmarkPipeline(b, 0) })
	b.Run("1 handler, its status 1000 times a second", func(b *testing.B) {
		benchmarkPipeline(b, time.Millisecond)
	})
}

// benchmarkPipeline sends updates through an informer with a handler, and calls its Status at
// an interval; 0 is never.
func benchmarkPipeline(b *testing.B, statusEvery time.Duration) {
	const objects = 10_000
	s := newBurstSource(objects)
	events := make([]watch.Event, b.N)
	for i := range events {
		events[i] = watch.Event{Type: watch.Modified, Object: smallObject(i%objects, objects+i+1)}
	}
	inf := cache.NewTypedInformer[*metav1.PartialObjectMetadata](&cache.ListWatch{ListFunc: s.List, WatchFunc: s.Watch}, cache.InformerConfig[*metav1.PartialObjectMetadata]{})

	received := 0
	notified := make(chan struct{})
	handle, err := inf.AddHandler(cache.TypedResourceEventHandlerFuncs[*metav1.PartialObjectMetadata]{
		UpdateFunc: func(_, _ *metav1.PartialObjectMetadata) {
			received++
			if received == b.N {
				close(notified)
			}
		},
	}, cache.HandlerOptions{Delivery: cache.OrderedUnbounded})
	require.NoError(b, err)

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- inf.Run(ctx) }()
	// The delivery of the list is not measured.
	require.NoError(b, cache.WaitForDone(ctx, inf.HasSyncedChecker(), handle.HasSyncedChecker()))
	if statusEvery > 0 {
		go func() {
			for ctx.Err() == nil {
				inf.Status()
				time.Sleep(statusEvery)
			}
		}()
	}
	runtime.GC()
	b.ReportAllocs()
	before := cpuTime()
	b.ResetTimer()
	for _, e := range events {
		s.events <- e
	}
	<-notified
	last := strconv.Itoa(objects + b.N)
	for inf.ResourceVersion() != last {
		runtime.Gosched()
	}
	b.StopTimer()
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
	cancel()
	require.NoError(b, <-done)
}

// F3: what waits for handlers that hang is kept once for all of them, in at most 100 bytes each.
// Fails if a record grows, or a listener keeps what it has not received for itself.
func TestSeveralHandlersShareTheMemoryOfPendingChanges(t *testing.T) {
	if raceDetected() {
		t.Skip("the race detector's own memory would be measured")
	}
	synctest.Test(t, benchmarkBacklogMemory)
}

func benchmarkBacklogMemory(t *testing.T) {
	const objects, pending = 20_000, 30_000
	s := newBurstSource(objects)
	events := make([]watch.Event, pending)
	for i := range events {
		events[i] = watch.Event{Type: watch.Modified, Object: smallObject(i%objects, objects+i+1)}
	}
	inf := cache.NewTypedInformer(&cache.ListWatch{ListFunc: s.List, WatchFunc: s.Watch}, cache.InformerConfig[*metav1.PartialObjectMetadata]{})
	release := make(chan struct{})
	for range 4 {
		_, err := inf.AddHandler(cache.TypedResourceEventHandlerFuncs[*metav1.PartialObjectMetadata]{
			UpdateFunc: func(_, _ *metav1.PartialObjectMetadata) { <-release },
		})
		require.NoError(t, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = inf.Run(ctx)
	}()
	defer func() {
		close(release)
		cancel()
		<-done
	}()
	require.NoError(t, inf.WaitSynced(ctx))
	waits := func(backlog int, version int) {
		synctest.Wait()
		for _, h := range inf.Status().Handlers {
			require.Equal(t, backlog, h.Backlog)
		}
		require.Equal(t, strconv.Itoa(version), inf.ResourceVersion())
	}
	s.events <- events[0]
	waits(0, objects+1)
	before := heap()
	for _, e := range events[1:] {
		s.events <- e
	}
	waits(pending-1, objects+pending)
	each := float64(heap()-before) / (pending - 1)
	runtime.KeepAlive(events)
	require.Less(t, each, 100.0)
	require.Greater(t, each, 3.0*bits.UintSize/8, "two objects and a name cannot be kept in less: something else is measured")
}

// BenchmarkStatus is a status of a running informer with one handler.
func BenchmarkStatus(b *testing.B) {
	informer, _ := benchmarkedInformer(b)
	b.ReportAllocs()
	for b.Loop() {
		informer.Status()
	}
}

// BenchmarkVersionWait is from a write at the source until a call that waits for its version has returned: the event, its
// application and the wake.
func BenchmarkVersionWait(b *testing.B) {
	informer, source := benchmarkedInformer(b)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		returned := make(chan time.Time, 1)
		go func() {
			assert.NoError(b, informer.WaitForResourceVersion(b.Context(), strconv.Itoa(i+2)))
			returned <- time.Now()
		}()
		time.Sleep(time.Millisecond) // until it waits
		began := time.Now()
		require.NoError(b, source.Apply(pod("a", "1")))
		took = append(took, (<-returned).Sub(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "us/write")
}

func benchmarkedInformer(b *testing.B) (*cache.Informer[*object], *cachetest.Source) {
	source := cachetest.NewSource(cachetest.Options{})
	require.NoError(b, source.Apply(pod("a", "1")))
	informer := cache.NewTypedInformer(source, cache.InformerConfig[*object]{})
	_, err := informer.Shared().AddEventHandler(cache.ResourceEventHandlerFuncs{})
	require.NoError(b, err)
	done := make(chan error)
	go func() { done <- informer.Run(context.Background()) }()
	b.Cleanup(func() { informer.Stop(); <-done; source.Close() })
	require.NoError(b, informer.WaitSynced(b.Context()))
	return informer, source
}
