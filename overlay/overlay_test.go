package overlay_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/overlay"
)

// A controller keeps three items of an owner. Every 10 ms it reads a cache that is 200 ms late.
func TestAControllerReadsItsOwnWritesAndCreatesNoDuplicates(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.DelayEvents(delay)
		created := 0
		reconcile := func() {
			items, err := r.overlay.ByIndex("owner", "a")
			require.NoError(t, err)
			listed, err := r.overlay.ByNamespace(
				"shop").List(
				labels.SelectorFromSet(labels.Set{"owner": "a"}))
			require.NoError(t, err)
			require.ElementsMatch(t, items, listed)
			for range 3 - len(items) {
				created++
				r.observed(r.create(fmt.Sprintf("item-%d", created), "a"))
			}
		}
		reconcileFor := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				synctest.Wait()
				reconcile()
			}
		}
		reconcileFor(2 * time.Second)
		assert.Equal(t, 3, created)

		// A foreign deletion is shown once the watch has delivered it, and never reverted.
		r.delete("item-2")
		time.Sleep(delay - time.Nanosecond)
		reconcile()
		assert.Equal(t, 3, created, "the deletion is not known")
		reconcileFor(2 * time.Second)
		assert.Equal(t, 4, created)
		assert.Len(t, r.Objects(), 3)
		assert.Empty(t, r.expired())
		assert.Zero(t, r.overlay.Pending())
	})
}

func TestAnObjectThatWasCreatedAndDeletedByOthersBeforeTheWatchShowedItIsNoGhost(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.DelayEvents(delay)
		r.observed(r.create("a", "a"))
		r.delete("a")
		r.assertShows(map[string]string{"a": "2"})
		time.Sleep(delay)
		synctest.Wait()
		r.assertShows(map[string]string{"a": "2"})
		time.Sleep(delay)
		synctest.Wait()
		r.assertShows(map[string]string{})
		assert.Zero(t, r.overlay.Pending())
	})
}

func TestAnObjectThatARelistDoesNotShowIsNoGhost(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.Silence()
		r.observed(r.create("a", "a"))
		r.delete("a")
		r.assertShows(map[string]string{"a": "2"})
		r.Heal()
		r.CompactAll()
		r.CloseWatches()
		time.Sleep(time.Minute / 4)
		synctest.Wait()
		r.assertShows(map[string]string{})
		assert.Empty(t, r.expired())
	})
}

func TestALateAnswerShowsNothingThatTheStoreHasPassed(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		first := r.create("a", "a")
		second := r.update("a", "b")
		deleted := r.create("b", "a")
		r.delete("b")
		synctest.Wait()
		r.observed(first)
		r.observed(second)
		r.observed(deleted)
		r.assertShows(map[string]string{"a": "3"})
		assert.Zero(t, r.overlay.Pending())
	})
}

func TestAnAnswerThatIsOlderThanAnEarlierOneIsIgnored(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.DelayEvents(delay)
		first := r.create("a", "a")
		second := r.update("a", "b")
		r.observed(second)
		r.observed(first)
		r.assertShows(map[string]string{"a": "3"})
		r.delete("a")
		r.overlay.ObservedDelete("shop/a", first.GetUID())
		r.assertShows(map[string]string{})
		r.observed(second)
		r.assertShows(map[string]string{})
		again := r.create("a", "a")
		r.observed(again)
		r.assertShows(map[string]string{"a": "5"})
		r.overlay.ObservedDelete("shop/a", first.GetUID())
		r.assertShows(map[string]string{"a": "5"})
		for range 4 {
			time.Sleep(delay)
			synctest.Wait()
			r.assertShows(map[string]string{"a": "5"})
		}
		assert.Zero(t, r.overlay.Pending())
	})
}

