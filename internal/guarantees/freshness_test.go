package guarantees

import (
	"context"
	"errors"
	"fmt"
	runtimepkg "runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// runInformer runs an informer of a source until the test ends, and waits until it has synced.
func runInformer(t *testing.T, source cache.Source, config cache.InformerConfig[*object]) *cache.Informer[*object] {
	t.Helper()
	informer := cache.NewTypedInformer(source, config)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- informer.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-over)
	})
	require.NoError(t, informer.WaitSynced(t.Context()))
	synctest.Wait()
	return informer
}

// requestsOf counts the lists and watches that a source has received.
func requestsOf(source *cachetest.Source) (lists, watches int) {
	for _, request := range source.Requests() {
		if request.Verb == cachetest.VerbList {
			lists++
		} else {
			watches++
		}
	}
	return lists, watches
}

// Fails if Fresh or Verify succeeds although the source panics or ends its goroutine.
func TestFreshAndVerifyFailIfTheSourceDoesNotReturn(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("boom") }, "exit": runtimepkg.Goexit} {
		for method, call := range map[string]func(*cache.Informer[*object], context.Context) error{
			"Fresh": (*cache.Informer[*object]).Fresh, "Verify": (*cache.Informer[*object]).Verify,
		} {
			t.Run(method+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source, leaves := newSource(t, pod("a", "1")), false
					informer := cache.NewTypedInformer[*object](&cache.ListWatch{
						ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
							if leaves {
								leave()
							}
							return source.ListWithContext(ctx, options)
						},
						WatchFuncWithContext: source.WatchWithContext,
					}, cache.InformerConfig[*object]{})
					ctx, cancel := context.WithCancel(t.Context())
					over := make(chan any, 1)
					go func() {
						defer func() { over <- recover() }()
						_ = informer.Run(ctx)
					}()
					require.NoError(t, informer.WaitSynced(t.Context()))
					synctest.Wait()
					leaves = true
					require.Error(t, call(informer, t.Context()))
					cancel()
					require.Equal(t, name == "panic", <-over != nil)
				})
			})
		}
	}
}

func TestWaitForResourceVersionReturnsWhenTheStoreHasTheVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		informer := runInformer(t, source, cache.InformerConfig[*object]{})
		require.NoError(t, informer.WaitForResourceVersion(t.Context(), "1"))
		source.DelayEvents(200 * time.Millisecond)

		begun := time.Now()
		require.NoError(t, source.Apply(pod("a", "2"), pod("a", "3")))
		require.NoError(t, informer.WaitForResourceVersion(t.Context(), "2"))
		_, err := informer.Get("a/2")
		require.NoError(t, err, "what the version has can be read")
		require.NoError(t, informer.WaitForResourceVersion(t.Context(), "3"))
		require.Less(t, time.Since(begun), time.Second)

		zero := testing.AllocsPerRun(100, func() { _ = informer.WaitForResourceVersion(t.Context(), "3") })
		require.Zero(t, zero, "a version that is there costs nothing")
	})
}

func TestWaitForResourceVersionWaitsWhileTheStoresVersionIsNoNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := watch.NewFake()
		informer := runInformer(t, cache.ToListerWatcherWithContext(&cache.ListWatch{
			ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
				return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "empty"}}, nil
			},
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return events, nil },
		}), cache.InformerConfig[*object]{})
		require.NoError(t, informer.WaitForResourceVersion(t.Context(), "empty"))
		waited := make(chan error, 1)
		go func() { waited <- informer.WaitForResourceVersion(t.Context(), "7") }()
		synctest.Wait()
		require.Empty(t, waited)
		first := pod("a", "1")
		first.ResourceVersion = "7"
		events.Add(first)
		require.NoError(t, <-waited)
	})
}

// Fails if a wait that cannot succeed lasts until its context ends.
func TestWaitForResourceVersionFailsWhereTheVersionOfAStoreWithObjectsIsNoNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := watch.NewFake()
		informer := runInformer(t, cache.ToListerWatcherWithContext(&cache.ListWatch{
			ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
				return &metav1.PartialObjectMetadataList{
					ListMeta: metav1.ListMeta{ResourceVersion: "v1"}, Items: []object{*podAt("a", "1", "v1")},
				}, nil
			},
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return events, nil },
		}), cache.InformerConfig[*object]{})
		require.NoError(t, informer.WaitForResourceVersion(t.Context(), "v1"))
		var invalid resourceversion.InvalidResourceVersion
		require.ErrorAs(t, informer.WaitForResourceVersion(t.Context(), "7"), &invalid)
		waited := make(chan error, 1)
		events.Delete(podAt("a", "1", "v2"))
		synctest.Wait()
		go func() { waited <- informer.WaitForResourceVersion(t.Context(), "7") }()
		synctest.Wait()
		require.Empty(t, waited, "an empty store may have a word")
		events.Add(podAt("a", "1", "v3"))
		require.ErrorAs(t, <-waited, &invalid)
	})
}

