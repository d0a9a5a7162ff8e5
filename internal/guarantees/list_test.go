package guarantees

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// An event of another key below the last version is applied and does not change the version: fake
// clientsets send such events. Fails if it is a regression, or lowers the version.
func TestAnOlderEventOfAnotherKeyIsAppliedAndLeavesTheVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.Advance(100)
		r := newRig(t, source, nil)
		r.run()
		synctest.Wait()
		late := pod("a", "late")
		late.ResourceVersion = "7"
		source.Inject(watch.Event{Type: watch.Added, Object: late})
		synctest.Wait()
		assert.Contains(t, r.versions(), "a/late")
		assert.Equal(t, source.ResourceVersion(), r.ctlr.LastSyncResourceVersion())
		assert.Empty(t, r.errors.all())
		r.stop()
	})
}

// B8, G2: a relist of unchanged objects delivers nothing and keeps the stored objects. Fails if
// listed objects are not compared with those received before.
func TestARelistOfUnchangedObjectsDeliversNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		for i := range 1200 {
			require.NoError(t, source.Apply(pod("a", itoa(i))))
		}
		transforms := 0
		r := newRig(t, source, func(c *cache.Config) {
			c.Transform = func(obj any) (any, error) {
				transforms++
				out := obj.(*object).DeepCopy()
				out.ManagedFields, out.UID, out.ResourceVersion = nil, "", ""
				return out, nil
			}
		})
		r.run()
		synctest.Wait()
		r.handler.take()
		before := map[string]any{}
		for _, obj := range r.indexer.List() {
			before[nameOf(obj)] = obj
		}
		assert.Equal(t, 1200, transforms)

		require.NoError(t, source.Apply(labelled(pod("a", "7"), "changed")))
		synctest.Wait()
		r.handler.take()
		source.BreakWatches(cachetest.ErrExpired())
		_, err := source.DeleteSilently("a", "8")
		require.NoError(t, err)
		sleep(time.Minute)
		assert.Equal(t, []string{"tombstone a/8"}, r.handler.take())
		assert.Equal(t, 1201, transforms)
		same := 0
		for _, obj := range r.indexer.List() {
			if before[nameOf(obj)] == obj {
				same++
			}
		}
		assert.Equal(t, 1198, same, "the old objects stay")
		r.stop()
	})
}

// S2: the first list requests any version, later ones the last version, and after "expired" the
// newest. Without a page size, pages are only requested if the server can still answer from its
// cache.
func TestListsAskForAnyVersionThenTheLastAndTheNewestAfterExpired(t *testing.T) {
	type ask struct {
		version string
		limit   int64
	}
	for name, row := range map[string]struct {
		options cache.ReflectorOptions
		whole   bool
		want    []ask
	}{
		"automatic":   {cache.ReflectorOptions{}, false, []ask{{"0", 500}, {"3", 0}, {"3", 0}, {"", 500}, {"3", 0}}},
		"whole":       {cache.ReflectorOptions{Strategy: cache.ListUnpaged}, false, []ask{{"0", 0}, {"3", 0}, {"3", 0}, {"", 0}, {"3", 0}}},
		"paged":       {cache.ReflectorOptions{Strategy: cache.ListPaged}, false, []ask{{"0", 500}, {"3", 500}, {"3", 500}, {"", 500}, {"3", 500}}},
		"page size":   {cache.ReflectorOptions{PageSize: 7}, false, []ask{{"0", 7}, {"3", 7}, {"3", 7}, {"", 7}, {"3", 7}}},
		"no chunking": {cache.ReflectorOptions{PageSize: 7}, true, []ask{{"0", 0}, {"3", 0}, {"3", 0}, {"", 0}, {"3", 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3"))
				r := newRig(t, source, func(c *cache.Config) {
					c.ListerWatcher = &cache.ListWatch{
						ListWithContextFunc: source.ListWithContext, WatchFuncWithContext: source.WatchWithContext, DisableChunking: row.whole,
					}
					c.ReflectorOptions = row.options
					c.ReflectorOptions.ErrorHandler = (&errorRecorder{}).handle
				})
				r.run()
				synctest.Wait()
				source.BreakWatches(cachetest.ErrExpired())
				sleep(time.Minute)
				source.FailLists(1, cachetest.ErrExpired())
				source.BreakWatches(cachetest.ErrExpired())
				sleep(time.Minute)
				source.BreakWatches(cachetest.ErrExpired())
				sleep(time.Minute)
				var asked []ask
				for _, request := range source.Requests() {
					if request.Verb == cachetest.VerbList {
						asked = append(asked, ask{request.Options.ResourceVersion, request.Options.Limit})
					}
				}
				assert.Equal(t, row.want, asked)
				r.stop()
			})
		})
	}
}

