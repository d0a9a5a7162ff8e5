package guarantees

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

func podInformerOf(t *testing.T, set *cache.InformerSet, source cache.Source) *cache.Informer[*object] {
	t.Helper()
	informer := cache.NewTypedInformer(source, cache.InformerConfig[*object]{})
	require.NoError(t, set.Add(informer))
	return informer
}

// runSet runs a set; end ends the run and waits.
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

func TestASetRunsInformersAddedBeforeAndDuringItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		before := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		end := runSet(t, &set)
		while := podInformerOf(t, &set, newSource(t, pod("a", "2"), pod("a", "3")))
		require.NoError(t, set.WaitSynced(t.Context()))
		require.Equal(t, 1, before.Len())
		require.Equal(t, 2, while.Len())
		end()
		require.True(t, before.Shared().IsStopped())
		require.True(t, while.Shared().IsStopped())
		require.Empty(t, set.Status())
	})
}

func TestAnInformerOfASetRunsUntilItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		source := newSource(t, pod("a", "1"))
		informer, other := podInformerOf(t, &set, source), podInformerOf(t, &set, source)
		require.NoError(t, set.Add(informer), "it is there already")
		require.Len(t, set.Status(), 2)
		end := runSet(t, &set)
		informer.Stop()
		informer.Stop()
		synctest.Wait()
		require.True(t, informer.Shared().IsStopped())
		require.False(t, other.Shared().IsStopped())
		require.Len(t, set.Status(), 1)
		another := cache.NewTypedInformer(source, cache.InformerConfig[*object]{})
		require.ErrorIs(t, set.Add(another, informer), cache.ErrInformerStopped)
		require.Len(t, set.Status(), 1, "none was added")

		anew := podInformerOf(t, &set, source)
		require.NoError(t, set.WaitSynced(t.Context()))
		require.Equal(t, 1, anew.Len())
		end()
	})
}

func TestAWaitForASetDescribesEachInformerThatHasNotSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		broken, hangs := newSource(t), newSource(t)
		broken.FailLists(1000, errors.New("no such luck"))
		hangs.HangLists(1)
		for name, source := range map[string]cache.Source{"broken": broken, "hangs": hangs, "fine": newSource(t)} {
			require.NoError(t, set.Add(cache.NewTypedInformer(source, cache.InformerConfig[*object]{Name: name, ReflectorOptions: cache.ReflectorOptions{
				Strategy: cache.ListUnpaged, ErrorHandler: (&errorRecorder{}).handle,
			}})))
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
		informer := podInformerOf(t, &set, source)
		end := runSet(t, &set)
		require.ErrorIs(t, set.Run(t.Context()), cache.ErrAlreadyRan)
		end()
		require.ErrorIs(t, set.Run(t.Context()), cache.ErrAlreadyRan)
		require.ErrorIs(t, set.Add(cache.NewTypedInformer(source, cache.InformerConfig[*object]{})), cache.ErrInformerStopped)
		informer.Stop() // has no effect after the run
	})
}

func TestAPanicOfASourceStopsTheSetAndComesOutOfRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		other := podInformerOf(t, &set, newSource(t))
		panics := newSource(t)
		podInformerOf(t, &set, &cache.ListWatch{
			ListFunc:  func(metav1.ListOptions) (apiruntime.Object, error) { panic("list") },
			WatchFunc: panics.Watch,
		})
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

// Fails if a caller waits for the informer that never runs, or if its source receives a request.
func TestAnInformerThatIsStoppedBeforeItRunsNeverRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		source := newSource(t, pod("a", "1"))
		informer := podInformerOf(t, &set, source)
		handle, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[*object]{})
		must(t, err)
		informer.Stop()
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

// A handler is removed while its informer, which has not run, is stopped. In either order no wait
// for the handler lasts forever.
func TestAHandlerIsShutDownWhileItsInformerIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // reports an endless wait as a deadlock
		for range 2000 {
			informer := cache.NewTypedInformer(quietSource, cache.InformerConfig[*object]{})
			handle, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[*object]{})
			must(t, err)
			var both sync.WaitGroup
			both.Go(informer.Stop)
			both.Go(func() { assert.NoError(t, informer.ShutDownHandler(handle)) })
			both.Wait()
		}
	})
}

// quietSource never receives a request.
var quietSource = cache.ToListerWatcherWithContext(&funcSource{})

// A run ends by itself if the error handler ends its goroutine. Fails if a program that waits for the
// set, or asks it, does not learn that one of its informers has no content.
func TestAnInformerWhoseRunEndedByItselfFailsTheSetUntilItIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		source := newSource(t, pod("a", "1"))
		source.FailLists(1, errBoom)
		old := changedInformer(t, &set, source, func(c *cache.InformerConfig[*object]) {
			c.ReflectorOptions.ErrorHandler = func(context.Context, *cache.Reflector, error) { runtime.Goexit() }
		})
		end := runSet(t, &set)
		assert.True(t, old.Shared().IsStopped())
		assert.Empty(t, set.Status())
		anew := podInformerOf(t, &set, source)
		assert.ErrorIs(t, set.WaitSynced(t.Context()), cache.ErrInformerStopped)
		set.Remove(old)
		assert.NoError(t, set.WaitSynced(t.Context()))
		assert.Equal(t, 1, anew.Len())
		end()
	})
}

