package sharding_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/sharding"
)

// inBubble runs a test in virtual time, with sources that filter and sources that do not.
func inBubble(t *testing.T, test func(t *testing.T, source *cachetest.Source)) {
	for _, filters := range []bool{false, true} {
		t.Run(
			"filtered by the "+map[bool]string{false: "client", true: "server"}[filters],
			func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := cachetest.NewSource(cachetest.Options{
						ShardSelectors: filters,
						NewObject:      func() runtime.Object { return &object{} },
						NewList:        func() runtime.Object { return &metav1.PartialObjectMetadataList{} },
					})
					t.Cleanup(source.Close)
					test(t, source)
				})
			},
		)
	}
}

func TestReplicasHaveEachObjectExactlyOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, source *cachetest.Source) {
		orders(t, source, 3000)
		var replicas []*replica
		for _, part := range sharding.Split(3) {
			replicas = append(replicas, newReplica(t, source, cache.ReflectorOptions{}, part))
		}
		requireShares(t, source, replicas...)
		for i, r := range replicas {
			require.InDelta(t, 1000, r.informer.Len(), 120, "replica %d", i)
		}
		orders(t, source, 3300) // updates, which keep the UIDs, and additions
		for i := range 500 {
			_, err := source.Delete("shop", fmt.Sprint("order-", 3*i))
			require.NoError(t, err)
		}
		synctest.Wait()
		requireShares(t, source, replicas...)
		for _, r := range replicas {
			require.Equal(
				t, source.ResourceVersion(), r.awaitVersion(t),
				"events of others move the version, or a bookmark")
			require.Empty(t, r.failures)
		}
	})
}

// awaitVersion returns the version after the next bookmark.
func (r *replica) awaitVersion(*testing.T) string {
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	return r.informer.ResourceVersion()
}

func TestTheStatusSaysWhereObjectsAreFiltered(t *testing.T) {
	inBubble(t, func(t *testing.T, source *cachetest.Source) {
		orders(t, source, 100)
		part := sharding.Split(2)[1]
		r := newReplica(t, source, cache.ReflectorOptions{}, part)
		want := sharding.Status{
			Selector:   sharding.Union(part).String(),
			FilteredBy: sharding.Client,
		}
		requests := source.Requests()
		if requests[0].Items < 100 {
			want.FilteredBy = sharding.Server
		}
		require.Equal(
			t, t.Name() == "TestTheStatusSaysWhereObjectsAreFiltered/filtered_by_the_server",
			want.FilteredBy == sharding.Server)
		require.Equal(t, &want, r.informer.Status().Shard)
		for _, request := range requests {
			require.Equal(t, want.Selector, request.Options.ShardSelector, request)
		}

		source.FailLists(1, cachetest.ErrInternal())
		r.selector.Set(sharding.Everything())
		synctest.Wait()
		require.True(t, r.informer.Status().Shard.Pending)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.False(t, r.informer.Status().Shard.Pending)
		require.Equal(t, sharding.Everything().String(), r.informer.Status().Shard.Selector)
	})
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewSourceOf[*object]()
		t.Cleanup(source.Close)
		informer := cache.NewTypedInformer(source, cache.InformerConfig[*object]{})
		require.Nil(t, informer.Status().Shard)
	})
}

func TestAnUnfilteredWatchIsFilteredByTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Behind one address, a server that filters responds to the list, and one that does not to
		// the watch.
		filters := cachetest.NewSource(cachetest.Options{
			ShardSelectors: true,
			NewObject:      func() runtime.Object { return &object{} },
		})
		t.Cleanup(filters.Close)
		orders(t, filters, 100)
		mixed := &cache.ListWatch{
			ListWithContextFunc: filters.ListWithContext,
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.ShardSelector = ""
				return filters.WatchWithContext(ctx, options)
			},
		}
		parts := sharding.Split(2)
		replicas := []*replica{
			newReplica(t, mixed, cache.ReflectorOptions{}, parts[0]),
			newReplica(t, mixed, cache.ReflectorOptions{}, parts[1]),
		}
		for _, r := range replicas {
			require.Equal(t, sharding.Server, r.informer.Status().Shard.FilteredBy)
		}
		orders(t, filters, 200)
		synctest.Wait()
		requireShares(t, filters, replicas...)
		for _, r := range replicas {
			require.Equal(t, sharding.Client, r.informer.Status().Shard.FilteredBy)
		}
	})
}

func TestAListOfAnotherShardFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewSource(cachetest.Options{
			ShardSelectors: true,
			NewObject:      func() runtime.Object { return &object{} },
		})
		t.Cleanup(source.Close)
		orders(t, source, 10)
		wrong := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				options.ShardSelector = sharding.Union(sharding.Split(3)[2]).String()
				return source.ListWithContext(ctx, options)
			},
			WatchFuncWithContext: source.WatchWithContext,
		}
		r := newReplica(t, wrong, cache.ReflectorOptions{}, sharding.Split(2)[0])
		require.False(t, r.informer.HasSynced())
		require.Zero(t, r.informer.Len(), "readers see none of it")
		require.ErrorContains(t, r.failures[0], "the server sent the shard")
	})
}

func TestAServerThatFiltersObjectsWithoutUIDsFails(t *testing.T) {
	for _, filters := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			list := &metav1.PartialObjectMetadataList{}
			list.ResourceVersion = "1"
			for i := range 20 {
				list.Items = append(
					list.Items,
					object{
						ObjectMeta: metav1.ObjectMeta{
							Name:            fmt.Sprint("order-", i),
							ResourceVersion: "1",
						},
					},
				)
			}
			source := &cache.ListWatch{
				ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
					answer := list.DeepCopy()
					if filters {
						answer.ShardInfo = &metav1.ShardInfo{Selector: options.ShardSelector}
					}
					return answer, nil
				},
				WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
			}
			parts := sharding.Split(2)
			first := newReplica(t, source, cache.ReflectorOptions{}, parts[0])
			second := newReplica(t, source, cache.ReflectorOptions{}, parts[1])
			if filters {
				require.ErrorContains(t, first.failures[0], "filters by UID")
				require.False(t, first.informer.HasSynced())
				return
			}
			require.Equal(t, 20, first.informer.Len()+second.informer.Len())
			require.NotZero(t, first.informer.Len())
			require.NotZero(t, second.informer.Len())
		})
	}
}

func TestAReplicaWithoutRangesHasNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, source *cachetest.Source) {
		orders(t, source, 100)
		r := newReplica(t, source, cache.ReflectorOptions{})
		require.True(t, r.informer.HasSynced())
		orders(t, source, 200)
		synctest.Wait()
		require.Zero(t, r.informer.Len())
		require.Zero(t, r.view.calls)
		r.apply(t, sharding.Everything()...)
		requireShares(t, source, r)
		r.apply(t)
		require.Zero(t, r.informer.Len())
		require.Empty(t, r.view.content())
	})
}

func TestAChangeOfRangesDeliversOnlyDeletionsAndAdditions(t *testing.T) {
	inBubble(t, func(t *testing.T, source *cachetest.Source) {
		orders(t, source, 1000)
		quarters := sharding.Split(4)
		r := newReplica(t, source, cache.ReflectorOptions{}, quarters[0], quarters[1])
		before := r.view.content()
		calls := r.view.calls
		r.apply(t, quarters[1], quarters[2])
		after := r.view.content()
		changed := 0
		for key := range truth(source) {
			_, had := before[key]
			if _, has := after[key]; had != has {
				changed++
			}
		}
		require.InDelta(t, 500, changed, 80)
		require.Equal(
			t, calls+changed, r.view.calls, "nothing twice, and what stayed is not delivered")
		others := newReplica(t, source, cache.ReflectorOptions{}, quarters[0], quarters[3])
		requireShares(t, source, r, others)

		source.ResetRequests()
		r.selector.Set(sharding.Union(quarters[2], quarters[1])) // the same
		synctest.Wait()
		require.Empty(t, source.Requests())
	})
}