// Items of an unfinished list are visible, its version is not.
func TestAFirstListItemByItemIsVisibleAsItComes(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			source := &itemSource{Source: filledSource(t, 250), metadataLate: late, each: func(context.Context, int, int) error {
				time.Sleep(time.Second)
				return nil
			}}
			r := newRig(t, source.Source, withItemSource(source))
			r.run()
			shown := 0
			for range 240 {
				sleep(time.Second)
				now := len(r.indexer.ListKeys())
				assert.GreaterOrEqual(t, now, shown)
				shown = now
				assert.GreaterOrEqual(t, shown, source.acceptedOf(0)-2*partSize)
				assert.False(t, r.ctlr.HasSynced())
				assert.Empty(t, r.ctlr.LastSyncResourceVersion())
			}
			assert.GreaterOrEqual(t, shown, partSize)
			sleep(time.Minute)
			assert.True(t, r.ctlr.HasSynced())
			r.assertEqualsSource()
			r.stop()
		})
	}
}

// A store without BeginReplace receives one Replace, without objects of wrong types.
func TestAForeignStoreGetsAListItemByItemInOneReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &errorRecorder{}
		source := &itemFuncSource{funcSource: funcSource{watch: silentWatch}, list: func(_ context.Context, _ int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
			for _, item := range []apiruntime.Object{podAt("a", "1", "1"), nil, &metav1.Status{}, (*object)(nil), podAt("a", "2", "2")} {
				if err := take(metav1.ListMeta{}, item); err != nil {
					return metav1.ListMeta{}, err
				}
			}
			return metav1.ListMeta{ResourceVersion: "9"}, nil
		}}
		store := &foreignStore{}
		stop := runReflector(t, cache.NewReflectorWithOptions(source, &object{}, store, cache.ReflectorOptions{ErrorHandler: h.handle}))
		assert.Equal(t, []string{"replace a/1 a/2 @9"}, store.take())
		assert.Equal(t, []cache.Cause{causeInvalidObject, causeInvalidObject, causeInvalidObject}, h.causes())
		stop()
	})
}

// An expired continue token is followed by one whole list, a repeated token is an error; a list
// without metadata has no more pages.
func TestTokensOfListsItemByItemAreThoseOfAnyList(t *testing.T) {
	t.Run("expired", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source := &itemSource{Source: filledSource(t, 1200)}
			source.DelayLists(time.Second)
			r := newRig(t, source.Source, withItemSource(source))
			r.run()
			sleep(1500 * time.Millisecond)
			source.ExpireContinueTokens()
			require.NoError(t, source.Apply(pod("b", "new")))
			_, err := source.Delete("a", "0")
			require.NoError(t, err)
			sleep(time.Minute)
			r.assertEqualsSource()
			assert.Equal(t, []cache.Cause{cache.CauseExpired}, r.errors.causes())
			assert.Equal(t, []int{500, 0, 1200}, source.accepted)
			r.stop()
		})
	})
	t.Run("nothing said", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source := &itemFuncSource{funcSource: funcSource{watch: silentWatch}, list: func(context.Context, int, metav1.ListOptions, takeFunc) (metav1.ListMeta, error) {
				return metav1.ListMeta{}, nil
			}}
			r := cache.NewReflector(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), 0)
			stop := runReflector(t, r)
			assert.True(t, r.Status().Synced)
			assert.Equal(t, 1, source.listCalls())
			stop()
		})
	})
}

// S7: a resync that is due during a long list happens then, on the goroutine that feeds the store.
// Fails, with the race detector, if it happens on another one.
func TestAResyncHappensWhileAListItemByItemComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &itemSource{Source: filledSource(t, 150)}
		r := newRig(t, source.Source, func(c *cache.Config) {
			c.ListerWatcher = source
			c.FullResyncPeriod = time.Minute
		})
		r.run()
		sleep(time.Second)
		r.handler.take()
		source.onEach(func(context.Context, int, int) error {
			time.Sleep(10 * time.Second)
			return nil
		})
		source.BreakWatches(cachetest.ErrExpired())
		sleep(20 * time.Minute)
		assert.Equal(t, cache.PhaseListing, r.status().Phase)
		updates := r.handler.take()
		assert.Len(t, updates, 20*150)
		assert.Equal(t, 20, countEvents(updates, "update a/7@8"))
		sleep(10 * time.Minute)
		assert.Equal(t, cache.PhaseWatching, r.status().Phase)
		r.assertEqualsSource()
		r.stop()
	})
}

