package guarantees

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// slowHandler takes a second for each call.
type slowHandler struct{ handled atomic.Int32 }

func (h *slowHandler) note() {
	time.Sleep(time.Second)
	h.handled.Add(1)
}
func (h *slowHandler) OnAdd(any, bool)   { h.note() }
func (h *slowHandler) OnUpdate(any, any) { h.note() }
func (h *slowHandler) OnDelete(any)      { h.note() }

// Fails if the error says that the handler had not handled the first list.
func TestWaitForARemovedHandlerSaysThatItWasRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		informer := runInformer(t, newSource(t, pod("a", "1")), cache.InformerConfig[*object]{})
		handle, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[*object]{}, cache.HandlerOptions{Name: "counting"})
		require.NoError(t, err)
		require.NoError(t, cache.WaitForDone(t.Context(), handle.HasSyncedChecker()))
		require.NoError(t, informer.RemoveHandler(handle))
		err = informer.WaitForHandler(t.Context(), handle, "1")
		require.ErrorIs(t, err, cache.ErrHandlerRemoved)
		require.EqualError(t, err, "waiting for handler counting: handler was removed")
	})
}

func TestWaitForHandlerReturnsOnceTheHandlerHasHandledTheVersion(t *testing.T) {
	for _, delivery := range []cache.Delivery{cache.Ordered, cache.Coalesced, cache.OrderedUnbounded} {
		t.Run(delivery.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"))
				informer := runInformer(t, source, cache.InformerConfig[*object]{})
				slow := &slowHandler{}
				handle, err := informer.Shared().AddEventHandlerWithOptions(slow, cache.HandlerOptions{Delivery: delivery})
				require.NoError(t, err)

				began := time.Now()
				require.NoError(t, informer.WaitForHandler(t.Context(), handle, "2"))
				require.Equal(t, 2*time.Second, time.Since(began), "the objects of its join")

				for i := range 3 {
					require.NoError(t, source.Apply(pod("a", fmt.Sprint(10+i))))
				}
				synctest.Wait()
				waited := make(chan error, 1)
				go func() { waited <- informer.WaitForHandler(t.Context(), handle, "5") }()
				synctest.Wait()
				require.NoError(t, source.Apply(pod("a", "20"), pod("a", "21"), pod("a", "22")))
				require.NoError(t, <-waited)
				require.Equal(t, 5*time.Second, time.Since(began), "not what came later")
				require.EqualValues(t, 5, slow.handled.Load())

				short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				require.ErrorIs(t, informer.WaitForHandler(short, handle, "8"), context.DeadlineExceeded)
				require.NoError(t, informer.WaitForHandler(t.Context(), handle, "8"))
				require.Equal(t, 8*time.Second, time.Since(began))
				require.NoError(t, informer.WaitForHandler(t.Context(), handle, "8"))
				require.Equal(t, 8*time.Second, time.Since(began), "it is there already")
			})
		})
	}
}

// runSlowlyHandled runs an informer of one object until a slowHandler has handled the list.
func runSlowlyHandled(t *testing.T) (*cachetest.Source, *cache.Informer[*object], cache.ResourceEventHandlerRegistration) {
	source := newSource(t, pod("a", "1"))
	informer := runInformer(t, source, cache.InformerConfig[*object]{})
	handle, err := informer.Shared().AddEventHandler(&slowHandler{})
	require.NoError(t, err)
	require.NoError(t, informer.WaitForHandler(t.Context(), handle, "1"))
	return source, informer, handle
}