func TestWaitForResourceVersionSaysWhyAVersionWillNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3"))
		informer := cache.NewTypedInformer[*object](source, cache.InformerConfig[*object]{})
		var invalid resourceversion.InvalidResourceVersion
		require.ErrorAs(t, informer.WaitForResourceVersion(t.Context(), "x1"), &invalid)
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- informer.Run(ctx) }()
		require.NoError(t, informer.WaitSynced(t.Context()))

		late, stop := context.WithTimeoutCause(t.Context(), time.Second, errors.New("too late"))
		defer stop()
		require.ErrorContains(t, informer.WaitForResourceVersion(late, "9"), "too late")

		waits := make(chan error, 1)
		go func() { waits <- informer.WaitForResourceVersion(t.Context(), "9") }()
		synctest.Wait()
		require.NoError(t, source.Rollback(2))
		source.BreakWatches(cachetest.ErrExpired())
		var regression *cache.VersionRegressionError
		require.ErrorAs(t, <-waits, &regression)
		require.Equal(t, "3", regression.Current)

		go func() { waits <- informer.WaitForResourceVersion(t.Context(), "9") }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-waits, cache.ErrInformerStopped)
		require.NoError(t, <-over)
	})
}

func TestFreshOnABusyTypeNeedsOneList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		informer := runInformer(t, source, cache.InformerConfig[*object]{})
		lists, watches := requestsOf(source)
		source.DelayEvents(50 * time.Millisecond)
		require.NoError(t, source.Apply(pod("a", "2")))
		begun := time.Now()
		require.NoError(t, informer.Fresh(t.Context()))
		require.LessOrEqual(t, time.Since(begun), 100*time.Millisecond)
		_, err := informer.Get("a/2")
		require.NoError(t, err)
		listsAfter, watchesAfter := requestsOf(source)
		require.Equal(t, lists+1, listsAfter)
		require.Equal(t, watches, watchesAfter)
	})
}

func TestFreshOnAQuietTypeRequestsABookmark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		informer := runInformer(t, source, cache.InformerConfig[*object]{})
		lists, watches := requestsOf(source)
		source.Advance(1000) // objects of other types were written
		begun := time.Now()
		require.NoError(t, informer.Fresh(t.Context()))
		require.LessOrEqual(t, time.Since(begun), 1500*time.Millisecond)
		listsAfter, watchesAfter := requestsOf(source)
		require.Equal(t, lists+1, listsAfter)
		require.Equal(t, watches+1, watchesAfter)
	})
}

// An API server only sends bookmarks newer than its state when the watch began, so none if nothing
// is written afterwards.
func TestFreshListsWhereNoBookmarkComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		informer := runInformer(t, &cache.ListWatch{
			ListWithContextFunc: source.ListWithContext,
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.AllowWatchBookmarks = false
				return source.WatchWithContext(ctx, options)
			},
		}, cache.InformerConfig[*object]{})
		source.Advance(1000)
		lists, watches := requestsOf(source)
		began := time.Now()
		require.NoError(t, informer.Verify(t.Context()))
		require.Equal(t, 3100*time.Millisecond, time.Since(began))
		require.NoError(t, informer.Fresh(t.Context()))
		require.Equal(t, "1001", informer.ResourceVersion())
		synctest.Wait()
		listsAfter, watchesAfter := requestsOf(source)
		require.Equal(t, lists+3, listsAfter, "one to compare, one for the version, and that of the reflector")
		require.Equal(t, watches+2, watchesAfter, "a short one, and that of the reflector after its list")
		_, err := source.DeleteSilently("a", "1")
		require.NoError(t, err)
		require.NoError(t, informer.Verify(t.Context()), "the watch may yet bring the deletion")
		require.Zero(t, informer.Len())
	})
}

func TestConcurrentCallsOfFreshShareTheNextRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		informer := runInformer(t, source, cache.InformerConfig[*object]{})
		lists, _ := requestsOf(source)
		source.DelayLists(time.Second)
		results := make(chan error, 100)
		for range 50 {
			go func() { results <- informer.Fresh(t.Context()) }()
		}
		synctest.Wait()
		require.NoError(t, source.Apply(pod("a", "2"))) // the first request may not see this
		for range 50 {
			go func() { results <- informer.Fresh(t.Context()) }()
		}
		for range 100 {
			require.NoError(t, <-results)
		}
		after, _ := requestsOf(source)
		require.LessOrEqual(t, after-lists, 3, "one for the first caller, one for those that came while it ran")
	})
}