// Backpressure: while the store waits, the source is not read.
func TestASourceIsNotReadWhileTheStoreWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &itemSource{Source: filledSource(t, 1000)}
		parts := []int{}
		store := &partStore{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), onPart: func(_ context.Context, part cache.ReplacementPart) error {
			parts = append(parts, len(part.Items))
			time.Sleep(time.Second)
			return nil
		}}
		stop := runReflector(t, cache.NewReflectorWithOptions(source, &object{}, store, cache.ReflectorOptions{Strategy: cache.ListUnpaged}))
		for passed := partSize; passed < 1000; passed += partSize {
			assert.LessOrEqual(t, source.acceptedOf(0), passed+partSize)
			sleep(time.Second)
		}
		sleep(time.Minute)
		assert.Len(t, store.ListKeys(), 1000)
		assert.Equal(t, slices.Repeat([]int{partSize}, 10), parts)
		stop()
		source.Close()
	})
}

// If the version of a list changes between its parts, the last one counts, and must not regress.
func TestTheLastVersionOfAListCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &errorRecorder{}
		source := &itemFuncSource{funcSource: funcSource{watch: silentWatch}, list: func(_ context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
			err := take(metav1.ListMeta{ResourceVersion: "10"}, podAt("a", "1", "1"))
			return metav1.ListMeta{ResourceVersion: []string{"9", "12"}[n-1]}, err
		}}
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
		stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, indexer, cache.ReflectorOptions{ErrorHandler: h.handle}))
		sleep(10 * time.Second)
		assert.Equal(t, []cache.Cause{causeRegression}, h.causes())
		assert.Equal(t, "12", indexer.LastStoreSyncResourceVersion())
		stop()
	})
}

// S13: a streaming list is one request, has the same state as a list, and continues as the watch.
func TestAStreamingListIsOneRequestAndContinuesAsTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		for i := range 1234 {
			require.NoError(t, source.Apply(pod("a", itoa(i))))
		}
		r := newRig(t, source, func(c *cache.Config) { c.ReflectorOptions.Strategy = cache.ListAutomatic })
		r.run()
		synctest.Wait()
		assert.True(t, r.ctlr.HasSynced())
		r.assertEqualsSource()
		assert.Equal(t, source.ResourceVersion(), r.ctlr.LastSyncResourceVersion())
		require.NoError(t, source.Apply(pod("b", "later")))
		synctest.Wait()
		r.assertEqualsSource()
		require.Len(t, source.Requests(), 1)
		options := source.Requests()[0].Options
		assert.True(t, *options.SendInitialEvents)
		assert.Equal(t, metav1.ResourceVersionMatchNotOlderThan, options.ResourceVersionMatch)
		assert.True(t, options.AllowWatchBookmarks)
		r.stop()
	})
}

// S13: a server that rejects streaming lists receives one attempt.
func TestAServerWithoutStreamingListsCostsOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewSource(cachetest.Options{GroupVersionKind: podKind, NoWatchList: true})
		example := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "a", "name": "1"}}}
		require.NoError(t, source.Apply(example))
		r := newRig(t, source, func(c *cache.Config) {
			c.ObjectType = nil
			c.ReflectorOptions.Strategy = cache.ListAutomatic
		})
		r.run()
		synctest.Wait()
		assert.Equal(t, 1, source.ListCalls(), "which is made at once")
		assert.True(t, r.ctlr.HasSynced())
		sleep(10 * time.Second)
		assert.Equal(t, []cache.Cause{cache.CauseBadRequest}, r.errors.causes())
		assert.Equal(t, 1, source.ListCalls())
		r.assertEqualsSource()
		r.stop()
	})
}