func TestADeletedObjectIsHiddenUntilTheWatchHasItsDeletionOrAnotherObject(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		one := r.create("one", "a")
		two := r.create("two", "a")
		synctest.Wait()
		r.DelayEvents(delay)
		r.update("one", "b")
		r.delete("one")
		r.overlay.ObservedDelete("shop/one", one.GetUID())
		r.delete("two")
		r.overlay.ObservedDelete("shop/two", "")
		r.create("two", "b")
		for range 4 {
			r.assertShows(map[string]string{})
			_, err := r.overlay.Get("shop/one")
			assert.True(t, apierrors.IsNotFound(err))
			assert.EqualError(t, err, `unstructureds "shop/one" not found`)
			time.Sleep(delay)
			synctest.Wait()
		}
		r.assertShows(map[string]string{"two": "7"})
		assert.NotEqual(t, two.GetUID(), r.overlayGet("two").GetUID())
		assert.Zero(t, r.overlay.Pending())
		assert.Empty(t, r.expired())
	})
}

// A key-value bucket has no UIDs. Fails if the object is hidden until the deletion expires.
func TestAnObjectWithoutAUIDThatIsCreatedAgainByOthersIsShown(t *testing.T) {
	withoutUID := func(obj *object) (*object, error) {
		obj.SetUID("")
		return obj, nil
	}
	inBubbleWith(t, withoutUID, nil, func(t *testing.T, r *rig) {
		r.create("a", "a")
		synctest.Wait()
		r.DelayEvents(delay)
		r.delete("a")
		r.overlay.ObservedDelete("shop/a", "")
		r.create("a", "b")
		r.assertShows(map[string]string{})
		time.Sleep(2 * delay)
		synctest.Wait()
		r.assertShows(map[string]string{"a": "4"})
		assert.Zero(t, r.overlay.Pending())
	})
}

func (r *rig) overlayGet(name string) *object {
	obj, err := r.overlay.ByNamespace("shop").Get(name)
	require.NoError(r.t, err)
	return obj
}

func TestAnObjectThatWasCreatedAndDeletedByTheCallerNeverComesBack(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.DelayEvents(delay)
		made := r.create("a", "a")
		r.observed(made)
		r.delete("a")
		r.overlay.ObservedDelete("shop/a", made.GetUID())
		for range 3 {
			r.assertShows(map[string]string{})
			time.Sleep(delay)
			synctest.Wait()
		}
		assert.Zero(t, r.overlay.Pending())
		assert.Empty(t, r.expired())
	})
}

func TestADeletionOfWhatIsNotShownIsIgnored(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.create("a", "a")
		synctest.Wait()
		r.overlay.ObservedDelete("shop/a", "another")
		r.overlay.ObservedDelete("shop/b", "")
		r.assertShows(map[string]string{"a": "2"})
		assert.Zero(t, r.overlay.Pending())
	})
}

func TestAWriteThatTheWatchDoesNotDeliverExpiresAndIsReported(t *testing.T) {
	inBubble(
		t,
		func(o *overlay.Options[*object]) { o.MaxAge = 5 * time.Second },
		func(t *testing.T, r *rig) {
			kept := r.create("kept", "a")
			synctest.Wait()
			r.Silence()
			made := r.create("made", "a")
			r.observed(made)
			time.Sleep(2 * time.Second)
			r.delete("kept")
			r.overlay.ObservedDelete("shop/kept", "")
			time.Sleep(3*time.Second - time.Nanosecond)
			synctest.Wait()
			r.assertShows(map[string]string{"made": "3"})
			assert.Empty(t, r.expired())
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			want := []overlay.Expired{
				{Key: "shop/made", UID: made.GetUID(), ResourceVersion: "3", Age: 5 * time.Second},
			}
			assert.Equal(t, want, r.expired(), "Run reports it at that time")
			r.assertShows(map[string]string{})
			time.Sleep(2 * time.Second)
			synctest.Wait()
			want = append(
				want,
				overlay.Expired{
					Key:             "shop/kept",
					UID:             kept.GetUID(),
					ResourceVersion: "2",
					Deleted:         true,
					Age:             5 * time.Second,
				},
			)
			assert.Equal(t, want, r.expired())
			r.assertShows(map[string]string{"kept": "2"})
			r.Heal()
		},
	)
}