// Fails if Fresh gives up because the source neither ends its watch nor sends anything on it.
func TestFreshDuringAnOutageOfTheWatchListsTheWriteBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, reported := newSource(t, pod("a", "1")), &errorRecorder{}
		informer := runInformer(t, source, cache.InformerConfig[*object]{
			ReflectorOptions: cache.ReflectorOptions{ErrorHandler: reported.handle},
		})
		source.Silence()
		require.NoError(t, source.Apply(pod("a", "2")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, informer.Fresh(ctx))
		_, err := informer.Get("a/2")
		require.NoError(t, err)
		require.NotEmpty(t, reported.all())
		require.Equal(t, cache.CauseOverdueWatch, cache.CauseOf(reported.all()[0]))
	})
}

// Fails if Verify of a source that ignores timeouts and sends no bookmarks can compare nothing.
func TestVerifyOfASourceThatEndsNoWatchComparesAfterAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewTestSource(t, cachetest.Options{IgnoreTimeouts: true, BookmarkInterval: -1})
		source.MustApply(t, pod("a", "1"), pod("a", "2"))
		informer := runInformer(t, source, cache.InformerConfig[*object]{
			ReflectorOptions: cache.ReflectorOptions{ErrorHandler: (&errorRecorder{}).handle},
		})
		source.Advance(5)
		_, err := source.DeleteSilently("a", "1")
		require.NoError(t, err)
		require.NoError(t, informer.Verify(t.Context()), "the list has repaired the difference")
		require.Equal(t, 1, informer.Len())
	})
}

func TestFreshSaysWhatItCouldNotFindOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		require.ErrorContains(t, cache.NewTypedInformer[*object](source, cache.InformerConfig[*object]{}).Fresh(t.Context()), "not been started")
		informer := runInformer(t, source, cache.InformerConfig[*object]{})
		source.FailLists(1, cachetest.ErrInternal())
		require.Equal(t, cache.CauseInternal, cache.CauseOf(informer.Fresh(t.Context())))
		source.FailWatches(1, cachetest.ErrTooManyRequests(1))
		source.Advance(10)
		require.Equal(t, cache.CauseTooManyRequests, cache.CauseOf(informer.Fresh(t.Context())))
		require.NoError(t, source.Apply(pod("a", "2")))
		synctest.Wait()
		require.NoError(t, source.Rollback(1))
		var regression *cache.VersionRegressionError
		require.ErrorAs(t, informer.Fresh(t.Context()), &regression)
	})
}

func TestFreshOfASetAsksAllSourcesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set cache.InformerSet
		one, two := newSource(t, pod("a", "1")), newSource(t, pod("a", "2"))
		podInformerOf(t, &set, one)
		podInformerOf(t, &set, two)
		end := runSet(t, &set)
		require.NoError(t, set.WaitSynced(t.Context()))
		one.Advance(5)
		two.Advance(5)
		begun := time.Now()
		require.NoError(t, set.Fresh(t.Context()))
		require.LessOrEqual(t, time.Since(begun), 1500*time.Millisecond)
		end()
		require.ErrorIs(t, set.Fresh(t.Context()), cache.ErrInformerStopped)
	})
}

// questions are the informer's methods that send requests to the source.
var questions = map[string]func(*cache.Informer[*object], context.Context) error{
	"Fresh": (*cache.Informer[*object]).Fresh, "Verify": (*cache.Informer[*object]).Verify,
}

// Fails if a request outlives the informer or is made after Run has returned, or if a caller waits
// for a source that ignores its context.
func TestFreshAndVerifyEndWithTheInformer(t *testing.T) {
	for name, ask := range questions {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"))
				informer := cache.NewTypedInformer[*object](source, cache.InformerConfig[*object]{})
				require.ErrorContains(t, ask(informer, t.Context()), "not been started")
				ctx, cancel := context.WithCancel(t.Context())
				over, answer := make(chan error, 1), make(chan error, 1)
				go func() { over <- informer.Run(ctx) }()
				require.NoError(t, informer.WaitSynced(t.Context()))
				source.HangListsIgnoringContext(1)
				go func() { answer <- ask(informer, t.Context()) }()
				synctest.Wait()

				ended := time.Now()
				cancel()
				require.ErrorIs(t, <-answer, cache.ErrInformerStopped)
				require.Equal(t, ended, time.Now(), "the source has not answered yet")
				synctest.Wait()
				require.Empty(t, over, "Run waits for the call into the source")
				source.ReleaseHanging()
				require.NoError(t, <-over)
				lists, watches := requestsOf(source)
				time.Sleep(time.Minute)
				require.ErrorIs(t, ask(informer, t.Context()), cache.ErrInformerStopped)
				listsAfter, watchesAfter := requestsOf(source)
				require.Equal(t, lists, listsAfter, "nothing is asked after Run")
				require.Equal(t, watches, watchesAfter)
			})
		})
	}
}