// Unexpected events of a streaming list are reported and skipped, or end the stream with an error;
// then a list follows.
func TestUnexpectedEventsInAStreamingListAreReported(t *testing.T) {
	unversioned := &object{}
	end := map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	for name, row := range map[string]struct {
		event watch.Event
		cause cache.Cause
	}{
		"unknown type":              {watch.Event{Type: "GONE", Object: pod("a", "x")}, causeInvalidObject},
		"wrong type":                {watch.Event{Type: watch.Added, Object: &unstructured.Unstructured{}}, causeInvalidObject},
		"nil":                       {watch.Event{Type: watch.Added}, causeInvalidObject},
		"deletion of nothing":       {watch.Event{Type: watch.Deleted}, causeInvalidObject},
		"bookmark without object":   {watch.Event{Type: watch.Bookmark}, causeInvalidObject},
		"bookmark without metadata": {watch.Event{Type: watch.Bookmark, Object: &metav1.Status{}}, causeInvalidObject},
		"bookmark of no meaning":    {watch.Event{Type: watch.Bookmark, Object: unversioned}, ""},
		"error without an object":   {watch.Event{Type: watch.Error}, cache.CauseOther},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &errorRecorder{}
				streams := make(chan *watch.FakeWatcher, 9)
				source := &cache.ListWatch{WatchFunc: func(metav1.ListOptions) (watch.Interface, error) {
					w := watch.NewFake()
					streams <- w
					return w, nil
				}, ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) { return nil, errBoom }}
				indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
				stop := runReflector(t, cache.NewReflectorWithOptions(source, &object{}, indexer,
					cache.ReflectorOptions{Strategy: cache.ListStreaming, ErrorHandler: h.handle}))
				w := <-streams
				w.Action(row.event.Type, row.event.Object)
				if row.cause == cache.CauseOther {
					sleep(5 * time.Second)
					w = <-streams
				}
				good := pod("a", "good")
				w.Add(good)
				w.Action(watch.Bookmark, &object{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7", Annotations: end}})
				synctest.Wait()
				if row.cause == "" {
					assert.Empty(t, h.all())
				} else {
					assert.Equal(t, []cache.Cause{row.cause}, h.causes())
				}
				assert.Equal(t, []string{"a/good"}, indexer.ListKeys())
				assert.Equal(t, "7", indexer.LastStoreSyncResourceVersion())
				stop()
			})
		})
	}
}

// pagesOf returns a source of pages: page n, from 1, has a continue token, "" at the end, and a
// number of objects.
func pagesOf(page func(n int) (token string, objects int)) *itemFuncSource {
	last := 0
	return &itemFuncSource{funcSource: funcSource{watch: silentWatch}, list: func(_ context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
		token, objects := page(n)
		about := metav1.ListMeta{ResourceVersion: "9", Continue: token}
		last += objects
		return about, takeAll(take, about, last-objects+1, last)
	}}
}

// An endless chain of continue tokens is a failure, followed by a pause. Fails if only a token that
// follows itself, or only repeated tokens, are noticed.
func TestAListWhosePagesNeverEndFails(t *testing.T) {
	circle := func(before, length, objects int) func(int) (string, int) {
		return func(n int) (string, int) {
			if n <= before {
				return fmt.Sprint("before ", n), objects
			}
			return fmt.Sprint((n - before) % length), objects
		}
	}
	for name, row := range map[string]struct {
		page func(int) (string, int)
		most int
	}{
		"the same token":                     {circle(0, 1, 0), 2},
		"two tokens":                         {circle(0, 2, 0), 5},
		"a circle of pages with objects":     {circle(10, 7, 3), 10 + 3*7},
		"a long way into a long circle":      {circle(300, 90, 1), 3 * (300 + 90)},
		"new tokens, and nothing but tokens": {circle(math.MaxInt, 1, 0), emptyPages},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, h := pagesOf(row.page), &errorRecorder{}
				r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{ErrorHandler: h.handle, Backoff: steady(time.Minute)})
				stop := runReflector(t, r)
				asked := source.listCalls()
				assert.LessOrEqual(t, asked, row.most)
				assert.Equal(t, []cache.Cause{cache.CauseOther}, h.causes())
				assert.ErrorContains(t, h.all()[0], "continue token")
				assert.False(t, r.Status().Synced)
				sleep(50 * time.Second)
				assert.Equal(t, asked, source.listCalls(), "and the next list waits")
				stop()
			})
		})
	}
}

