package guarantees

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// addPart adds a part to a replacement and requires that no object is rejected.
func addPart(t *testing.T, r cache.Replacement, p cache.ReplacementPart) {
	t.Helper()
	rejected, err := r.Add(t.Context(), p)
	require.NoError(t, err)
	require.Empty(t, rejected)
}

// G5 for the queue: synced is neither early nor late, and happens once. Fails if
// objects that are handed out count as processed, or deletions do not count.
func TestG5SyncedIsWhenTheFirstListHasBeenProcessed(t *testing.T) {
	for name, tc := range map[string]struct {
		fill func(t *testing.T, f *cache.DeltaFIFO)
		// pops is the number of Pops until the queue has synced.
		pops int
	}{
		"an event first":         {func(t *testing.T, f *cache.DeltaFIFO) { enqueue(t, f, cache.Added, "1", "1") }, 0},
		"a deletion of nothing":  {func(t *testing.T, f *cache.DeltaFIFO) { enqueue(t, f, cache.Deleted, "1", "1") }, 0},
		"an empty list":          {func(t *testing.T, f *cache.DeltaFIFO) { must(t, f.Replace(nil, "1")) }, 1},
		"two objects, deletions": {func(t *testing.T, f *cache.DeltaFIFO) { must(t, f.Replace(items("1", "1", "2", "2"), "2")) }, 3},
		"events after it": {func(t *testing.T, f *cache.DeltaFIFO) {
			must(t, f.Replace(items("1", "1"), "1"), f.Add(podAt("a", "2", "2")))
		}, 2},
		"one key twice": {func(t *testing.T, f *cache.DeltaFIFO) {
			must(t, f.Replace(items("1", "1", "1", "2", "held", "3"), "2"))
		}, 2},
		"in parts": {func(t *testing.T, f *cache.DeltaFIFO) {
			r := f.BeginReplace(cache.ReplaceOptions{})
			addPart(t, r, cache.ReplacementPart{Items: items("1", "1")})
			addPart(t, r, cache.ReplacementPart{Items: items("2", "1")})
			must(t, r.Commit(t.Context(), "1"))
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newListedQueue(t, podAt("a", "held", "0"))
			assert.False(t, f.HasSynced())
			tc.fill(t, f)
			for range tc.pops {
				assert.False(t, f.HasSynced())
				_, err := f.Pop(func(_ any, initial bool) error {
					assert.True(t, initial)
					assert.False(t, f.HasSynced(), "only when process has returned")
					return nil
				})
				must(t, err)
			}
			assert.True(t, f.HasSynced())
			assert.True(t, cache.IsDone(f.HasSyncedChecker()))
			must(t, f.Replace(items("7", "7"), "7"))
			_, err := f.Pop(func(_ any, initial bool) error {
				assert.False(t, initial)
				return nil
			})
			must(t, err)
			assert.True(t, f.HasSynced())
		})
	}
}

// Events during a first list do not end it.
func TestG5AnEventDoesNotEndAFirstListThatHasBegun(t *testing.T) {
	f, _ := newListedQueue(t)
	r := f.BeginReplace(cache.ReplaceOptions{})
	addPart(t, r, cache.ReplacementPart{Items: items("1", "1")})
	must(t, f.Add(podAt("a", "2", "2")))
	r.Abort()
	assert.Equal(t, []string{"Added a/2@2"}, drainTexts(t, f))
	assert.False(t, f.HasSynced())
	must(t, f.Replace(nil, "3"))
	assert.True(t, f.HasSynced())
}

// G5: the informer has synced once the list is in the store, whatever handlers do; a handler has
// synced once its last call of the list has returned. Fails if a handler has synced once the list is
// in its backlog.
func TestG5AHandlerHasSyncedOnceItHasHandledTheInitialList(t *testing.T) {
	for _, delivery := range []cache.Delivery{cache.Ordered, cache.Coalesced, cache.OrderedUnbounded} {
		t.Run(delivery.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), nil)
				notified := newReplicaHandler(t)
				gate := make(chan struct{})
				notified.before = func(string) { <-gate }
				handle := r.handle(notified, cache.HandlerOptions{Delivery: delivery})
				empty := r.handle(cache.ResourceEventHandlerFuncs{})
				r.run()
				synctest.Wait()
				assert.True(t, r.inf.HasSynced())
				assert.True(t, empty.HasSynced())
				for range 2 {
					assert.False(t, handle.HasSynced())
					assert.False(t, cache.IsDone(handle.HasSyncedChecker()))
					gate <- struct{}{}
					synctest.Wait()
				}
				assert.True(t, handle.HasSynced())
				assert.True(t, cache.IsDone(handle.HasSyncedChecker()))
				assert.NoError(t, doneError(handle.HasSyncedChecker()))
				r.stop()
			})
		})
	}
}