func TestWithoutRunAWriteExpiresAllTheSameAndTheNextReadReportsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var expired []overlay.Expired
		o := overlay.Over(
			newIndexer(),
			overlay.Options[*object]{
				OnExpired: func(e overlay.Expired) { expired = append(expired, e) },
			},
		)
		require.NoError(t, o.Observed(opaque("a", "u", "1")))
		require.NoError(t, o.Observed(opaque("b", "v", "2")))
		time.Sleep(overlay.DefaultMaxAge)
		_, exists := o.Lookup("shop/a")
		assert.False(t, exists)
		assert.Len(t, expired, 1)
		assert.Zero(t, o.Len())
		assert.Len(t, expired, 2)
		assert.Zero(t, o.Pending())
	})
}

func newIndexer() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		"owner": func(obj any) ([]string, error) { return byOwner(obj.(*object)) },
	})
}

func TestAWriteOfAServerThatWasRestoredIsShownNoLonger(t *testing.T) {
	indexer := newIndexer()
	indexer.Bookmark("50")
	o := overlay.Over(indexer, overlay.Options[*object]{})
	require.NoError(t, o.Observed(opaque("a", "u", "60")))
	require.NoError(t, indexer.Replace(nil, "40"))
	require.NoError(t, o.Observed(opaque("a", "v", "45")))
	obj, exists := o.Lookup("shop/a")
	require.True(t, exists, "a write to the restored server is")
	assert.Equal(t, "45", obj.GetResourceVersion())
	require.NoError(t, indexer.Replace(nil, "30"))
	assert.Zero(t, o.Len())
}

func TestAStateThatIsObservedAgainExpiresNoLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expired := 0
		o := overlay.Over(
			newIndexer(), overlay.Options[*object]{OnExpired: func(overlay.Expired) { expired++ }})
		require.NoError(t, o.Observed(opaque("a", "u", "1")))
		time.Sleep(overlay.DefaultMaxAge - 1)
		require.NoError(t, o.Observed(opaque("a", "u", "1")))
		assert.Equal(t, 1, o.Pending())
		time.Sleep(time.Nanosecond)
		assert.Zero(t, o.Pending())
		assert.Equal(t, 1, expired)
	})
}

func TestAReaderOfANamespaceReadsNoOther(t *testing.T) {
	o := overlay.Over(newIndexer(), overlay.Options[*object]{})
	require.NoError(t, o.Observed(opaque("a", "u", "1")))
	for namespace, want := range map[string]int{"": 1, "shop": 1, "lab": 0} {
		reader := o.ByNamespace(namespace)
		assert.Equal(t, want, reader.Len(), namespace)
		found, err := reader.ByIndex("owner", "a")
		require.NoError(t, err)
		assert.Len(t, found, want, namespace)
		values, err := reader.IndexValues("owner")
		require.NoError(t, err)
		assert.Len(t, values, want, namespace)
		_, exists := reader.Lookup("a")
		assert.Equal(t, namespace == "shop", exists, namespace)
	}
}

func TestAnObjectWhoseNewestStateIsQuarantinedDoesNotGoBack(t *testing.T) {
	indexer := newIndexer()
	require.NoError(t, indexer.Replace([]any{opaque("a", "u", "1")}, "1"))
	o := overlay.Over(indexer, overlay.Options[*object]{})
	require.NoError(t, o.Observed(opaque("a", "u", "2")))
	indexer.Bookmark("3")
	obj, err := o.Get("shop/a")
	require.NoError(t, err)
	assert.Equal(t, "2", obj.GetResourceVersion())
}