// Neither empty pages nor a long list are failures.
func TestALongListWithEmptyPagesIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, h := pagesOf(func(n int) (string, int) {
			switch {
			case n == 5*emptyPages:
				return "", 0
			case n%(emptyPages-1) == 0:
				return itoa(n), 1
			}
			return itoa(n), 0
		}), &errorRecorder{}
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, store, cache.ReflectorOptions{ErrorHandler: h.handle}))
		assert.Empty(t, h.all())
		assert.Equal(t, 5*emptyPages, source.listCalls())
		assert.Len(t, store.ListKeys(), 5)
		stop()
	})
}

// If a source returns while it still calls take, the whole list fails and is repeated, so no item
// is lost. Concurrent calls of take lose nothing. Fails if a list succeeds although take has
// returned an error.
func TestNoItemOfASourceThatBreaksTheRulesOfItemListerIsLost(t *testing.T) {
	// busy starts a call of take that waits for the store for a second.
	busy := func(take takeFunc) <-chan error {
		ended := make(chan error, 1)
		go func() { ended <- takeAll(take, metav1.ListMeta{}, 1, 300) }()
		time.Sleep(500 * time.Millisecond)
		return ended
	}
	const late = "source passed an item after ListItems had returned"
	for name, row := range map[string]struct {
		list  func(t *testing.T, take takeFunc) error
		lists int
		keys  int
	}{
		"takes two at once": {func(t *testing.T, take takeFunc) error {
			ended := busy(take)
			assert.NoError(t, take(metav1.ListMeta{}, podAt("a", "second", "1")))
			assert.NoError(t, <-ended)
			return nil
		}, 1, 301},
		"returns while it takes": {func(t *testing.T, take takeFunc) error {
			ended := busy(take)
			go func() { assert.ErrorContains(t, <-ended, late) }()
			return nil
		}, 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &errorRecorder{}
				source := &itemFuncSource{funcSource: funcSource{watch: silentWatch}, list: func(_ context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
					if n == 1 {
						return metav1.ListMeta{ResourceVersion: "900"}, row.list(t, take)
					}
					return metav1.ListMeta{ResourceVersion: "900"}, takeAll(take, metav1.ListMeta{}, 1, 3)
				}}
				store := &partStore{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), onPart: func(context.Context, cache.ReplacementPart) error {
					time.Sleep(time.Second)
					return nil
				}}
				stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, store, cache.ReflectorOptions{ErrorHandler: h.handle}))
				sleep(time.Minute)
				require.Len(t, h.all(), row.lists-1)
				for _, err := range h.all() {
					assert.ErrorContains(t, err, late)
				}
				assert.Len(t, store.ListKeys(), row.keys)
				assert.Equal(t, row.lists, source.listCalls())
				stop()
			})
		})
	}
}

// Calls of take after ListItems has returned fail and have no effect.
func TestItemsAreRefusedAfterListItemsHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, late := &errorRecorder{}, make(chan error, 1)
		source := &itemFuncSource{funcSource: funcSource{watch: silentWatch}, list: func(_ context.Context, _ int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
			go func() {
				time.Sleep(time.Second)
				late <- take(metav1.ListMeta{}, podAt("a", "late", "1"))
			}()
			return metav1.ListMeta{ResourceVersion: "9"}, takeAll(take, metav1.ListMeta{}, 1, 3)
		}}
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
		stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, indexer, cache.ReflectorOptions{ErrorHandler: h.handle}))
		assert.ErrorContains(t, <-late, "source passed an item after ListItems had returned")
		assert.Len(t, indexer.ListKeys(), 3)
		assert.Empty(t, h.all())
		stop()
	})
}