// G5: no handler has synced before the first list is complete, although it has handled all parts so
// far; a handler that joins during the list also waits for the rest.
func TestG5NoHandlerHasSyncedInTheMiddleOfTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := filledSource(t, 20)
		pages := 0
		source.OnList(func(metav1.ListOptions) error {
			if pages++; pages == 3 {
				time.Sleep(time.Minute)
			}
			return nil
		})
		r := newInformerRig(t, source, func(c *cache.InformerConfig[*object]) { c.ReflectorOptions.PageSize = 5 })
		first := newReplicaHandler(t)
		handle := r.handle(first)
		r.run()
		sleep(time.Second)
		late := newReplicaHandler(t)
		lateHandle := r.handle(late)
		synctest.Wait()
		assert.Equal(t, 10, first.callCount())
		assert.Equal(t, 10, late.callCount())
		assert.False(t, r.inf.HasSynced() || handle.HasSynced() || lateHandle.HasSynced())
		sleep(2 * time.Minute)
		assert.True(t, r.inf.HasSynced() && handle.HasSynced() && lateHandle.HasSynced())
		assert.Equal(t, 20, first.initial)
		assert.Equal(t, 20, late.initial)
		r.stop()
	})
}

// G5: an object that was deleted before the handler received it counts as handled.
func TestG5UndeliveredObjectsDoNotKeepAHandlerFromSyncing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), nil)
		notified, goOn := stalledReplica(t)
		handle := r.handle(notified, cache.HandlerOptions{Delivery: cache.Coalesced})
		r.run()
		synctest.Wait()
		_, err := r.source.Delete("a", "2")
		must(t, err)
		must(t, r.source.Apply(labelled(pod("a", "3"), "x")))
		synctest.Wait()
		assert.False(t, handle.HasSynced())
		goOn()
		synctest.Wait()
		assert.True(t, handle.HasSynced())
		assert.Equal(t, []string{"add a/1@1", "add a/3@4"}, notified.take())
		assert.Equal(t, 1, notified.initial)
		r.stop()
	})
}

// G5: synced turns true once, and only when the whole first list, all its pages,
// is in the store; the version stays empty until then. Fails if synced or the
// version is set with the first part.
func TestG5SyncedMeansTheWholeFirstListIsApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		for i := range 1050 {
			require.NoError(t, source.Apply(pod("a", itoa(i))))
		}
		source.DelayLists(time.Second)
		r := newRig(t, source, nil)
		r.run()
		for _, want := range []int{0, 500, 1000} {
			synctest.Wait()
			assert.False(t, r.ctlr.HasSynced())
			assert.Empty(t, r.ctlr.LastSyncResourceVersion())
			assert.Len(t, r.indexer.ListKeys(), want, "parts are visible as they arrive")
			sleep(time.Second)
		}
		assert.True(t, r.ctlr.HasSynced())
		assert.True(t, cache.IsDone(r.ctlr.HasSyncedChecker()))
		assert.Len(t, r.indexer.ListKeys(), 1050)
		assert.Equal(t, source.ResourceVersion(), r.ctlr.LastSyncResourceVersion())
		for _, event := range r.handler.take() {
			assert.Contains(t, event, "initial")
		}
		source.BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		assert.True(t, r.ctlr.HasSynced(), "and stays so")
		r.stop()
	})
}