func TestVersionsThatAreNoNumbersAreConfirmedByEvents(t *testing.T) {
	indexer := newIndexer()
	require.NoError(t, indexer.Replace([]any{opaque("a", "u", "x"), opaque("b", "v", "x")}, "x"))
	o := overlay.Over(indexer, overlay.Options[*object]{})
	events := o.EventHandler()
	version := func(name string) string {
		obj, exists := o.Lookup("shop/" + name)
		if !exists {
			return ""
		}
		return obj.GetResourceVersion()
	}

	// An update: earlier states are not shown, its own and later ones are.
	require.NoError(t, o.Observed(opaque("a", "u", "mine")))
	require.NoError(t, indexer.Update(opaque("a", "u", "foreign")))
	assert.Equal(t, "mine", version("a"))
	events.OnUpdate(opaque("a", "u", "x"), opaque("a", "u", "foreign"))
	assert.Equal(t, "mine", version("a"))
	require.NoError(t, indexer.Update(opaque("a", "u", "later")))
	assert.Equal(t, "mine", version("a"), "the store had passed through it unseen")
	events.OnUpdate(opaque("a", "u", "foreign"), opaque("a", "u", "mine"))
	assert.Equal(t, "later", version("a"))

	// A deletion, then another object with the same name.
	o.ObservedDelete("shop/a", "u")
	assert.Empty(t, version("a"))
	require.NoError(t, indexer.Update(opaque("a", "w", "other")))
	assert.Equal(t, "other", version("a"))

	// An object that replaces another: the other is not shown again.
	require.NoError(t, o.Observed(opaque("b", "w", "mine")))
	assert.Equal(t, "mine", version("b"))
	require.NoError(t, indexer.Delete(opaque("b", "", "")))
	assert.Equal(t, "mine", version("b"))
	events.OnDelete(opaque("b", "v", "x"))
	assert.Equal(t, "mine", version("b"))
	require.NoError(t, indexer.Update(opaque("b", "z", "foreign")))
	assert.Equal(t, "foreign", version("b"), "a third one is newer")

	// A created object whose deletion the store has already received.
	require.NoError(t, o.Observed(opaque("c", "c", "mine")))
	assert.Equal(t, "mine", version("c"))
	events.OnDelete(cache.DeletedFinalStateUnknown{Key: "shop/c", Obj: opaque("c", "c", "last")})
	assert.Empty(t, version("c"))
	assert.Zero(t, o.Pending())
}

func TestANamespaceThatIsBehindKeepsNoGhostOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewSource(cachetest.Options{})
		defer source.Close()
		items := cache.NewTypedInformer(
			nil,
			cache.InformerConfig[*object]{Namespaces: map[string]cache.Source{
				"shop": source.Namespace("shop"), "lab": source.Namespace("lab"),
			}},
		)
		o, err := overlay.New(items, overlay.Options[*object]{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = items.Run(ctx) }()
		require.NoError(t, items.WaitSynced(ctx))
		made := must(t)(source.Create(newObject("a", "a")))
		must(t)(source.Delete("shop", "a"))
		synctest.Wait()
		require.Equal(t, "1", items.ResourceVersion(), "lab has heard of nothing")
		require.NoError(t, o.Observed(made)) // the call's result is observed late
		assert.Zero(t, o.Len())
		cancel()
		synctest.Wait()
	})
}

func TestASnapshotKeepsTheObservedWrites(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		before := r.overlay.Snapshot()
		r.DelayEvents(delay)
		r.observed(r.create("a", "a"))
		with := r.overlay.Snapshot()
		r.delete("a")
		time.Sleep(3 * delay)
		synctest.Wait()
		assert.Empty(t, versions(before))
		assert.Equal(t, map[string]string{"a": "2"}, versions(with))
		assert.Equal(t, "1", with.ResourceVersion())
		assert.Equal(t, with, with.Snapshot())
		r.assertShows(map[string]string{})
	})
}