// An aborted list is not reported as a version regression, and its version only counts if some of
// its objects are visible. Fails if an older state is reported before it is applied, or if a list
// of wrong types raises the lowest accepted version.
func TestAnAbortedListIsNoVersionRegression(t *testing.T) {
	type answer struct {
		about metav1.ListMeta
		items []apiruntime.Object
		err   error
	}
	right := func(n int) (items []apiruntime.Object) {
		for i := range n {
			items = append(items, podAt("a", itoa(i), "1"))
		}
		return items
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errBoom)
	first, more := metav1.ListMeta{ResourceVersion: "13"}, metav1.ListMeta{ResourceVersion: "3", Continue: "more"}
	for name, row := range map[string]struct {
		answers []answer
		causes  []cache.Cause
	}{
		"a relist at a lower version": {[]answer{
			{about: first, items: right(5)}, {err: cachetest.ErrExpired()}, {about: more, items: right(2 * partSize)}, {err: forbidden},
			{about: metav1.ListMeta{ResourceVersion: "3"}, items: right(5)},
		}, []cache.Cause{cache.CauseExpired, cache.CauseExpired, cache.CauseForbidden, causeRegression}},
		"a list of another type": {[]answer{
			{about: metav1.ListMeta{ResourceVersion: "13", Continue: "more"}, items: []apiruntime.Object{&metav1.Status{}}}, {err: forbidden},
			{about: metav1.ListMeta{ResourceVersion: "3"}, items: right(5)}, {about: metav1.ListMeta{ResourceVersion: "3"}, items: right(5)},
		}, []cache.Cause{cache.CauseForbidden, cache.CauseExpired}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &errorRecorder{}
				source := &itemFuncSource{funcSource: funcSource{watch: expiredOnce}, list: func(_ context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
					now := row.answers[n-1]
					for _, item := range now.items {
						must(t, take(now.about, item))
					}
					return now.about, now.err
				}}
				store := cache.NewStore(cache.MetaNamespaceKeyFunc)
				stop := runReflector(t, cache.NewReflectorWithOptions(source, &object{}, store, cache.ReflectorOptions{ErrorHandler: func(ctx context.Context, r *cache.Reflector, err error) {
					if cache.CauseOf(err) != causeInvalidObject {
						h.handle(ctx, r, err)
					}
				}}))
				sleep(10 * time.Second)
				assert.Equal(t, row.causes, h.causes())
				assert.Equal(t, "3", store.LastStoreSyncResourceVersion())
				stop()
			})
		})
	}
}

// G9, G12: nothing of a list is reported after the context has ended. Fails if a canceled list
// reports its bad objects.
func TestNothingOfAListIsReportedAfterTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &errorRecorder{}
		source := &itemFuncSource{funcSource: funcSource{watch: silentWatch}, list: func(ctx context.Context, _ int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
			must(t, take(metav1.ListMeta{ResourceVersion: "9"}, podAt("a", "1", "1")))
			must(t, take(metav1.ListMeta{ResourceVersion: "9"}, nil))
			<-ctx.Done()
			return metav1.ListMeta{}, ctx.Err()
		}}
		stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{ErrorHandler: h.handle}))
		stop()
		assert.Empty(t, h.all())
	})
}

// A call of the source that ends its goroutine fails, and no object is deleted. Fails if it counts
// as a call that returned nil without error.
func TestASourceThatEndsItsGoroutineHasNotAnswered(t *testing.T) {
	exits := func(n int) {
		if n == 2 {
			runtime.Goexit()
		}
	}
	for name, source := range map[string]func() cache.ListerWatcher{
		"item by item": func() cache.ListerWatcher {
			return &itemFuncSource{funcSource: funcSource{watch: expiredOnce}, list: func(_ context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
				about := metav1.ListMeta{ResourceVersion: itoa(n * 500)}
				must(t, takeAll(take, about, 1, 50))
				exits(n)
				return about, takeAll(take, about, 51, 500)
			}}
		},
		"whole": func() cache.ListerWatcher {
			n := 0
			return &funcSource{watch: expiredOnce, list: func(metav1.ListOptions) (apiruntime.Object, error) {
				n++
				exits(n)
				list := &objectList{ListMeta: metav1.ListMeta{ResourceVersion: itoa(n * 500)}}
				return list, takeAll(func(_ metav1.ListMeta, item apiruntime.Object) error {
					list.Items = append(list.Items, item)
					return nil
				}, metav1.ListMeta{}, 1, 500)
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &errorRecorder{}
				store := cache.NewStore(cache.MetaNamespaceKeyFunc)
				stop := runReflector(t, cache.NewReflectorWithOptions(source(), nil, store, cache.ReflectorOptions{ErrorHandler: h.handle, Backoff: steady(time.Minute)}))
				sleep(90 * time.Second)
				assert.Len(t, store.ListKeys(), 500)
				assert.Equal(t, "500", store.LastStoreSyncResourceVersion())
				require.Len(t, h.all(), 2)
				assert.ErrorContains(t, h.all()[1], "source ended its goroutine and returned nothing")
				sleep(time.Minute)
				assert.Equal(t, "1500", store.LastStoreSyncResourceVersion())
				assert.Len(t, h.all(), 2)
				stop()
			})
		})
	}
}
