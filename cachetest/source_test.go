package cachetest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

func TestEveryChangeGetsTheNextVersion(t *testing.T) {
	src := cachetest.NewSource(cachetest.Options{StartVersion: 100})
	require.Equal(t, "100", src.ResourceVersion())
	stored, err := src.Create(pod("a", "1"))
	require.NoError(t, err)
	require.Equal(t, "101", versionOf(t, stored))
	stored, err = src.Update(pod("a", "1"))
	require.NoError(t, err)
	require.Equal(t, "102", versionOf(t, stored))
	src.Advance(10)
	deleted, err := src.Delete("a", "1")
	require.NoError(t, err)
	require.Equal(t, "113", versionOf(t, deleted))
	require.Equal(t, uint64(113), src.Version())
	require.Empty(t, src.Objects())
}

func TestNoListIsAnsweredWithVersionZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := cachetest.NewSource(cachetest.Options{})
		require.Zero(t, src.Version())
		_, answered := list(t, src, metav1.ListOptions{})
		require.Equal(t, "1", answered.GetResourceVersion())
		w := open(t, src, metav1.ListOptions{ResourceVersion: "1"})
		apply(t, src, pod("a", "1"))
		require.Equal(t, []string{"ADDED a/1 @2"}, ready(t, w))
	})
}

func TestWhatTheCallerDoesToItsObjectsDoesNotChangeTheSource(t *testing.T) {
	src := cachetest.NewSource(cachetest.Options{})
	given := pod("a", "1", "app", "web")
	stored, err := src.Create(given)
	require.NoError(t, err)
	given.SetLabels(nil)
	stored.(*unstructured.Unstructured).SetLabels(nil)
	got, err := src.Get("a", "1")
	require.NoError(t, err)
	require.Equal(t, "web", got.(*unstructured.Unstructured).GetLabels()["app"])
	got.(*unstructured.Unstructured).SetLabels(nil)
	src.Objects()[0].(*unstructured.Unstructured).SetLabels(nil)
	obj, err := src.List(metav1.ListOptions{})
	require.NoError(t, err)
	item := &obj.(*unstructured.UnstructuredList).Items[0]
	require.Equal(t, "web", item.GetLabels()["app"])
	item.SetLabels(nil)
	got, err = src.Get("a", "1")
	require.NoError(t, err)
	require.Equal(t, "web", got.(*unstructured.Unstructured).GetLabels()["app"])
}

func TestStoringFillsInWhatAServerFillsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := cachetest.NewSource(cachetest.Options{GroupVersionKind: podKind})
		bare := &unstructured.Unstructured{Object: map[string]any{}}
		bare.SetGenerateName("web-")
		obj, err := src.Create(bare)
		require.NoError(t, err)
		stored := obj.(*unstructured.Unstructured)
		require.Equal(t, "web-00001", stored.GetName())
		require.Equal(t, podKind, stored.GroupVersionKind())
		require.NotEmpty(t, stored.GetUID())
		require.True(t, time.Now().Equal(stored.GetCreationTimestamp().Time))
		require.Empty(t, bare.GetName(), "the caller's object")
		apply(t, src, pod("", "web-00003"), bare)
		_, err = src.Get("", "web-00004")
		require.NoError(t, err, "a name in use is not generated")

		time.Sleep(time.Hour)
		obj, err = src.Update(pod("", "web-00001"))
		require.NoError(t, err)
		updated := obj.(*unstructured.Unstructured)
		require.Equal(t, stored.GetUID(), updated.GetUID())
		require.Equal(t, stored.GetCreationTimestamp(), updated.GetCreationTimestamp())

		remove(t, src, "", "web-00001")
		again, err := src.Create(pod("", "web-00001"))
		require.NoError(t, err)
		require.NotEqual(t, stored.GetUID(), again.(*unstructured.Unstructured).GetUID())
	})
}

func TestWritesThatCannotBeAreAPIErrorsAndChangeNothing(t *testing.T) {
	src := filled(t, cachetest.Options{GroupVersionKind: podKind})
	unchanged := func() {
		t.Helper()
		require.Equal(t, uint64(4), src.Version())
		require.Len(t, src.Objects(), 4)
	}
	_, err := src.Create(pod("a", "1"))
	requireReason(t, metav1.StatusReasonAlreadyExists, err)
	require.ErrorContains(t, err, `pods "1"`)
	_, err = src.Update(pod("a", "9"))
	requireReason(t, metav1.StatusReasonNotFound, err)
	_, err = src.Delete("a", "9")
	requireReason(t, metav1.StatusReasonNotFound, err)
	_, err = src.Get("c", "1")
	requireReason(t, metav1.StatusReasonNotFound, err)

	stale := pod("a", "1")
	stale.SetResourceVersion("3")
	_, err = src.Update(stale)
	requireReason(t, metav1.StatusReasonConflict, err)
	other := pod("a", "1")
	other.SetUID("another")
	_, err = src.Update(other)
	requireReason(t, metav1.StatusReasonConflict, err)
	unchanged()

	notJSON := pod("a", "5")
	notJSON.Object["count"] = 5 // an int, which an unstructured object cannot hold
	for _, bad := range []runtime.Object{
		nil, (*widget)(nil), &metav1.Status{}, pod("a", ""), notJSON,
	} {
		_, err = src.Create(bad)
		requireReason(t, metav1.StatusReasonBadRequest, err)
		_, err = src.Update(bad)
		requireReason(t, metav1.StatusReasonBadRequest, err)
		require.Error(t, src.Apply(pod("a", "7"), bad), "none is stored if one is bad")
	}
	unchanged()
}