func TestFreshAndVerifyReportASourceThatIgnoresTheirContextAndDoNotWait(t *testing.T) {
	for name, ask := range questions {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"))
				reported := make(chan error, 10)
				informer := runInformer(t, source, cache.InformerConfig[*object]{ReflectorOptions: cache.ReflectorOptions{
					ErrorHandler: func(_ context.Context, _ *cache.Reflector, err error) { reported <- err },
				}})
				source.HangListsIgnoringContext(1)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				require.ErrorIs(t, ask(informer, ctx), context.DeadlineExceeded)
				require.Equal(t, time.Second, time.Since(began))
				time.Sleep(30*time.Second - 1)
				require.Empty(t, reported)
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				var slow *cache.SlowSourceError
				require.Len(t, reported, 1)
				require.ErrorAs(t, <-reported, &slow)
				require.Equal(t, cache.SlowSourceError{Op: name, Waited: 30 * time.Second}, *slow)
				source.ReleaseHanging()
				require.NoError(t, ask(informer, t.Context()))
				require.Empty(t, reported)
			})
		})
	}
}

func TestVerifyFindsAndRepairsEveryDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"), pod("b", "3"))
		informer := runInformer(t, source, cache.InformerConfig[*object]{})
		require.NoError(t, informer.Verify(t.Context()))
		lists, watches := requestsOf(source)

		outdated, err := informer.Get("a/1")
		require.NoError(t, err)
		require.NoError(t, source.Apply(pod("a", "1")))
		_, err = source.DeleteSilently("b", "3")
		require.NoError(t, err)
		require.NoError(t, source.Apply(pod("a", "4")))
		synctest.Wait()
		store := informer.Shared().GetStore()
		require.NoError(t, store.Update(outdated))
		lost, err := informer.Get("a/4")
		require.NoError(t, err)
		require.NoError(t, store.Delete(lost))

		var found *cache.DivergenceError
		require.ErrorAs(t, informer.Verify(t.Context()), &found)
		require.Equal(t, []string{"a/1"}, found.Outdated)
		require.Equal(t, []string{"a/4"}, found.Missing)
		require.Equal(t, []string{"b/3"}, found.Extra)
		require.EqualError(t, found, "the store of "+found.Name+" differed from its source; 1 missing: [\"a/4\"]; 1 extra: [\"b/3\"]; 1 outdated: [\"a/1\"]")
		listsAfter, watchesAfter := requestsOf(source)
		require.Equal(t, lists+2, listsAfter, "two to compare, since objects were missing")
		require.Equal(t, watches+1, watchesAfter, "a streaming list to repair")

		require.NoError(t, informer.Verify(t.Context()), "it was repaired")
		repaired, err := informer.Get("a/1")
		require.NoError(t, err)
		require.NotEqual(t, outdated.GetResourceVersion(), repaired.GetResourceVersion())
	})
}

func TestTheListOfARepairDeliversOnlyTheDifferences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		for i := range 250 { // in several parts
			require.NoError(t, source.Apply(pod("a", fmt.Sprint(i))))
		}
		informer := runInformer(t, source, cache.InformerConfig[*object]{
			Transform: func(obj *object) (*object, error) { return obj, nil },
		})
		var received []string
		_, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[*object]{
			UpdateFunc: func(_, obj *object) { received = append(received, "update "+obj.Name) },
			DeleteFunc: func(obj cache.DeletedObject[*object]) { received = append(received, "delete "+obj.GetKey()) },
		})
		require.NoError(t, err)
		_, err = source.DeleteSilently("a", "2")
		require.NoError(t, err)
		require.ErrorAs(t, informer.Verify(t.Context()), new(*cache.DivergenceError))
		synctest.Wait()
		require.Equal(t, []string{"delete a/2"}, received)
	})
}

func TestVerifyWaitsUntilTheStoreIsAsNewAsTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3"))
		informer := runInformer(t, source, cache.InformerConfig[*object]{})
		source.Advance(50)
		require.NoError(t, informer.Verify(t.Context()))
		_, err := source.DeleteSilently("a", "2")
		require.NoError(t, err)
		lost, err := informer.Get("a/3")
		require.NoError(t, err)
		require.NoError(t, informer.Shared().GetStore().Delete(lost))
		var found *cache.DivergenceError
		require.ErrorAs(t, informer.Verify(t.Context()), &found)
		require.Equal(t, []string{"a/2"}, found.Extra)
		require.Equal(t, []string{"a/3"}, found.Missing)
		require.NoError(t, informer.Verify(t.Context()))
	})
}

// Fails if a failed list is compared as an empty one, or as one without differences.
func TestVerifyReturnsTheErrorOfAListThatFails(t *testing.T) {
	for failing := 1; failing <= 2; failing++ {
		t.Run(fmt.Sprint("list ", failing), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, lists := newSource(t, pod("a", "1"), pod("a", "2")), 0
				informer := runInformer(t, source, cache.InformerConfig[*object]{})
				lost, err := informer.Get("a/2")
				require.NoError(t, err)
				require.NoError(t, informer.Shared().GetStore().Delete(lost))
				source.OnList(func(metav1.ListOptions) error {
					if lists++; lists == failing {
						return cachetest.ErrInternal()
					}
					return nil
				})
				require.True(t, apierrors.IsInternalError(informer.Verify(t.Context())))
				require.Equal(t, failing, lists)
				require.Equal(t, []string{"a/1"}, informer.Shared().GetStore().ListKeys(), "nothing is repaired")
				var found *cache.DivergenceError
				require.ErrorAs(t, informer.Verify(t.Context()), &found)
				require.Equal(t, []string{"a/2"}, found.Missing)
			})
		})
	}
}