func TestApplyWaitsForReflectorsThatRunAndForNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewSourceOf[*object]()
		t.Cleanup(source.Close)
		orders(t, source, 100)
		r := newReplica(t, source, cache.ReflectorOptions{}, sharding.Split(2)[0])
		source.FailRequests(cachetest.Forever, cachetest.ErrConnectionRefused())
		source.CloseWatches()
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, r.selector.Apply(short, sharding.Everything()), context.DeadlineExceeded)
		require.True(t, r.selector.Includes(order("any")), "the selector itself has the new ranges")
		require.Less(t, r.informer.Len(), 100)

		began := time.Now()
		time.AfterFunc(time.Minute, source.Heal)
		r.apply(t, sharding.Everything()...)
		require.GreaterOrEqual(t, time.Since(began), time.Minute)
		requireShares(t, source, r)

		r.stop()
		require.NoError(t, r.selector.Apply(t.Context(), nil), "nothing runs")
	})
}

func TestWaitReturnsOnceTheCurrentRangesAreApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewSourceOf[*object]()
		t.Cleanup(source.Close)
		orders(t, source, 100)
		r := newReplica(t, source, cache.ReflectorOptions{}, sharding.Split(2)[0])
		require.NoError(t, r.selector.Wait(t.Context()), "nothing has changed")

		source.FailRequests(cachetest.Forever, cachetest.ErrConnectionRefused())
		source.CloseWatches()
		r.selector.Set(sharding.Everything())
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, r.selector.Wait(short), context.DeadlineExceeded)
		require.Equal(t, sharding.Everything(), r.selector.Ranges())

		source.Heal()
		require.NoError(t, r.selector.Wait(t.Context()))
		synctest.Wait() // the handler, for which Wait does not wait
		requireShares(t, source, r)
	})
}

func TestTheStopOfAnInformerEndsAnApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewSourceOf[*object]()
		t.Cleanup(source.Close)
		r := newReplica(t, source, cache.ReflectorOptions{}, sharding.Split(2)[0])
		source.HangLists(1)
		time.AfterFunc(time.Second, r.stop)
		require.NoError(t, r.selector.Apply(t.Context(), nil))
	})
}

// uidIn returns a new UID with a hash in some ranges.
func uidIn(ranges sharding.Ranges) types.UID {
	for {
		if obj := order("any"); ranges.Includes(obj) {
			return obj.UID
		}
	}
}

// event returns an event of the object a, with a UID and a version.
func event(kind watch.EventType, uid types.UID, version int) watch.Event {
	obj := order("a")
	obj.UID = uid
	obj.ResourceVersion = strconv.Itoa(version)
	return watch.Event{Type: kind, Object: obj}
}

// watched returns a source without objects, and a watcher that sends events to its watch.
func watched() (cache.Source, *watch.FakeWatcher) {
	events := watch.NewFake()
	return &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &metav1.PartialObjectMetadataList{
				ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return events, nil },
	}, events
}

func TestAKeyWhoseNewObjectBelongsToAnotherReplicaIsDeletedWithItsLastState(t *testing.T) {
	mine := sharding.Union(sharding.Split(2)[0])
	other := sharding.Union(sharding.Split(2)[1])
	for _, second := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		t.Run(string(second), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, events := watched()
				r := newReplica(t, source, cache.ReflectorOptions{}, mine...)
				send := func(e watch.Event) {
					events.Action(e.Type, e.Object)
					synctest.Wait()
				}
				send(event(watch.Added, uidIn(mine), 2))
				require.Equal(t, 1, r.informer.Len())
				send(event(second, uidIn(other), 3))
				require.Zero(t, r.informer.Len())
				require.Empty(t, r.view.content())
				r.view.check(t) // the deleted object had the UID of the added one
				require.Equal(t, "3", r.informer.ResourceVersion())
				send(event(watch.Modified, uidIn(mine), 4))
				require.Equal(t, 1, r.informer.Len())
				require.Empty(t, r.failures)
			})
		})
	}
}