func TestAnObjectThatCannotBeIndexedIsReportedAndNotShown(t *testing.T) {
	failing := errors.New("no owner")
	indexer := cache.NewIndexer(
		cache.MetaNamespaceKeyFunc,
		cache.Indexers{"owner": func(obj any) ([]string, error) {
			switch owner := obj.(*object).GetLabels()["owner"]; owner {
			case "":
				return nil, failing
			case "panic":
				panic("a bad index function")
			default:
				return []string{owner}, nil
			}
		}},
	)
	o := overlay.Over(indexer, overlay.Options[*object]{})
	err := o.Observed(newObject("a", ""))
	assert.ErrorIs(t, err, failing)
	assert.EqualError(
		t, err, `own write of "shop/a" at version  is not shown: index "owner": no owner`)
	assert.ErrorContains(
		t, o.Observed(newObject("a", "panic")), `index "owner" panicked: a bad index function`)
	assert.ErrorContains(t, o.Observed(nil), "object is nil")
	assert.ErrorContains(t, o.Observed(&object{}), "key is empty")
	assert.Zero(t, o.Pending())

	// An index that is added later omits it.
	require.NoError(t, o.Observed(newObject("a", "a")))
	require.NoError(t, indexer.AddIndexers(cache.Indexers{
		"name":  func(obj any) ([]string, error) { return []string{obj.(*object).GetName()}, nil },
		"fails": func(any) ([]string, error) { return nil, failing },
	}))
	found, err := o.ByIndex("name", "a")
	require.NoError(t, err)
	assert.Len(t, found, 1)
	values, err := o.IndexValues("fails")
	require.NoError(t, err)
	assert.Empty(t, values)
	_, err = o.ByIndex("none", "a")
	assert.EqualError(t, err, "Index with name none does not exist")
	_, err = o.AllByIndex("none", "a")
	assert.EqualError(t, err, "Index with name none does not exist")
}

func TestATransformIsCalledWithACopyAndMayHideTheObject(t *testing.T) {
	inBubble(t, func(o *overlay.Options[*object]) {
		o.Transform = func(obj *object) (*object, error) {
			if obj.GetLabels()["owner"] == "none" {
				return nil, nil
			}
			obj.SetLabels(map[string]string{"owner": "transformed"})
			return obj, nil
		}
	}, func(t *testing.T, r *rig) {
		r.DelayEvents(delay)
		made := r.create("a", "a")
		r.observed(made)
		assert.Equal(t, "a", made.GetLabels()["owner"])
		found, err := r.overlay.ByIndex("owner", "transformed")
		require.NoError(t, err)
		assert.Len(t, found, 1)
		r.observed(r.update("a", "none"))
		r.assertShows(map[string]string{})
	})
}

func TestAQuarantinedObjectIsReportedByGet(t *testing.T) {
	indexer := newIndexer()
	require.NoError(
		t,
		indexer.AddIndexers(
			cache.Indexers{"fails": func(any) ([]string, error) { return nil, errors.New("no") }}),
	)
	assert.Error(t, indexer.Add(opaque("a", "u", "1")))
	o := overlay.Over(indexer, overlay.Options[*object]{})
	_, err := o.Get("shop/a")
	assert.ErrorIs(t, err, cache.ErrQuarantined)
	_, err = o.Get("shop/b")
	assert.True(t, apierrors.IsNotFound(err))
	assert.EqualError(t, err, `unstructureds "shop/b" not found`)
}

// newRepairable returns an overlay of an indexer that has quarantined shop/a until repair is
// called. The overlay shows a write of another object.
func newRepairable(t *testing.T) (o *overlay.Overlay[*object], repair func()) {
	t.Helper()
	var repaired atomic.Bool
	indexer := newIndexer()
	require.NoError(t, indexer.AddIndexers(cache.Indexers{"name": func(obj any) ([]string, error) {
		name := obj.(*object).GetName()
		if name == "a" && !repaired.Load() {
			return nil, errors.New("no")
		}
		return []string{name}, nil
	}}))
	require.Error(t, indexer.Add(opaque("a", "u", "1")))
	o = overlay.Over(indexer, overlay.Options[*object]{})
	require.NoError(t, o.Observed(opaque("b", "v", "2")))
	return o, func() {
		repaired.Store(true)
		require.NoError(t, indexer.Update(opaque("a", "u", "3")))
	}
}