// G5: a list item by item is complete, in the source's order, and requests the same pages; synced and
// the version are set with the last item. Fails if a page's last items are lost, or batches reordered.
func TestG5AListItemByItemIsCompleteAndInOrder(t *testing.T) {
	for _, strategy := range []cache.ListStrategy{cache.ListPaged, cache.ListUnpaged} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("strategy %d, late %v", strategy, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var asked [2][]metav1.ListOptions
					var notified [2][]string
					for way, lister := range []func(*cachetest.Source) cache.ListerWatcher{
						func(s *cachetest.Source) cache.ListerWatcher { return &itemSource{Source: s, metadataLate: late} },
						func(s *cachetest.Source) cache.ListerWatcher { return s },
					} {
						source := filledSource(t, 1234)
						r := newRig(t, source, func(c *cache.Config) {
							c.ListerWatcher = lister(source)
							c.ReflectorOptions.Strategy = strategy
						})
						r.run()
						synctest.Wait()
						assert.True(t, r.ctlr.HasSynced())
						assert.Equal(t, source.ResourceVersion(), r.ctlr.LastSyncResourceVersion())
						r.assertEqualsSource()
						notified[way] = r.handler.take()
						source.BreakWatches(cachetest.ErrExpired())
						require.NoError(t, source.Apply(labelled(pod("a", "7"), "x"), pod("b", "new")))
						_, err := source.DeleteSilently("a", "8")
						require.NoError(t, err)
						sleep(time.Minute)
						r.assertEqualsSource()
						assert.Equal(t, []cache.Cause{cache.CauseExpired}, r.errors.causes())
						for _, request := range source.Requests() {
							if request.Verb == cachetest.VerbList {
								request.Options.Continue = fmt.Sprint(request.Options.Continue != "")
								asked[way] = append(asked[way], request.Options)
							}
						}
						r.stop()
					}
					assert.Equal(t, asked[1], asked[0])
					assert.Len(t, notified[0], 1234)
					assert.Equal(t, notified[1], notified[0])
				})
			})
		}
	}
}

// G5: no namespace waits for a handler that is busy with another one, and that may even wait for it.
func TestG5NoNamespaceWaitsForAHandlerThatIsBusyWithAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *namespaceRig
		empty := newSource(t)
		empty.Advance(7)
		waited := -1 * time.Second
		r = newNamespaceRig(t, false, func(c *cache.Config) {
			c.Namespaces["empty"] = empty.Namespace("empty")
			c.Handler = cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
				if waited >= 0 {
					return
				}
				synced, _ := r.ctlr.SyncedIn("empty")
				began := time.Now()
				select {
				case <-synced.Done():
				case <-time.After(time.Hour):
				}
				waited = time.Since(began)
				assert.Equal(t, "7", r.statusOf("empty").AppliedVersion)
				time.Sleep(time.Minute) // until it is watched
				empty.Advance(1)
				empty.SendBookmarks()
				time.Sleep(time.Minute)
				assert.Equal(t, "8", r.statusOf("empty").AppliedVersion)
				assert.Len(t, r.versions(), 6)
			}}
		})
		r.run()
		sleep(3 * time.Hour)
		assert.Zero(t, waited)
		r.assertEqualsSources("a", "b", "c")
		assert.True(t, r.ctlr.HasSynced())
		empty.Close()
		r.stop()
	})
}

// G5: a namespace that has synced stays so when the run ends before its handler has.
func TestG5ANamespaceThatHasSyncedStaysSyncedAfterTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *namespaceRig
		calls := 0
		r = newNamespaceRig(t, false, func(c *cache.Config) {
			c.WatchListPageSize = 1
			c.Handler = cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
				time.Sleep(2 * time.Hour)
				if calls++; calls == 6 {
					r.cancel()
					synctest.Wait()
				}
			}}
		})
		for _, source := range r.sources {
			source.DelayLists(time.Hour)
		}
		r.run()
		<-r.done
		assert.Equal(t, []string{"a", "b", "c"}, r.synced())
		assert.False(t, r.ctlr.HasSynced(), "the handler has not finished")
		r.close()
	})
}

// G5: a handler that is added while one of several namespaces is forbidden receives the objects of
// the others at once, as an initial list, and has synced once it has handled the first lists of
// all.
func TestG5AHandlerThatJoinsSeveralNamespacesIsNotifiedOfThoseThatAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newNamespaceRig(t, true, nil)
		r.sources["b"].FailLists(cachetest.Forever, forbidden())
		r.run()
		sleep(time.Minute)
		late := newReplicaHandler(t)
		handle, err := r.ctlr.(cache.SharedIndexInformer).AddEventHandler(late)
		require.NoError(t, err)
		synctest.Wait()
		assert.ElementsMatch(t, []string{"add a/1@1", "add a/2@2", "add c/1@1", "add c/2@2"}, late.take())
		assert.False(t, handle.HasSynced())
		r.apply(pod("c", "3"))
		r.sources["b"].Heal()
		sleep(time.Minute)
		assert.ElementsMatch(t, []string{"add c/3@3", "add b/1@1", "add b/2@2"}, late.take())
		assert.Equal(t, 6, late.initial, "all but the event")
		assert.True(t, handle.HasSynced())
		late.assertEqualsStore(r.indexer)
		r.stop()
	})
}