// shortWatch returns a source whose short watches, as Fresh and Verify open them beside the
// reflector's, send events and end.
func shortWatch(source *cachetest.Source, events ...watch.Event) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: source.ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if *options.TimeoutSeconds > 3 {
				return source.WatchWithContext(ctx, options)
			}
			short := watch.NewFakeWithChanSize(len(events), false)
			for _, event := range events {
				short.Action(event.Type, event.Object)
			}
			short.Stop()
			return short, nil
		},
	}
}

// Fails if the store is compared before it has the version of the short watch, or if that watch had
// none.
func TestVerifyWaitsForWhatItsShortWatchHasShownBeforeItWasCut(t *testing.T) {
	for name, events := range map[string][]watch.Event{
		"all":     {{Type: watch.Modified, Object: podAt("a", "1", "3")}, {Type: watch.Deleted, Object: podAt("a", "2", "4")}},
		"some":    {{Type: watch.Modified, Object: podAt("a", "1", "3")}},
		"nothing": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"))
				informer := runInformer(t, shortWatch(source, events...), cache.InformerConfig[*object]{})
				source.DelayEvents(2 * time.Second)
				require.NoError(t, source.Apply(pod("a", "1")))
				_, err := source.Delete("a", "2")
				require.NoError(t, err)
				lists, _ := requestsOf(source)
				require.NoError(t, informer.Verify(t.Context()))
				require.Equal(t, []string{"a/1"}, informer.Shared().GetStore().ListKeys())
				after, _ := requestsOf(source)
				if after -= lists; name == "all" {
					require.Equal(t, 1, after, "the events are proof enough")
				}
			})
		})
	}
}

func TestVerifyListsWhereTheVersionHasExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		informer := runInformer(t, source, cache.InformerConfig[*object]{})
		source.Advance(50)
		source.CompactAll()
		require.NoError(t, informer.Verify(t.Context()))
		require.NoError(t, informer.Fresh(t.Context()))
	})
}

func TestVerifyDoesNotMissWhatATransformOrTheQuarantineLeavesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "unwanted"), pod("a", "failing"), pod("a", "kept"))
		informer := runInformer(t, source, cache.InformerConfig[*object]{
			Transform: func(obj *object) (*object, error) {
				switch obj.Name {
				case "unwanted":
					return nil, nil
				case "failing":
					return nil, errors.New("failed")
				}
				return obj, nil
			},
			ReflectorOptions: cache.ReflectorOptions{ErrorHandler: func(context.Context, *cache.Reflector, error) {}},
		})
		require.Equal(t, 1, informer.Len())
		require.NoError(t, informer.Verify(t.Context()))
	})
}

func TestVerifyFindsNoDifferenceInAnItemThatCouldNotBeDecoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, lists := newSource(t, pod("a", "1"), pod("a", "2")), 0
		informer := runInformer(t, &cache.ListWatch{
			WatchFuncWithContext: source.WatchWithContext,
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				if lists++; lists > 1 {
					return source.ListWithContext(ctx, options)
				}
				return &metav1.List{
					ListMeta: metav1.ListMeta{ResourceVersion: source.ResourceVersion()},
					Items: []runtime.RawExtension{
						{Object: podAt("a", "1", "1")}, {Object: &intakeUndecoded{*podAt("a", "2", "2")}},
					},
				}, nil
			},
		}, cache.InformerConfig[*object]{ReflectorOptions: cache.ReflectorOptions{
			ErrorHandler: func(context.Context, *cache.Reflector, error) {},
		}})
		require.Len(t, informer.Status().Quarantined, 1)
		err := informer.Verify(t.Context())
		var found *cache.DivergenceError
		if errors.As(err, &found) {
			require.NotContains(t, found.Missing, "a/2")
		}
	})
}

func TestVerifyFindsNoDifferenceInAnObjectWhoseKeyFunctionFails(t *testing.T) {
	for way, name := range map[string]func(*object) string{
		"keys are names":  func(obj *object) string { return obj.Namespace + "/" + obj.Name },
		"keys are others": func(obj *object) string { return "of " + obj.Name },
	} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"))
				informer := runInformer(t, source, cache.InformerConfig[*object]{
					KeyFunction: func(obj any) (string, error) {
						if labelled := obj.(*object); labelled.Labels["key"] != "none" {
							return name(labelled), nil
						}
						return "", errors.New("failed")
					},
					ReflectorOptions: cache.ReflectorOptions{ErrorHandler: func(context.Context, *cache.Reflector, error) {}},
				})
				keyless := pod("a", "2")
				keyless.Labels = map[string]string{"key": "none"}
				require.NoError(t, source.Apply(keyless))
				synctest.Wait()
				require.Equal(t, 2, informer.Len(), "the earlier state stays")
				require.NoError(t, informer.Verify(t.Context()))
				_, err := source.DeleteSilently("a", "1")
				require.NoError(t, err)
				var found *cache.DivergenceError
				require.ErrorAs(t, informer.Verify(t.Context()), &found)
				require.Len(t, found.Extra, 1)
				require.Contains(t, found.Extra[0], "1")
			})
		})
	}
}