// Fails if a wait ends before the last change that was pending at the call, or if one that need not
// wait allocates.
func TestWaitForHandlerWaitsForWhatIsPendingAndForNothingLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, informer, handle := runSlowlyHandled(t)
		if !underRace {
			require.Zero(t, testing.AllocsPerRun(100, func() { _ = informer.WaitForHandler(t.Context(), handle, "1") }))
		}
		for i := range 3 {
			require.NoError(t, source.Apply(pod("a", fmt.Sprint(i+2))))
		}
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		require.ErrorContains(t, informer.WaitForHandler(short, handle, "4"),
			"whose call has not returned, with 2 more changes pending")
		began, waited := time.Now(), make(chan error)
		go func() { waited <- informer.WaitForHandler(t.Context(), handle, "4") }()
		synctest.Wait()
		require.NoError(t, source.Apply(pod("a", "5")))
		require.NoError(t, <-waited)
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}

// The changes of a list are unordered, and one may replace several of its object. Fails if a wait
// ends at the first change that is newer than the version.
func TestWaitForHandlerWaitsForTheWholeList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		informer := runInformer(t, source, cache.InformerConfig[*object]{ReflectorOptions: cache.ReflectorOptions{Strategy: cache.ListPaged}})
		slow := &slowHandler{}
		handle, err := informer.Shared().AddEventHandler(slow)
		require.NoError(t, err)
		source.CloseWatches()
		for _, name := range []string{"1", "6", "5", "4", "3", "2", "6"} { // the list is by name
			require.NoError(t, source.Apply(pod("a", name)))
		}
		source.CompactAll()
		require.NoError(t, informer.WaitForHandler(t.Context(), handle, "3"))
		require.EqualValues(t, 6, slow.handled.Load())
	})
}

// Fails if a resync that begins during the last call extends the wait, possibly forever.
func TestWaitForHandlerIsNotHeldByResyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3"))
		informer := runInformer(t, source, cache.InformerConfig[*object]{})
		period := time.Second
		handle, err := informer.Shared().AddEventHandlerWithOptions(&slowHandler{}, cache.HandlerOptions{ResyncPeriod: &period})
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		require.NoError(t, source.Apply(pod("a", "1")))
		began := time.Now()
		require.NoError(t, informer.WaitForHandler(t.Context(), handle, "4"))
		require.Less(t, time.Since(began), 10*time.Second)
	})
}

// Fails if a removed idle handler counts as one that has handled a change that it never receives.
func TestWaitForHandlerFailsForARemovedHandlerThatWasIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, informer, handle := runSlowlyHandled(t)
		require.NoError(t, informer.RemoveHandler(handle))
		require.NoError(t, source.Apply(pod("a", "2")))
		for range 100 {
			require.ErrorIs(t, informer.WaitForHandler(t.Context(), handle, "2"), cache.ErrHandlerRemoved)
		}
	})
}

func TestWaitForHandlerEndsWithTheHandlerAndRefusesThoseOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		informer, other := runInformer(t, source, cache.InformerConfig[*object]{}), runInformer(t, source, cache.InformerConfig[*object]{})
		handle, err := informer.Shared().AddEventHandler(&slowHandler{})
		require.NoError(t, err)
		require.ErrorIs(t, other.WaitForHandler(t.Context(), handle, "1"), cache.ErrForeignRegistration)
		require.ErrorIs(t, informer.WaitForHandler(t.Context(), nil, "1"), cache.ErrForeignRegistration)

		ended := make(chan error)
		go func() { ended <- informer.WaitForHandler(context.Background(), handle, "1") }()
		synctest.Wait()
		require.NoError(t, informer.RemoveHandler(handle))
		require.ErrorIs(t, <-ended, cache.ErrHandlerRemoved)

		handle, err = informer.Shared().AddEventHandler(&slowHandler{})
		require.NoError(t, err)
		go func() { ended <- informer.WaitForHandler(context.Background(), handle, "1") }()
		synctest.Wait()
		informer.Stop()
		require.ErrorIs(t, <-ended, cache.ErrInformerStopped)
	})
}