func TestASnapshotWithWritesReadsTheQuarantineOfTheSnapshot(t *testing.T) {
	o, repair := newRepairable(t)
	before := o.Snapshot()
	repair()
	_, err := before.Get("shop/a")
	require.ErrorIs(t, err, cache.ErrQuarantined)
	_, err = before.ByNamespace("shop").Get("a")
	require.ErrorIs(t, err, cache.ErrQuarantined)
	obj, err := o.Snapshot().Get("shop/a")
	require.NoError(t, err)
	assert.Equal(t, "3", obj.GetResourceVersion())
}

func TestAQuarantinedObjectIsNeverNotFoundWhileAWriteRepairsIt(t *testing.T) {
	for range 300 {
		o, repair := newRepairable(t)
		var reader sync.WaitGroup
		reading := make(chan struct{})
		var failed error
		reader.Go(func() {
			close(reading)
			var err error = cache.ErrQuarantined
			for errors.Is(err, cache.ErrQuarantined) {
				_, err = o.Get("shop/a")
			}
			failed = err
		})
		<-reading
		repair()
		reader.Wait()
		require.NoError(t, failed, "the object exists")
	}
}

func TestAnOverlayIsMadeOnlyOfAnIndexerOfTheLibrary(t *testing.T) {
	wrapped := struct{ cache.Indexer }{newIndexer()}
	assert.PanicsWithValue(
		t,
		"overlay: struct { cache.Indexer } has no Snapshot: it is not an indexer of package cache",
		func() {
			overlay.Over(wrapped, overlay.Options[*object]{})
		},
	)
	assert.PanicsWithValue(t, "overlay: Options.MaxAge is negative", func() {
		overlay.Over(newIndexer(), overlay.Options[*object]{MaxAge: -1})
	})
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewSource(cachetest.Options{})
		defer source.Close()
		items := cache.NewTypedInformer(source, cache.InformerConfig[*object]{})
		items.Stop()
		_, err := overlay.New(items, overlay.Options[*object]{})
		assert.ErrorIs(t, err, cache.ErrInformerStopped)
	})
}

func TestListersOfOtherCodeReadTheOverlay(t *testing.T) {
	o := overlay.Over(newIndexer(), overlay.Options[*object]{})
	require.NoError(t, o.Observed(newObject("a", "a")))
	lister := cache.NewGenericLister(o.Indexer(), schema.GroupResource{Resource: "items"})
	found, err := lister.ByNamespace("shop").Get("a")
	require.NoError(t, err)
	assert.Equal(t, "a", found.(metav1.Object).GetName())
	all, err := lister.ByNamespace("shop").List(labels.Everything())
	require.NoError(t, err)
	assert.Len(t, all, 1)
}