func TestVerifyOfASourceThatChangesMeanwhileFindsNoDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		informer := runInformer(t, source, cache.InformerConfig[*object]{})
		source.DelayEvents(30 * time.Millisecond)
		source.DelayLists(100 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		writing := make(chan struct{})
		go func() {
			defer close(writing)
			for i := 0; ctx.Err() == nil; i++ {
				_ = source.Apply(pod("a", "1"))
				if i%2 == 0 {
					_, _ = source.Delete("a", "2")
				} else {
					_ = source.Apply(pod("a", "2"))
				}
				source.CompactAll()
				time.Sleep(70 * time.Millisecond)
			}
		}()
		for range 20 {
			require.NoError(t, informer.Verify(t.Context()))
		}
		cancel()
		<-writing
	})
}

func TestAnInformerVerifiesAtIntervalsAndReportsTheDifferences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		var reported []error
		runInformer(t, source, cache.InformerConfig[*object]{
			VerifyInterval: 10 * time.Minute,
			ReflectorOptions: cache.ReflectorOptions{ErrorHandler: func(_ context.Context, _ *cache.Reflector, err error) {
				reported = append(reported, err)
			}},
		})
		_, err := source.DeleteSilently("a", "2")
		require.NoError(t, err)
		time.Sleep(time.Hour)
		synctest.Wait()
		var found *cache.DivergenceError
		require.Len(t, reported, 1)
		require.ErrorAs(t, reported[0], &found)
		require.Equal(t, []string{"a/2"}, found.Extra)
		require.Equal(t, cache.Cause("divergence"), cache.CauseOf(reported[0]))
	})
}

// Fails if a difference is only returned to the caller of Verify (G12), or if a failed repair list
// is not reported.
func TestADifferenceThatACallOfVerifyFindsIsReportedOnce(t *testing.T) {
	for _, repaired := range []bool{true, false} {
		t.Run(fmt.Sprint("repaired ", repaired), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, errs := newSource(t, pod("a", "1"), pod("a", "2")), &errorRecorder{}
				informer := runInformer(t, source, cache.InformerConfig[*object]{ReflectorOptions: cache.ReflectorOptions{
					Strategy: cache.ListPaged, ErrorHandler: errs.handle,
				}})
				_, err := source.DeleteSilently("a", "2")
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if lists := 0; !repaired {
					source.OnList(func(metav1.ListOptions) error {
						if lists++; lists > 1 {
							cancel()
							time.Sleep(time.Second) // Verify must see that before the end of the list
						}
						return nil
					})
				}
				returned := informer.Verify(ctx)
				synctest.Wait()
				require.Equal(t, !repaired, errors.Is(returned, context.Canceled))
				require.Len(t, errs.all(), 1)
				var found *cache.DivergenceError
				require.ErrorAs(t, errs.all()[0], &found)
				require.Equal(t, []string{"a/2"}, found.Extra)
				require.Equal(t, map[cache.Cause]int64{"divergence": 1}, informer.Status().Failures)
				require.Equal(t, cache.Cause("divergence"), informer.Status().LastFailure.Cause)
				require.Zero(t, informer.Status().ConsecutiveFailures)
				require.Equal(t, !repaired, errors.Is(errs.all()[0], context.Canceled), "whether it says that it was not repaired")
			})
		})
	}
}

func TestHealthyFailsOnceTheSourceHasNotShownForTooLongThatTheStoreIsCurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		idle := cache.NewTypedInformer[*object](source, cache.InformerConfig[*object]{})
		require.ErrorContains(t, idle.Healthy(time.Hour), "has not synced; Run was not called")
		informer := runInformer(t, source, cache.InformerConfig[*object]{})
		require.NoError(t, informer.Healthy(2*time.Minute))
		require.ErrorContains(t, informer.Healthy(time.Minute), "the least for this source is 1m30s")
		time.Sleep(time.Hour)
		require.NoError(t, informer.Healthy(2*time.Minute), "bookmarks show that it is current")
		synctest.Wait()
		require.Less(t, time.Since(informer.Status().LastCurrent), 90*time.Second)

		source.FailRequests(cachetest.Forever, cachetest.ErrConnectionRefused())
		source.CloseWatches()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.NoError(t, informer.Healthy(3*time.Minute))
		status := informer.Status()
		require.Equal(t, cache.PhasePaused, status.Phase)
		require.Positive(t, time.Until(status.NextAttempt))
		time.Sleep(time.Until(status.NextAttempt))
		synctest.Wait()
		require.Greater(t, informer.Status().NextAttempt, status.NextAttempt, "it was made then")
		time.Sleep(10 * time.Minute)
		err := informer.Healthy(3 * time.Minute)
		require.ErrorContains(t, err, "may be stale for 1")
		require.Equal(t, cache.CauseConnectionRefused, cache.CauseOf(err))
		source.Heal()
		time.Sleep(time.Minute)
		require.NoError(t, informer.Healthy(2*time.Minute))
		require.Zero(t, informer.Status().NextAttempt)
	})
}