// setQuestions are the methods that a set answers for all of its informers.
var setQuestions = map[string]func(*cache.InformerSet, context.Context) error{
	"Fresh":   (*cache.InformerSet).Fresh,
	"Verify":  (*cache.InformerSet).Verify,
	"Healthy": func(set *cache.InformerSet, _ context.Context) error { return set.Healthy(time.Hour) },
}

// Fails if a set whose informers have stopped, all or some, is healthy, fresh or equal to its sources.
func TestASetThatHasStoppedOrHasAStoppedInformerIsNeitherHealthyNorFreshNorEqual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		one := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		podInformerOf(t, &set, newSource(t, pod("a", "2")))
		end := runSet(t, &set)
		require.NoError(t, set.WaitSynced(t.Context()))
		check := func(wanted error) {
			for name, ask := range setQuestions {
				require.ErrorIs(t, ask(&set, t.Context()), wanted, name)
			}
		}
		check(nil)
		one.Stop()
		synctest.Wait()
		check(cache.ErrInformerStopped)
		require.NoError(t, set.WaitSynced(t.Context()), "it had synced")
		set.Remove(one)
		check(nil)
		end()
		check(cache.ErrInformerStopped)
		require.ErrorIs(t, set.WaitSynced(t.Context()), cache.ErrInformerStopped)
	})
}

func TestRemoveStopsTheInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		one := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		other := podInformerOf(t, &set, newSource(t, pod("a", "2")))
		end := runSet(t, &set)
		set.Remove(one)
		synctest.Wait()
		require.True(t, one.Shared().IsStopped())
		require.False(t, other.Shared().IsStopped())
		require.Len(t, set.Status(), 1)
		require.ErrorIs(t, set.Add(one), cache.ErrInformerStopped)
		end()
	})
}

// Fails if a wait for the set continues after a stop, or omits an informer that has not synced.
func TestAWaitForASetEndsWhenOneOfItIsStoppedAndNamesAllThatHaveNotSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		make := func(name string, script func(*cachetest.Source)) *cache.Informer[*object] {
			source := newSource(t)
			script(source)
			return changedInformer(t, &set, source, func(c *cache.InformerConfig[*object]) { c.Name = name })
		}
		hang := func(s *cachetest.Source) { s.HangLists(1) }
		make("broken", func(s *cachetest.Source) { s.FailLists(1000, errBoom) })
		stopped := make("stopped", hang)
		make("slow", hang)
		make("fine", func(*cachetest.Source) {})
		end := runSet(t, &set)
		began := time.Now()
		go func() {
			time.Sleep(10 * time.Second)
			stopped.Stop()
		}()
		err := set.WaitSynced(t.Context())
		assert.Equal(t, 10*time.Second, time.Since(began))
		assert.ErrorIs(t, err, cache.ErrInformerStopped)
		assert.ErrorIs(t, err, errBoom, "what had failed last")
		for name, text := range map[string]string{
			"broken":  "no longer waited for; retrying for 10s: ",
			"stopped": cache.ErrInformerStopped.Error() + "; stopped for 0s",
			"slow":    "no longer waited for; listing for 10s",
		} {
			title := "informer " + name + " (v1 pods)"
			assert.ErrorContains(t, err, title+" has not synced: "+text)
			assert.Equal(t, 1, strings.Count(err.Error(), title))
		}
		assert.NotContains(t, err.Error(), "fine")
		end()
	})
}

// changedInformer returns an informer of the set with a modified config.
func changedInformer(t *testing.T, set *cache.InformerSet, source cache.Source, change func(*cache.InformerConfig[*object])) *cache.Informer[*object] {
	config := cache.InformerConfig[*object]{ReflectorOptions: cache.ReflectorOptions{Strategy: cache.ListPaged, ErrorHandler: (&errorRecorder{}).handle}}
	change(&config)
	informer := cache.NewTypedInformer(source, config)
	require.NoError(t, set.Add(informer))
	return informer
}

func TestASetWithoutInformersHasNothingToWaitFor(t *testing.T) {
	var set cache.InformerSet
	require.ErrorContains(t, set.WaitSynced(t.Context()), "nothing to wait for")
}

// Only the set may call Run of its informers. Fails if the set waits for one that somebody else has
// run, or counts it as synced.
func TestAnInformerRunToItsEndOutsideItsSetFailsTheSetUntilItIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		source := newSource(t, pod("a", "1"))
		dead := podInformerOf(t, &set, source)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.NoError(t, dead.Run(ctx))
		assert.Empty(t, set.Status())
		assert.ErrorIs(t, set.WaitSynced(t.Context()), cache.ErrInformerStopped)
		set.Remove(dead)
		assert.ErrorContains(t, set.WaitSynced(t.Context()), "nothing to wait for")
		end := runSet(t, &set)
		alive := podInformerOf(t, &set, source)
		assert.NoError(t, set.WaitSynced(t.Context()))
		assert.Equal(t, 1, alive.Len())
		assert.Len(t, set.Status(), 1)
		end()
	})
}

func TestAHandlerMayStopItsInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		informer := cache.NewTypedInformer(source, cache.InformerConfig[*object]{})
		_, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[*object]{AddFunc: func(*object) { informer.Stop() }})
		must(t, err)
		require.NoError(t, informer.Run(t.Context()))
		assert.True(t, informer.Shared().IsStopped())
		assert.ErrorIs(t, informer.Run(t.Context()), cache.ErrAlreadyRan)
		assert.Equal(t, 1, informer.Len(), "what was read can still be read")
		source.Close()
	})
}
