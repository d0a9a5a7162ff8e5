package guarantees

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

func podInformerOf(t *testing.T, set *cache.InformerSet, source cache.ListerWatcher) (*cache.Informer[*object], func()) {
	t.Helper()
	informer, release, err := cache.InformerOf(set, source, cache.InformerConfig[*object]{})
	require.NoError(t, err)
	return informer, release
}

// runSet runs a set; end ends that and waits.
func runSet(t *testing.T, set *cache.InformerSet) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- set.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		require.NoError(t, <-over)
	}
}

func TestASetRunsInformersMadeBeforeAndDuringItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		before, _ := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		end := runSet(t, &set)
		while, _ := podInformerOf(t, &set, newSource(t, pod("a", "2"), pod("a", "3")))
		require.NoError(t, set.WaitSynced(t.Context()))
		require.Equal(t, 1, before.Len())
		require.Equal(t, 2, while.Len())
		end()
		require.True(t, before.Shared().IsStopped())
		require.True(t, while.Shared().IsStopped())
		require.Empty(t, set.Status())
	})
}

func TestAnInformerOfASetRunsUntilItsLastUserReleasesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		source := newSource(t, pod("a", "1"))
		informer, releaseOne := podInformerOf(t, &set, source)
		_, releaseTwo := podInformerOf(t, &set, source)
		end := runSet(t, &set)
		releaseOne()
		releaseOne() // the second time is nothing: one who wants it is left
		synctest.Wait()
		require.False(t, informer.Shared().IsStopped())
		releaseTwo()
		synctest.Wait()
		require.True(t, informer.Shared().IsStopped())

		anew, _ := podInformerOf(t, &set, source)
		require.NotSame(t, informer, anew)
		require.NoError(t, set.WaitSynced(t.Context()))
		require.Equal(t, 1, anew.Len())
		end()
	})
}

func TestWhyASetHasNotSyncedIsSaidOfEachInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		broken, hangs := newSource(t), newSource(t)
		broken.FailLists(1000, errors.New("no such luck"))
		hangs.HangLists(1)
		for name, source := range map[string]cache.ListerWatcher{"broken": broken, "hangs": hangs, "fine": newSource(t)} {
			_, _, err := cache.InformerOf(&set, source, cache.InformerConfig[*object]{Name: name, ReflectorOptions: cache.ReflectorOptions{
				Strategy: cache.ListUnpaged, ErrorHandler: (&heard{}).handle,
			}})
			require.NoError(t, err)
		}
		end := runSet(t, &set)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := set.WaitSynced(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "informer broken")
		require.ErrorContains(t, err, "no such luck")
		require.ErrorContains(t, err, "informer hangs")
		require.ErrorContains(t, err, string(cache.PhaseListing))
		require.NotContains(t, err.Error(), "fine")
		end()
	})
}

func TestASetRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		source := newSource(t, pod("a", "1"))
		_, release := podInformerOf(t, &set, source)
		end := runSet(t, &set)
		require.ErrorIs(t, set.Run(t.Context()), cache.ErrAlreadyRan)
		end()
		require.ErrorIs(t, set.Run(t.Context()), cache.ErrAlreadyRan)
		_, _, err := cache.InformerOf(&set, source, cache.InformerConfig[*object]{})
		require.ErrorIs(t, err, cache.ErrInformerStopped)
		release() // too late, and nothing
	})
}

func TestAPanicOfASourceStopsTheSetAndComesOutOfRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		other, _ := podInformerOf(t, &set, newSource(t))
		panics := newSource(t)
		_, _, err := cache.InformerOf(&set, &cache.ListWatch{
			ListFunc:  func(metav1.ListOptions) (apiruntime.Object, error) { panic("list") },
			WatchFunc: panics.Watch,
		}, cache.InformerConfig[*object]{})
		require.NoError(t, err)
		var panicked any
		func() {
			defer func() { panicked = recover() }()
			_ = set.Run(t.Context())
		}()
		require.IsType(t, &cache.PanicError{}, panicked)
		require.Equal(t, "list", panicked.(*cache.PanicError).Value)
		require.True(t, other.Shared().IsStopped())
	})
}

func TestTheIndexesOfASecondConfigAreAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		source := newSource(t, pod("a", "1"))
		byName := cache.TypedIndexers[*object]{"name": func(o *object) ([]string, error) { return []string{o.Name}, nil }}
		podInformerOf(t, &set, source)
		informer, _, err := cache.InformerOf(&set, source, cache.InformerConfig[*object]{Indexes: byName})
		require.NoError(t, err)
		_, _, err = cache.InformerOf(&set, source, cache.InformerConfig[*object]{Indexes: byName})
		require.NoError(t, err)
		end := runSet(t, &set)
		require.NoError(t, set.WaitSynced(t.Context()))
		found, err := informer.ByIndex("name", "1")
		require.NoError(t, err)
		require.Len(t, found, 1)

		_, release, err := cache.InformerOf(&set, source, cache.InformerConfig[*object]{Indexes: cache.TypedIndexers[*object]{
			"broken": func(*object) ([]string, error) { return nil, errors.New("no value") },
		}})
		require.ErrorContains(t, err, "no value")
		require.Nil(t, release)
		end()
	})
}

func TestASourceThatCannotBeComparedIsRefused(t *testing.T) {
	var set cache.InformerSet
	_, _, err := cache.InformerOf(&set, cache.ListerWatcher(funcSource{}), cache.InformerConfig[*object]{})
	require.ErrorContains(t, err, "use a pointer")
}

// funcSource is a source that is not comparable.
type funcSource struct{ _ []func() }

func (funcSource) List(metav1.ListOptions) (apiruntime.Object, error) { return nil, nil }

func (funcSource) Watch(metav1.ListOptions) (watch.Interface, error) { return nil, nil }

// Fails if somebody waits for what never runs, or the source is asked for it.
func TestAnInformerThatLeavesTheSetBeforeItRunsHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		source := newSource(t, pod("a", "1"))
		informer, release := podInformerOf(t, &set, source)
		handle, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[*object]{})
		must(t, err)
		release()
		assert.True(t, informer.Shared().IsStopped())
		assert.ErrorIs(t, cache.WaitForDone(t.Context(), handle.HasSyncedChecker()), cache.ErrInformerStopped)
		assert.ErrorIs(t, cache.WaitForDone(t.Context(), informer.HasSyncedChecker()), cache.ErrInformerStopped)
		assert.ErrorIs(t, informer.WaitSynced(t.Context()), cache.ErrInformerStopped)
		assert.NoError(t, informer.ShutDownHandler(handle), "there is nothing to wait for")
		_, err = informer.AddHandler(cache.TypedResourceEventHandlerFuncs[*object]{})
		assert.ErrorIs(t, err, cache.ErrInformerStopped)
		end := runSet(t, &set)
		assert.Zero(t, source.ListCalls())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, informer.Run(ctx), cache.ErrAlreadyRan)
		end()
	})
}

// A handler is removed while its informer, which has not run, leaves the set: whichever
// comes first, nobody waits for ever for its last call, of which there is none.
func TestAHandlerIsShutDownWhileItsInformerLeavesTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which notices who waits for ever
		for range 2000 {
			var set cache.InformerSet
			informer, release := podInformerOf(t, &set, quietSource)
			handle, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[*object]{})
			must(t, err)
			var both sync.WaitGroup
			both.Go(release)
			both.Go(func() { assert.NoError(t, informer.ShutDownHandler(handle)) })
			both.Wait()
		}
	})
}

// quietSource is never asked for anything.
var quietSource = &scripted{}

func TestConcurrentRequestsForTheSameNewIndexAllGetIt(t *testing.T) {
	byName := func(o *object) ([]string, error) { return []string{o.Name}, nil }
	for range 200 {
		var set cache.InformerSet
		first, _ := podInformerOf(t, &set, quietSource)
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				informer, _, err := cache.InformerOf(&set, quietSource, cache.InformerConfig[*object]{Indexes: cache.TypedIndexers[*object]{
					"shared": byName, "of " + itoa(i%4): byName, "own " + itoa(i): byName,
				}})
				if assert.NoError(t, err) {
					assert.Same(t, first, informer)
				}
			})
		}
		all.Wait()
		require.Len(t, first.Shared().GetIndexer().GetIndexers(), 1+1+4+8, "with that of namespaces")
	}
}

