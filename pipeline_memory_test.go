package cache

import (
	"context"
	"math/bits"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// F3: what waits for handlers that hang is kept once for all of them, in at most 100 bytes each.
// Fails if a record grows, or a listener keeps what it has not been told for itself.
func TestWhatWaitsForSeveralHandlersIsKeptOnceInFewWords(t *testing.T) {
	if raceDetected() {
		t.Skip("the race detector's own memory would be measured")
	}
	synctest.Test(t, whatWaits)
}

func whatWaits(t *testing.T) {
	const objects, pending = 20_000, 30_000
	s := newBurstSource(objects)
	events := make([]watch.Event, pending)
	for i := range events {
		events[i] = watch.Event{Type: watch.Modified, Object: smallObject(i%objects, objects+i+1)}
	}
	inf := NewInformerFor(&ListWatch{ListFunc: s.List, WatchFunc: s.Watch}, InformerConfig[*metav1.PartialObjectMetadata]{})
	release := make(chan struct{})
	for range 4 {
		_, err := inf.AddHandler(TypedResourceEventHandlerFuncs[*metav1.PartialObjectMetadata]{
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
		require.Equal(t, strconv.Itoa(version), inf.LastSyncResourceVersion())
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