// Fails if the bookmark that ends a streaming list counts: the source would seem stale.
func TestHealthyOfASourceWithoutBookmarksNeedsTheLengthOfAWatch(t *testing.T) {
	for name, strategy := range strategies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				testHealthyWithoutBookmarks(t, strategy)
			})
		})
	}
}

func testHealthyWithoutBookmarks(t *testing.T, strategy cache.ListStrategy) {
	source := newSourceWith(t, func(options *cachetest.Options) { options.BookmarkInterval = -1 })
	informer := runInformer(t, source, cache.InformerConfig[*object]{
		ReflectorOptions: cache.ReflectorOptions{Strategy: strategy},
	})
	require.NoError(t, informer.Healthy(2*time.Minute))
	time.Sleep(3 * time.Minute)
	require.ErrorContains(t, informer.Healthy(2*time.Minute), "the least for this source is 10m30s")
	require.NoError(t, informer.Healthy(11*time.Minute))
	time.Sleep(time.Hour)
	require.NoError(t, informer.Healthy(11*time.Minute))

	source.FailRequests(cachetest.Forever, forbidden())
	source.CloseWatches()
	time.Sleep(3 * time.Minute)
	err := informer.Healthy(2 * time.Minute)
	// A watch that had just begun when it was closed is retried after a pause.
	require.Regexp(
		t, `the least for this source is 10m30s; forbidden for (3m0s|2m5\ds): `, err.Error())
	require.ErrorContains(t, err, "pods is forbidden")
	require.Equal(t, cache.CauseForbidden, cache.CauseOf(err))
}

// The source refuses all requests. Each wait fails when its context ends, and names the refusal.
func TestAWaitForAForbiddenSourceNamesTheRefusal(t *testing.T) {
	for name, wait := range map[string]func(*cache.Informer[*object], context.Context) error{
		"WaitSynced": (*cache.Informer[*object]).WaitSynced, "Fresh": (*cache.Informer[*object]).Fresh, "Verify": (*cache.Informer[*object]).Verify,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				open, shut := newSource(t, pod("a", "1")), newSource(t)
				shut.FailRequests(cachetest.Forever, forbidden())
				informer := cache.NewTypedInformer(nil, cache.InformerConfig[*object]{
					Name: "pods", Namespaces: map[string]cache.Source{"a": open, "b": shut},
				})
				running, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
				ended := make(chan error, 1)
				go func() { ended <- informer.Run(running) }()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := wait(informer, ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, 1, strings.Count(err.Error(), "; forbidden for 1m0s: "), err)
				require.Equal(t, 1, strings.Count(err.Error(), "pods/b"), err)
				require.Equal(t, cache.CauseForbidden, cache.CauseOf(err))
				stop()
				require.NoError(t, <-ended)
				require.ErrorIs(t, wait(informer, t.Context()), cache.ErrInformerStopped)
			})
		})
	}
}

func TestStatusHasTheLastList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		source.DelayWatches(3 * time.Second)
		informer := runInformer(t, source, cache.InformerConfig[*object]{})
		require.Equal(t, cache.ListStatus{
			Time: time.Now(), Duration: 3 * time.Second, Objects: 2, Strategy: cache.ListStreaming, Reason: "the source streams its state",
		}, informer.Status().LastList)
	})
}

func TestStatusSaysHowAListWasMadeAndWhy(t *testing.T) {
	type expected struct {
		strategy cache.ListStrategy
		reason   string
	}
	for want, prepare := range map[expected]func(source *cachetest.Source, options *cache.ReflectorOptions){
		{cache.ListPaged, "a page size is set"}: func(_ *cachetest.Source, o *cache.ReflectorOptions) {
			o.Strategy = cache.ListPaged
			o.PageSize = 5
		},
		{cache.ListPaged, "lists are to be paged"}: func(_ *cachetest.Source, o *cache.ReflectorOptions) {
			o.Strategy = cache.ListPaged
		},
		{cache.ListUnpaged, "lists are not to be paged"}: func(_ *cachetest.Source, o *cache.ReflectorOptions) {
			o.Strategy = cache.ListUnpaged
		},
		{cache.ListPaged, "pages cost a server least here, streaming has failed"}: func(s *cachetest.Source, _ *cache.ReflectorOptions) {
			s.FailWatches(2, errBoom)
		},
	} {
		t.Run(want.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, config := newSource(t, pod("a", "1")), cache.InformerConfig[*object]{}
				config.ReflectorOptions.ErrorHandler = func(context.Context, *cache.Reflector, error) {}
				prepare(source, &config.ReflectorOptions)
				list := runInformer(t, source, config).Status().LastList
				require.Equal(t, want, expected{list.Strategy, list.Reason})
			})
		})
	}
}