// Concurrent readers, each of which sees only newer versions, while one goroutine writes and
// observes and the watch delivers.
func TestNoReaderSeesAnOlderStateAfterANewerOne(t *testing.T) {
	source := cachetest.NewSource(cachetest.Options{})
	defer source.Close()
	items := cache.NewTypedInformer(
		source,
		cache.InformerConfig[*object]{Indexes: cache.TypedIndexers[*object]{"owner": byOwner}})
	o, err := overlay.New(items, overlay.Options[*object]{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { _ = items.Run(ctx) })
	running.Go(func() { o.Run(ctx) })
	require.NoError(t, items.WaitSynced(ctx))
	must(t)(source.Create(newObject("a", "a")))

	var done atomic.Bool
	var readers sync.WaitGroup
	read := func(what string, get func() *object) {
		readers.Go(func() {
			newest := 0
			for !done.Load() {
				obj := get()
				if obj == nil {
					continue
				}
				version := 0
				_, _ = fmt.Sscan(obj.GetResourceVersion(), &version)
				if version < newest {
					t.Errorf("%s: version %d after %d", what, version, newest)
					return
				}
				newest = version
			}
		})
	}
	first := func(objects []*object, _ error) *object {
		if len(objects) == 0 {
			return nil
		}
		return objects[0]
	}
	read("Lookup", func() *object { obj, _ := o.Lookup("shop/a"); return obj })
	read("ByIndex", func() *object { return first(o.ByIndex("owner", "a")) })
	read("Snapshot", func() *object { obj, _ := o.Snapshot().Lookup("shop/a"); return obj })
	var written *object
	for range 2000 {
		written = must(t)(source.Update(newObject("a", "a")))
		require.NoError(t, o.Observed(written))
		obj, exists := o.Lookup("shop/a")
		require.True(t, exists)
		require.Equal(t, written.GetResourceVersion(), obj.GetResourceVersion())
	}
	done.Store(true)
	readers.Wait()
}

// The object leaves the selector by another program's change and comes back by the write, which is
// observed before the watch delivers either.
func TestAWriteThatBringsAnObjectBackIntoTheSelectorIsShownUntilTheWatchDeliversIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewTestSource(t, cachetest.Options{})
		source.MustApply(t, newObject("a", "us"))
		items := cache.NewTypedInformer(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				options.LabelSelector = "owner=us"
				return source.ListWithContext(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.LabelSelector = "owner=us"
				return source.WatchWithContext(ctx, options)
			},
		}, cache.InformerConfig[*object]{})
		o, err := overlay.New(items, overlay.Options[*object]{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = items.Run(ctx) }()
		require.NoError(t, items.WaitSynced(ctx))
		source.DelayEvents(time.Second)
		source.MustApply(t, newObject("a", "them"))
		time.Sleep(time.Second / 2)
		back := must(t)(source.Update(newObject("a", "us")))
		require.NoError(t, o.Observed(back))
		time.Sleep(time.Second * 3 / 4)
		synctest.Wait()
		require.Zero(t, items.Len(), "the store has the departure and not the return")
		shown, exists := o.Lookup("shop/a")
		require.True(t, exists)
		assert.Equal(t, back.GetResourceVersion(), shown.GetResourceVersion())
		require.NoError(t, items.WaitSynced(ctx))
		time.Sleep(time.Second)
		assert.Zero(t, o.Pending())
		assert.Equal(t, 1, o.Len())
		cancel()
		synctest.Wait()
	})
}

// Two types in one indexer; each overlay reads one of them.
func TestTheIndexValuesOfATypedOverlayAreThoseOfItsObjects(t *testing.T) {
	byName := func(obj any) ([]string, error) { return []string{obj.(metav1.Object).GetName()}, nil }
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"name": byName})
	require.NoError(t, indexer.Add(newObject("item", "a")))
	other := &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other"},
	}
	require.NoError(t, indexer.Add(other))
	o := overlay.Over(indexer, overlay.Options[*object]{})
	for _, reader := range []overlay.Reader[*object]{
		o.Reader, o.Snapshot(), o.ByNamespace("shop"),
	} {
		values, err := reader.IndexValues("name")
		require.NoError(t, err)
		assert.Equal(t, []string{"item"}, values)
	}
	assert.Equal(t, []string{"item", "other"}, o.Indexer().ListIndexFuncValues("name"))
}

// Code that reads an informer can read an overlay instead. Fails if cache.Reader has a method that
// Reader lacks.
func TestAReaderHasAllMethodsOfTheCachesReader(t *testing.T) {
	reader := reflect.TypeFor[overlay.Reader[*object]]()
	for method := range reflect.TypeFor[cache.Reader[*object]]().Methods() {
		_, exists := reader.MethodByName(method.Name)
		assert.True(t, exists, "overlay.Reader needs %s, which cache.Reader has; "+
			"name it in docs/own-writes.md", method.Name)
	}
}