func TestUpdateFromTheStoredVersionSucceeds(t *testing.T) {
	src := filled(t, cachetest.Options{})
	obj, err := src.Get("a", "1")
	require.NoError(t, err)
	_, err = src.Update(obj)
	require.NoError(t, err)
	_, err = src.Update(obj)
	requireReason(t, metav1.StatusReasonConflict, err)
	require.NoError(t, src.Apply(obj), "Apply does not care")
}

func TestResourceNamesTheErrors(t *testing.T) {
	named := cachetest.NewSource(
		cachetest.Options{Resource: schema.GroupResource{Group: "g", Resource: "things"}})
	_, err := named.Get("", "x")
	require.ErrorContains(t, err, `things.g "x" not found`)
	_, err = cachetest.NewSource(cachetest.Options{}).Get("", "x")
	require.ErrorContains(t, err, `objects "x" not found`)
}

func TestRollbackRestoresContentAndVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		_, page := list(t, src, metav1.ListOptions{Limit: 1})
		w := open(t, src, metav1.ListOptions{ResourceVersion: "4"})
		remove(t, src, "a", "1")
		apply(t, src, pod("a", "2"), pod("c", "1"))
		require.NoError(t, src.Rollback(3))
		require.Equal(t, uint64(3), src.Version())
		names, _ := list(t, src, metav1.ListOptions{})
		require.Equal(t, []string{"a/1", "a/2", "a/3"}, names)
		require.Equal(t, []string{"closed"}, ready(t, w))
		_, err := src.List(metav1.ListOptions{Continue: page.GetContinue()})
		requireReason(t, metav1.StatusReasonExpired, err)

		apply(t, src, pod("z", "1"))
		require.Equal(t, uint64(4), src.Version(), "versions are given out again")
		_, err = src.List(metav1.ListOptions{Continue: page.GetContinue()})
		requireReason(t, metav1.StatusReasonExpired, err)
		w = open(t, src, metav1.ListOptions{ResourceVersion: "3"})
		require.Equal(t, []string{"ADDED z/1 @4"}, ready(t, w))
		names, _ = list(
			t,
			src,
			metav1.ListOptions{
				ResourceVersion:      "4",
				ResourceVersionMatch: metav1.ResourceVersionMatchExact,
			},
		)
		require.Equal(t, []string{"a/1", "a/2", "a/3", "z/1"}, names)

		require.Error(t, src.Rollback(5))
		src.CompactAll()
		require.Error(t, src.Rollback(3))
		require.NoError(t, src.Rollback(4))
	})
}

func TestCloseEndsEverythingAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		w := open(t, src, metav1.ListOptions{ResourceVersion: "1"})
		src.HangListsIgnoringContext(1)
		answer := make(chan error)
		go func() {
			_, err := src.List(metav1.ListOptions{})
			answer <- err
		}()
		synctest.Wait()
		src.Close()
		require.Zero(t, src.ActiveWatches())
		_, isOpen := <-w.ResultChan()
		require.False(t, isOpen)
		require.ErrorIs(t, <-answer, cachetest.ErrClosed)

		_, err := src.List(metav1.ListOptions{})
		require.ErrorIs(t, err, cachetest.ErrClosed)
		_, err = src.Watch(metav1.ListOptions{})
		require.ErrorIs(t, err, cachetest.ErrClosed)
		apply(t, src, pod("a", "9"))
		require.Len(t, src.Objects(), 5)
		src.Close()
	})
}

func TestCloseDuringADelayedWatchRefusesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		src.OnWatch(func(metav1.ListOptions) error { src.Close(); return nil })
		_, err := src.Watch(metav1.ListOptions{})
		require.ErrorIs(t, err, cachetest.ErrClosed)

		src = filled(t, cachetest.Options{})
		src.DelayLists(time.Second)
		src.HangLists(1)
		src.OnList(func(metav1.ListOptions) error { return nil })
		answer := make(chan error)
		go func() {
			_, err := src.List(metav1.ListOptions{})
			answer <- err
		}()
		synctest.Wait()
		src.ReleaseHanging()
		synctest.Wait()
		src.Close()
		require.ErrorIs(t, <-answer, cachetest.ErrClosed)
	})
}

// listerWatcher has the methods that a reflector needs.
type listerWatcher interface {
	List(metav1.ListOptions) (runtime.Object, error)
	Watch(metav1.ListOptions) (watch.Interface, error)
	ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error)
	WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error)
	IsWatchListSemanticsUnSupported() bool
}

var (
	_ listerWatcher = (*cachetest.Source)(nil)
	_ listerWatcher = (*cachetest.View)(nil)
)

func TestConcurrentUseIsSafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{HistoryLimit: 50})
		stop := make(chan struct{})
		for range 4 {
			w := open(t, src, metav1.ListOptions{AllowWatchBookmarks: true})
			go func() {
				for range w.ResultChan() {
				}
			}()
			go func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					_, _ = src.List(metav1.ListOptions{Limit: 2})
					_ = src.Requests()
					src.SendBookmarks()
				}
			}()
		}
		for i := range 500 {
			apply(t, src, pod("a", "1"), pod("c", "1"))
			remove(t, src, "c", "1")
			if i%100 == 0 {
				src.CompactAll()
			}
		}
		close(stop)
		src.Close()
	})
}