func TestTheStatusSaysUpToWhichVersionAHandlerHasBeenNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		informer := runInformer(t, source, cache.InformerConfig[*object]{})
		_, err := informer.Shared().AddEventHandler(&slowHandler{})
		require.NoError(t, err)
		notified := func() string { return informer.Status().Handlers[0].NotifiedVersion }
		require.Empty(t, notified())
		sleep(time.Second)
		require.Equal(t, "1", notified())

		require.NoError(t, source.Apply(pod("a", "2"), pod("a", "3")))
		sleep(1500 * time.Millisecond)
		require.Equal(t, "3", informer.Status().AppliedVersion)
		require.Equal(t, "1", notified(), "one of two was handled, and the version says less rather than more")
		sleep(time.Second)
		require.Equal(t, "3", notified())
	})
}

func TestChangesOfTheStatusAreAnIteratorAndACallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		var phases []cache.Phase
		informer := cache.NewTypedInformer(source, cache.InformerConfig[*object]{ReflectorOptions: cache.ReflectorOptions{
			Strategy:     cache.ListPaged,
			ErrorHandler: (&errorRecorder{}).handle,
			PhaseHandler: func(_ *cache.Reflector, status cache.Status) { phases = append(phases, status.Phase) },
		}})
		var seen []string
		over := make(chan struct{})
		go func() {
			defer close(over)
			for status := range informer.StatusChanges(t.Context()) {
				seen = append(seen, fmt.Sprintf("%s %t %d", status.Phase, status.Synced, len(status.Failures)))
			}
		}()
		synctest.Wait()
		require.Equal(t, []string{"idle false 0"}, seen)
		done := make(chan error)
		go func() { done <- informer.Run(context.Background()) }()
		sleep(time.Minute)
		source.BreakWatches(cachetest.ErrInternal())
		sleep(time.Minute)
		informer.Stop()
		require.NoError(t, <-done)
		<-over // the iterator ends with the informer
		require.Equal(t, "watching true 0", seen[1:][slices.Index(seen[1:], "watching true 0")])
		require.Contains(t, seen, "paused true 1")
		require.Equal(t, "stopped true 1", seen[len(seen)-1])
		require.Equal(t, []cache.Phase{"listing", "watching", "paused", "listing", "watching", "stopped"}, phases)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range informer.StatusChanges(ctx) {
			break // a loop may end it, and one that has stopped has one status
		}
	})
}

func TestTheStatusCountsFailuresByCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		informer := runInformer(t, source, cache.InformerConfig[*object]{ReflectorOptions: cache.ReflectorOptions{ErrorHandler: (&errorRecorder{}).handle}})
		before := informer.Status().Failures
		require.Empty(t, before)
		for range 3 {
			source.BreakWatches(cachetest.ErrInternal())
			sleep(time.Minute)
		}
		source.FailWatches(1, cachetest.ErrConnectionRefused())
		source.CloseWatches()
		sleep(time.Minute)
		require.Equal(t, map[cache.Cause]int64{causeStream: 3, cache.CauseConnectionRefused: 1}, informer.Status().Failures)
		require.Empty(t, before, "a status does not change")
	})
}

// Equal contents have equal checksums, whatever their history, so that replicas are comparable.
func TestTheChecksumIsThatOfTheContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		source := newSource(t, pod("a", "1"))
		first := runInformer(t, source, cache.InformerConfig[*object]{})
		seen := map[uint64]bool{}
		for range 20 {
			require.NoError(t, source.Apply(pod("a", fmt.Sprint(random.IntN(9))), pod("b", fmt.Sprint(random.IntN(9)))))
			_, err := source.Delete("a", "1")
			require.True(t, err == nil || apierrors.IsNotFound(err))
			synctest.Wait()
			late := runInformer(t, source, cache.InformerConfig[*object]{ReflectorOptions: cache.ReflectorOptions{Strategy: cache.ListStreaming}})
			require.Equal(t, late.Status().Checksum, first.Status().Checksum)
			require.Equal(t, late.Len(), first.Status().Objects)
			seen[late.Status().Checksum] = true
		}
		require.Greater(t, len(seen), 10)
	})
}