// An API server answers a first list from its cache, and ignores the limit.
func TestStatusSaysThatASourceHasIgnoredThePageSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSourceWith(t, func(options *cachetest.Options) {
			options.IgnoreLimitAtZero = true
		}, pod("a", "1"), pod("a", "2"), pod("a", "3"))
		config := cache.InformerConfig[*object]{}
		config.ReflectorOptions.Strategy = cache.ListPaged
		config.ReflectorOptions.PageSize = 2
		list := runInformer(t, source, config).Status().LastList
		require.Equal(t, cache.ListUnpaged, list.Strategy)
		require.Equal(t, "the source has ignored the page size 2", list.Reason)
	})
}

func TestFailingSinceIsTheTimeOfTheFirstOfTheFailuresInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		config := cache.InformerConfig[*object]{}
		config.ReflectorOptions.ErrorHandler = func(context.Context, *cache.Reflector, error) {}
		config.ReflectorOptions.MinWatchTimeout = 2 * time.Hour // a young watch is followed by a pause
		informer := runInformer(t, source, config)
		require.Zero(t, informer.Status().FailingSince)
		require.Equal(t, "watching", informer.Status().Activity())

		sleep(time.Hour)
		failed := time.Now()
		source.FailRequests(cachetest.Forever, errBoom)
		source.CloseWatches()
		sleep(10 * time.Minute)
		require.Equal(t, failed, informer.Status().FailingSince)
		require.Equal(t, "retrying", informer.Status().Activity())

		source.Heal()
		sleep(time.Minute)
		require.Zero(t, informer.Status().FailingSince)
		require.Equal(t, "watching", informer.Status().Activity())
	})
}

func TestStatusSaysWhatShowedTheStoreToBeCurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.DelayWatches(time.Second)
		informer := runInformer(t, source, cache.InformerConfig[*object]{ReflectorOptions: cache.ReflectorOptions{Strategy: cache.ListPaged}})
		by := func() string {
			synctest.Wait()
			require.Equal(t, time.Now(), informer.Status().LastCurrent)
			return informer.Status().CurrentBy
		}
		require.Equal(t, "list", by())
		sleep(time.Second)
		require.Equal(t, "watch", by())
		sleep(time.Second)
		require.NoError(t, source.Apply(pod("a", "2")))
		require.Equal(t, "event", by())
		sleep(59 * time.Second)
		require.Equal(t, "bookmark", by())
	})
}

// A stream may end before it has sent its state. Fails if it counts as a proof when it is accepted, or by a bookmark.
func TestAStreamingListProvesNoCurrencyBeforeItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		informer := runInformer(t, source, cache.InformerConfig[*object]{ReflectorOptions: cache.ReflectorOptions{
			Strategy: cache.ListStreaming, ErrorHandler: func(context.Context, *cache.Reflector, error) {},
		}})
		sleep(90 * time.Second)
		before := informer.Status()
		source.WithholdInitialEventsEnd(1)
		source.BreakWatches(cachetest.ErrExpired())
		sleep(9 * time.Second)
		source.SendBookmarks()
		synctest.Wait()
		status := informer.Status()
		require.Equal(t, cache.PhaseStreaming, status.Phase)
		require.Equal(t, before.LastCurrent, status.LastCurrent, status.CurrentBy)
		sleep(time.Minute)
		require.Greater(t, informer.Status().LastCurrent, before.LastCurrent)
	})
}

func TestABookmarkBelowTheLastVersionProvesNoCurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newStateSource([]runtime.Object{validPod("1", "1")})
		informer := cache.NewTypedInformer(cache.ToListerWatcherWithContext(source.asListerWatcher(wholeList)), cache.InformerConfig[*object]{
			ReflectorOptions: cache.ReflectorOptions{ErrorHandler: (&errorRecorder{}).handle},
		})
		m := mirrorUnderTest{run: func(ctx context.Context) { _ = informer.Run(ctx) }}
		end := m.begin(t)
		source.sendEvents(modified(validPod("1", "106")))
		synctest.Wait()
		before := informer.Status()
		require.Equal(t, "event", before.CurrentBy)
		sleep(time.Second)
		source.sendEvents(bookmark("103"))
		synctest.Wait()
		require.NotNil(t, informer.Status().LastFailure)
		require.Equal(t, before.LastCurrent, informer.Status().LastCurrent)
		end()
	})
}