// A list without a version is followed by a watch of the whole state, whose order says nothing.
// Fails if an object of another replica moves the version, so that the watch that continues a cut
// one misses this replica's objects.
func TestTheFirstObjectsOfAWatchMoveNoVersionWhicheverReplicaTheyBelongTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine := sharding.Union(sharding.Split(2)[0])
		other := sharding.Union(sharding.Split(2)[1])
		events := watch.NewFake()
		r := newReplica(t, &cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				return &metav1.PartialObjectMetadataList{}, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return events, nil },
		}, cache.ReflectorOptions{}, mine...)
		for i, uid := range []types.UID{uidIn(other), uidIn(mine)} {
			events.Add(event(watch.Added, uid, 9-i).Object)
			synctest.Wait()
			require.Empty(t, r.informer.ResourceVersion())
		}
		require.Equal(t, 1, r.informer.Len())
		events.Modify(event(watch.Modified, uidIn(other), 10).Object)
		synctest.Wait()
		require.Zero(t, r.informer.Len())
		require.Equal(t, "10", r.informer.ResourceVersion())
	})
}

// recorder is a store of another package without GetByKey, which records its calls.
type recorder struct {
	cache.ReflectorStore
	deleted []any
}

func (r *recorder) Delete(obj any) error {
	r.deleted = append(r.deleted, obj)
	return r.ReflectorStore.Delete(obj)
}

func TestQueuesAndStoresOfOtherPackagesDeleteAKeyWhoseNewObjectBelongsToAnotherReplica(
	t *testing.T,
) {
	mine := sharding.Union(sharding.Split(2)[0])
	other := sharding.Union(sharding.Split(2)[1])
	run := func(t *testing.T, store cache.ReflectorStore) {
		source, events := watched()
		reflector := cache.NewReflectorWithOptions(source.(cache.ListerWatcher), &object{}, store,
			cache.ReflectorOptions{ShardSelector: sharding.NewSelector(mine...)})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); reflector.RunWithContext(ctx) }()
		for _, e := range []watch.Event{
			event(watch.Added, uidIn(other), 2), event(watch.Added, uidIn(mine), 3),
			event(watch.Modified, uidIn(other), 4),
		} {
			events.Action(e.Type, e.Object)
		}
		synctest.Wait()
		require.Equal(t, "4", reflector.LastSyncResourceVersion())
		cancel()
		<-done
	}
	synctest.Test(t, func(t *testing.T) {
		queue := cache.NewDeltaFIFOWithOptions(
			cache.DeltaFIFOOptions{KnownObjects: cache.NewStore(cache.MetaNamespaceKeyFunc)})
		run(t, queue)
		var changes []cache.Delta
		for len(changes) < 2 {
			_, err := queue.Pop(func(obj any, _ bool) error {
				for _, delta := range obj.(cache.Deltas) {
					if delta.Type != cache.Bookmark {
						changes = append(changes, delta)
					}
				}
				return nil
			})
			require.NoError(t, err)
		}
		require.Len(t, changes, 2)
		require.Equal(t, cache.Added, changes[0].Type)
		require.Equal(
			t,
			cache.Delta{
				Type:   cache.Deleted,
				Object: cache.DeletedFinalStateUnknown{Key: "shop/a", Obj: changes[0].Object},
			},
			changes[1],
		)
	})
	synctest.Test(t, func(t *testing.T) {
		store := &recorder{
			ReflectorStore: struct{ cache.ReflectorStore }{
				cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc),
			},
		}
		run(t, store)
		tombstone := cache.DeletedFinalStateUnknown{Key: "shop/a"}
		require.Equal(t, []any{tombstone, tombstone}, store.deleted)
	})
}

func TestVerifyComparesWithTheShareAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, source *cachetest.Source) {
		orders(t, source, 200)
		r := newReplica(t, source, cache.ReflectorOptions{}, sharding.Split(2)[0])
		require.NoError(t, r.informer.Verify(t.Context()))

		source.DelayLists(time.Second) // the ranges change while it compares
		verified := make(chan error)
		go func() { verified <- r.informer.Verify(t.Context()) }()
		time.Sleep(time.Millisecond)
		r.selector.Set(sharding.Union(sharding.Split(2)[1]))
		require.NoError(t, <-verified)
		time.Sleep(time.Minute)
		require.NoError(t, r.informer.Verify(t.Context()))
		require.NoError(t, r.informer.Fresh(t.Context()))
		source.Heal()
		requireShares(
			t, source, r, newReplica(t, source, cache.ReflectorOptions{}, sharding.Split(2)[0]))
	})
}