// A run ends by itself where the error handler ends its goroutine.
func TestAnInformerWhoseRunEndedByItselfLeavesTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		source := newSource(t, pod("a", "1"))
		source.FailLists(1, errBoom)
		old, _ := changedInformer(t, &set, source, func(c *cache.InformerConfig[*object]) {
			c.ReflectorOptions.ErrorHandler = func(context.Context, *cache.Reflector, error) { runtime.Goexit() }
		})
		end := runSet(t, &set)
		assert.True(t, old.Shared().IsStopped())
		assert.Empty(t, set.Status())
		anew, _ := podInformerOf(t, &set, source)
		assert.NotSame(t, old, anew)
		assert.NoError(t, set.WaitSynced(t.Context()))
		assert.Equal(t, 1, anew.Len())
		end()
	})
}

// Fails if a stop leaves those who wait for the set waiting, or hides one of those that
// have not synced.
func TestAWaitForASetEndsWhenOneOfItIsStoppedAndNamesAllThatHaveNotSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		make := func(name string, script func(*cachetest.Source)) (release func()) {
			source := newSource(t)
			script(source)
			_, release = changedInformer(t, &set, source, func(c *cache.InformerConfig[*object]) { c.Name = name })
			return release
		}
		hang := func(s *cachetest.Source) { s.HangLists(1) }
		make("broken", func(s *cachetest.Source) { s.FailLists(1000, errBoom) })
		stop := make("stopped", hang)
		make("slow", hang)
		make("fine", func(*cachetest.Source) {})
		end := runSet(t, &set)
		began := time.Now()
		go func() {
			time.Sleep(10 * time.Second)
			stop()
		}()
		err := set.WaitSynced(t.Context())
		assert.Equal(t, 10*time.Second, time.Since(began))
		assert.ErrorIs(t, err, cache.ErrInformerStopped)
		assert.ErrorIs(t, err, errBoom, "what had failed last")
		for name, phase := range map[string]cache.Phase{"broken": cache.PhasePaused, "stopped": cache.PhaseStopped, "slow": cache.PhaseListing} {
			assert.ErrorContains(t, err, "informer "+name+" of *v1.PartialObjectMetadata is "+string(phase))
		}
		assert.NotContains(t, err.Error(), "fine")
		end()
	})
}

// changedInformer is an informer of the set, with the config changed.
func changedInformer(t *testing.T, set *cache.InformerSet, source cache.ListerWatcher, change func(*cache.InformerConfig[*object])) (*cache.Informer[*object], func()) {
	config := cache.InformerConfig[*object]{ReflectorOptions: cache.ReflectorOptions{Strategy: cache.ListPaged, ErrorHandler: (&heard{}).handle}}
	change(&config)
	informer, release, err := cache.InformerOf(set, source, config)
	require.NoError(t, err)
	return informer, release
}

func TestASetWithoutInformersHasNothingToWaitFor(t *testing.T) {
	var set cache.InformerSet
	require.ErrorContains(t, set.WaitSynced(t.Context()), "nothing to wait for")
}

// Run of an informer of a set is the set's to call. Fails if one for which somebody else
// has done so counts, after its end, for those who wait for the set or ask how it is.
func TestAnInformerRunToItsEndOutsideItsSetLeavesTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		source := newSource(t, pod("a", "1"))
		dead, _ := podInformerOf(t, &set, source)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.NoError(t, dead.Run(ctx))
		assert.Empty(t, set.Status())
		assert.ErrorContains(t, set.WaitSynced(t.Context()), "nothing to wait for")
		end := runSet(t, &set)
		alive, _ := podInformerOf(t, &set, source)
		assert.NoError(t, set.WaitSynced(t.Context()))
		assert.Equal(t, 1, alive.Len())
		assert.Len(t, set.Status(), 1)
		end()
	})
}