func TestProfilesNameTheReflectorAndTheHandlerOfAGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		informer := runInformer(t, source, cache.InformerConfig[*object]{Name: "labelled"})
		_, err := informer.Shared().AddEventHandlerWithOptions(&slowHandler{}, cache.HandlerOptions{Name: "slow"})
		require.NoError(t, err)
		synctest.Wait()
		var profile bytes.Buffer
		require.NoError(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
		assert.Contains(t, profile.String(), `labels: {"reflector":"labelled"}`)
		assert.Contains(t, profile.String(), `labels: {"handler":"slow", "reflector":"labelled"}`)
		sleep(time.Second)
	})
}

func TestAStatusCostsOneAllocation(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates")
	}
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		informer := runInformer(t, source, cache.InformerConfig[*object]{})
		_, err := informer.Shared().AddEventHandler(&recorder{})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 1.0, testing.AllocsPerRun(100, func() { informer.Status() }), "the handlers'")
		source.BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		require.NotNil(t, informer.Status().LastFailure)
		require.Equal(t, 1.0, testing.AllocsPerRun(100, func() { informer.Status() }), "also after a failure")
	})
}

func TestAStatusWithAQuarantinedObjectCostsOneAllocationMore(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates")
	}
	synctest.Test(t, func(t *testing.T) {
		informer := runInformer(t, newSource(t, pod("a", "1"), pod("a", "bad")), cache.InformerConfig[*object]{
			Transform: func(obj *object) (*object, error) {
				if obj.Name != "1" {
					return nil, errBoom
				}
				return obj, nil
			},
			ReflectorOptions: cache.ReflectorOptions{ErrorHandler: (&errorRecorder{}).handle},
		})
		_, err := informer.Shared().AddEventHandler(&recorder{})
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, informer.Status().Quarantined, 1)
		require.Equal(t, 2.0, testing.AllocsPerRun(100, func() { informer.Status() }))
	})
}

// Fails if the status waits for a lock of the goroutine that applies events or of one that calls a
// handler, or they for it.
func TestStatusAcquiresNoLockOfTheEventPath(t *testing.T) {
	source := newSource(t, pod("a", "1"))
	informer := cache.NewTypedInformer[*object](source, cache.InformerConfig[*object]{})
	for _, delivery := range []cache.Delivery{cache.Ordered, cache.Coalesced} {
		_, err := informer.Shared().AddEventHandlerWithOptions(&recorder{}, cache.HandlerOptions{Delivery: delivery})
		require.NoError(t, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over, looked := make(chan error, 1), make(chan struct{})
	go func() { over <- informer.Run(ctx) }()
	require.NoError(t, informer.WaitSynced(ctx))
	runtime.SetBlockProfileRate(1)
	defer runtime.SetBlockProfileRate(0)
	defer runtime.SetMutexProfileFraction(runtime.SetMutexProfileFraction(1))
	looking, stop := context.WithCancel(ctx)
	go func() {
		defer close(looked)
		for looking.Err() == nil {
			informer.Status()
			runtime.Gosched() // on one processor each wake-up of the others would take a time slice
		}
	}()
	for i := range 20_000 {
		require.NoError(t, source.Apply(pod("a", fmt.Sprint(i%100))))
	}
	require.NoError(t, informer.WaitForResourceVersion(ctx, source.ResourceVersion()))
	stop() // first: the end of the informer acquires its lock, as Status does
	<-looked
	cancel()
	require.NoError(t, <-over)
	for _, kind := range []string{"block", "mutex"} { // goroutines that waited, and holders of contended locks
		var profile bytes.Buffer
		require.NoError(t, pprof.Lookup(kind).WriteTo(&profile, 1))
		for _, stack := range strings.Split(profile.String(), "\n\n") {
			locks := strings.Contains(stack, "sync.(*") && strings.Contains(stack, "cache.observed.Status")
			require.False(t, locks, "%s\n%s", kind, stack)
		}
	}
}