func TestOneSelectorIsForAllNamespacesOfAnInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sources := map[string]cache.Source{}
		share := sharding.NewSelector(sharding.Split(2)[0])
		total := 0
		for _, namespace := range []string{"berlin", "paris"} {
			source := cachetest.NewSourceOf[*object]()
			t.Cleanup(source.Close)
			for i := range 100 {
				obj := order(fmt.Sprint("order-", i))
				obj.Namespace = namespace
				require.NoError(t, source.Apply(obj))
				if share.Includes(obj) {
					total++
				}
			}
			sources[namespace] = source
		}
		informer := cache.NewTypedInformer(nil, cache.InformerConfig[*object]{
			Namespaces: sources, ReflectorOptions: cache.ReflectorOptions{ShardSelector: share},
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = informer.Run(ctx) }()
		require.NoError(t, informer.WaitSynced(ctx))
		require.Equal(t, total, informer.Len())
		require.NoError(t, share.Apply(ctx, sharding.Union(sharding.Split(2)[1])))
		require.Equal(t, 200-total, informer.Len(), "Apply waits for both reflectors")
		for _, one := range informer.Status().Namespaces {
			require.Equal(t, share.Ranges().String(), one.Shard.Selector)
		}
		cancel()
		<-done
	})
}

func TestReplicasAddUpToTheSourceWhateverChanges(t *testing.T) {
	runs := 12
	if testing.Short() {
		runs = 4
	}
	for _, strategy := range []cache.ListStrategy{
		cache.ListAutomatic, cache.ListPaged, cache.ListStreaming,
	} {
		t.Run(strategy.String(), func(t *testing.T) {
			for seed := range uint64(runs) {
				inBubble(t, func(t *testing.T, source *cachetest.Source) {
					churn(t, source, strategy, rand.New(rand.NewPCG(seed, 7)))
				})
			}
		})
	}
}

// churn changes objects and ranges randomly, with failures of the source. After each pause it
// checks that the replicas together have the source's content.
func churn(t *testing.T, source *cachetest.Source, strategy cache.ListStrategy, random *rand.Rand) {
	const slots = 8
	parts := sharding.Split(slots)
	owners := make([]int, slots)
	replicas := make([]*replica, 3)
	orders(t, source, 100)
	shares := func() [3][]sharding.Range {
		var all [3][]sharding.Range
		for slot, owner := range owners {
			all[owner] = append(all[owner], parts[slot])
		}
		return all
	}
	for i, share := range shares() {
		replicas[i] = newReplica(
			t,
			source,
			cache.ReflectorOptions{Strategy: strategy, PageSize: []int64{0, 0, 7}[random.IntN(3)]},
			share...)
	}
	for range 15 {
		for range random.IntN(40) {
			switch name := fmt.Sprint("order-", random.IntN(150)); random.IntN(12) {
			case 0, 1, 2:
				_, _ = source.Delete("shop", name)
			case 3: // deleted and created again
				_, _ = source.Delete("shop", name)
				require.NoError(t, source.Apply(order(name)))
			case 4:
				source.CloseWatches()
			case 5:
				source.FailLists(1, cachetest.ErrInternal())
			case 6:
				source.CompactAll()
				source.CloseWatches()
			case 7:
				owners[random.IntN(slots)] = random.IntN(3)
				for i, share := range shares() {
					replicas[i].selector.Set(sharding.Union(share...))
				}
			case 8:
				time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
			default:
				obj, err := source.Get("shop", name)
				if err != nil {
					obj = order(name)
				}
				obj.(*object).Labels = map[string]string{"v": fmt.Sprint(random.Int())}
				require.NoError(t, source.Apply(obj))
			}
		}
		source.Heal()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		requireShares(t, source, replicas...)
	}
}
