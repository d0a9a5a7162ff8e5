package cache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Fails if the second to stop an informer is told that there is none, while a handler of
// it is still being called.
func TestWhoStopsAnInformerAgainWaitsForItsEndToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set InformerSet
		informer, release := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		_, err := informer.AddHandler(TypedResourceEventHandlerFuncs[*object]{AddFunc: func(*object) { time.Sleep(time.Hour) }})
		require.NoError(t, err)
		began := time.Now()
		end := runSet(t, &set)
		release()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.ErrorIs(t, set.Stop(ctx, informer.Shared()), context.DeadlineExceeded)
		assert.NoError(t, set.Stop(t.Context(), informer.Shared()))
		assert.Equal(t, time.Hour, time.Since(began))
		assert.ErrorContains(t, set.Stop(t.Context(), informer.Shared()), "not any more, in the set")
		end()
	})
}

func TestAnInformerThatSomebodyElseRanIsNotHandedOutOnceItHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set InformerSet
		source := newSource(t, pod("a", "1"))
		informer, _ := podInformerOf(t, &set, source)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = informer.Run(ctx) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		anew, _ := podInformerOf(t, &set, source)
		require.NotSame(t, informer, anew)
		end := runSet(t, &set)
		require.NoError(t, set.WaitSynced(t.Context()))
		end()
	})
}

// Fails if what the detector finds while a change is applied is reported before handlers
// are told of that change.
func TestTheReportOfAChangedObjectHoldsNoHandlerUp(t *testing.T) {
	notRaced(t)
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		reported := 0
		informer := NewInformerFor(source, InformerConfig[*object]{
			DetectMutations: MutationDetection{SampleEvery: 1, Period: 100 * time.Hour},
			ReflectorOptions: ReflectorOptions{ErrorHandler: func(_ context.Context, _ *Reflector, err error) {
				if CauseOf(err) == CauseMutated {
					reported++
					time.Sleep(time.Hour)
				}
			}},
		})
		updates := 0
		_, err := informer.AddHandler(TypedResourceEventHandlerFuncs[*object]{UpdateFunc: func(_, _ *object) { updates++ }})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error)
		go func() { over <- informer.Run(ctx) }()
		synctest.Wait()
		changeStored(informer, "a/1")
		require.NoError(t, source.Apply(labelled(pod("a", "1"), "new")))
		synctest.Wait()
		assert.Equal(t, 1, updates)
		assert.Equal(t, 1, reported)
		cancel()
		require.NoError(t, <-over)
	})
}
