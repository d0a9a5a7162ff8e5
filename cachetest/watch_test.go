package cachetest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

func TestWatchFromAVersionDeliversEveryLaterChangeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		apply(t, src, pod("a", "2"))
		remove(t, src, "a", "1")
		w := open(t, src, metav1.ListOptions{ResourceVersion: "3"})
		require.Equal(t, []string{"ADDED b/1 @4", "MODIFIED a/2 @5", "DELETED a/1 @6"}, ready(t, w))
		apply(t, src, pod("a", "1"))
		require.Equal(t, []string{"ADDED a/1 @7"}, ready(t, w))
	})
}

func TestWatchFromNowhereBeginsWithWhatThereIsInNoVersionOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		apply(t, src, pod("a", "1"))
		for _, version := range []string{"", "0"} {
			w := open(t, src, metav1.ListOptions{ResourceVersion: version})
			require.Equal(
				t, []string{"ADDED a/1 @5", "ADDED a/2 @2", "ADDED a/3 @3", "ADDED b/1 @4"},
				ready(t, w))
		}
		w := open(t, src.Namespace("b"), metav1.ListOptions{})
		apply(t, src, pod("a", "1"), pod("b", "1"))
		require.Equal(t, []string{"ADDED b/1 @4", "MODIFIED b/1 @7"}, ready(t, w))
	})
}

// A real API server does this (B23): 200, then silence without bookmarks, and later only events
// that are newer than the requested version.
func TestWatchFromAVersionNotReachedIsSilentUntilItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		w := open(t, src, metav1.ListOptions{ResourceVersion: "6", AllowWatchBookmarks: true})
		time.Sleep(3*time.Minute + 30*time.Second) // between two bookmarks
		src.SendBookmarks()
		apply(t, src, pod("a", "1"), pod("a", "2"))
		require.Equal(t, "6", src.ResourceVersion())
		require.Empty(t, ready(t, w))
		apply(t, src, pod("a", "3"))
		require.Equal(t, []string{"MODIFIED a/3 @7"}, ready(t, w))
		src.SendBookmarks()
		require.Equal(t, []string{"BOOKMARK @7"}, ready(t, w))
	})
}

func TestWatchFromALostVersionIsSilentAfterARollback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		require.NoError(t, src.Rollback(2))
		w := open(t, src, metav1.ListOptions{ResourceVersion: "4"})
		remove(t, src, "a", "1")
		remove(t, src, "a", "2")
		require.Empty(t, ready(t, w))
		apply(t, src, pod("c", "1"))
		require.Equal(t, []string{"ADDED c/1 @5"}, ready(t, w))
	})
}

func TestStreamFromAVersionNotReachedIsTooLarge(t *testing.T) {
	asked := streaming()
	asked.ResourceVersion = "5"
	_, err := filled(t, cachetest.Options{}).Watch(asked)
	require.True(
		t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "%v", err)
	_, err = filled(
		t, cachetest.Options{RefuseFutureWatches: true}).Watch(
		metav1.ListOptions{ResourceVersion: "5"})
	require.True(
		t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "%v", err)
}

func TestWatchRefusesOptionsThatMakeNoSense(t *testing.T) {
	src := filled(t, cachetest.Options{})
	plain := cachetest.NewSource(cachetest.Options{NoWatchList: true})
	for name, c := range map[string]struct {
		src    *cachetest.Source
		opts   metav1.ListOptions
		reason metav1.StatusReason
	}{
		"version": {
			src, metav1.ListOptions{ResourceVersion: "x"}, metav1.StatusReasonBadRequest,
		},
		"selector": {
			src, metav1.ListOptions{LabelSelector: "="}, metav1.StatusReasonBadRequest,
		},
		"match": {
			src, metav1.ListOptions{ResourceVersionMatch: notOlderThan}, metav1.StatusReasonInvalid,
		},
		"streaming without match": {
			src, metav1.ListOptions{SendInitialEvents: pointer(true), AllowWatchBookmarks: true},
			metav1.StatusReasonInvalid,
		},
		"streaming, exact": {
			src,
			metav1.ListOptions{
				SendInitialEvents:    pointer(true),
				AllowWatchBookmarks:  true,
				ResourceVersion:      "1",
				ResourceVersionMatch: exact,
			},
			metav1.StatusReasonInvalid,
		},
		"streaming without bookmarks": {
			src,
			metav1.ListOptions{
				SendInitialEvents:    pointer(true),
				ResourceVersionMatch: notOlderThan,
			},
			metav1.StatusReasonInvalid,
		},
		"streaming not known": {plain, streaming(), metav1.StatusReasonInvalid},
	} {
		_, err := c.src.Watch(c.opts)
		require.Error(t, err, name)
		requireReason(t, c.reason, err)
	}
	require.Zero(t, src.ActiveWatches())
}

func streaming() metav1.ListOptions {
	return metav1.ListOptions{
		SendInitialEvents:    pointer(true),
		ResourceVersionMatch: notOlderThan,
		AllowWatchBookmarks:  true,
	}
}

func TestTheMarkerSaysWhatTheOptionSays(t *testing.T) {
	require.False(t, cachetest.NewSource(cachetest.Options{}).IsWatchListSemanticsUnSupported())
	src := cachetest.NewSource(cachetest.Options{WatchListUnsupported: true})
	require.True(t, src.IsWatchListSemanticsUnSupported())
}

func TestStreamingListEndsWithAnAnnotatedBookmarkAndContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		src.CompactAll()
		opts := streaming()
		opts.ResourceVersion = "2" // compacted, but the watch receives nothing older than 2
		w := open(t, src, opts)
		require.Equal(
			t,
			[]string{
				"ADDED a/1 @1", "ADDED a/2 @2", "ADDED a/3 @3", "ADDED b/1 @4", "BOOKMARK end @4",
			},
			ready(t, w),
		)
		apply(t, src, pod("c", "1"))
		require.Equal(t, []string{"ADDED c/1 @5"}, ready(t, w))

		none := streaming()
		none.SendInitialEvents = pointer(false)
		w = open(t, src, none)
		apply(t, src, pod("c", "1"))
		require.Equal(t, []string{"MODIFIED c/1 @6"}, ready(t, w))
		none.ResourceVersion = "4"
		w = open(t, src, none)
		require.Equal(t, []string{"ADDED c/1 @5", "MODIFIED c/1 @6"}, ready(t, w))
	})
}

func TestChangesDuringAStreamingListComeAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		w := open(t, src, streaming())
		require.Equal(t, []string{"ADDED a/1 @1", "ADDED a/2 @2"}, received(t, w, 2))
		apply(t, src, pod("a", "0"))
		require.Equal(
			t, []string{"ADDED a/3 @3", "ADDED b/1 @4", "BOOKMARK end @4", "ADDED a/0 @5"},
			received(t, w, 4))
	})
}

func TestBookmarksComeEveryIntervalWithThePresentVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		start := time.Now()
		w := open(t, src, metav1.ListOptions{ResourceVersion: "4", AllowWatchBookmarks: true})
		deaf := open(t, src, metav1.ListOptions{ResourceVersion: "4"})
		src.Advance(3)
		require.Equal(t, []string{"BOOKMARK @7"}, received(t, w, 1))
		require.Equal(t, cachetest.DefaultBookmarkInterval, time.Since(start))
		require.Equal(t, []string{"BOOKMARK @7"}, received(t, w, 1))
		require.Equal(t, 2*time.Minute, time.Since(start))
		src.SendBookmarks()
		require.Equal(t, []string{"BOOKMARK @7"}, ready(t, w))
		require.Equal(t, []string{"silence"}, received(t, deaf, 1))

		src = filled(t, cachetest.Options{BookmarkInterval: time.Second})
		start = time.Now()
		w = open(t, src, metav1.ListOptions{ResourceVersion: "4", AllowWatchBookmarks: true})
		require.Equal(t, []string{"BOOKMARK @4", "BOOKMARK @4"}, received(t, w, 2))
		require.Equal(t, 2*time.Second, time.Since(start))

		src = filled(t, cachetest.Options{BookmarkInterval: -1})
		w = open(t, src, metav1.ListOptions{ResourceVersion: "4", AllowWatchBookmarks: true})
		require.Equal(t, []string{"silence"}, received(t, w, 1))
	})
}

func TestBookmarksAreOfTheSourcesType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bookmarkOf := func(options cachetest.Options, objs ...runtime.Object) runtime.Object {
			src := cachetest.NewSource(options)
			apply(t, src, objs...)
			w := open(t, src, metav1.ListOptions{AllowWatchBookmarks: true})
			src.SendBookmarks()
			event := <-w.ResultChan()
			for event.Type == watch.Added {
				event = <-w.ResultChan()
			}
			require.Equal(t, watch.Bookmark, event.Type)
			return event.Object
		}
		got := bookmarkOf(cachetest.Options{}, pod("a", "1"))
		require.Equal(t, map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"resourceVersion": "1"},
		}, got.(*unstructured.Unstructured).Object)
		require.Equal(
			t,
			podKind,
			bookmarkOf(
				cachetest.Options{GroupVersionKind: podKind}).GetObjectKind().GroupVersionKind(),
		)
		require.IsType(t, &unstructured.Unstructured{}, bookmarkOf(cachetest.Options{}))
		require.IsType(t, &widget{}, bookmarkOf(cachetest.Options{}, newWidget("a", "1", 1)))
		require.IsType(t, &widget{}, bookmarkOf(cachetest.Options{NewList: newWidgetList}))
		require.IsType(
			t, &widget{},
			bookmarkOf(cachetest.Options{NewObject: func() runtime.Object { return &widget{} }}))
		pointers := func() runtime.Object { return &pointerList{} }
		require.IsType(t, &widget{}, bookmarkOf(cachetest.Options{NewList: pointers}))
		raw := func() runtime.Object { return &metav1.List{} }
		require.IsType(
			t, &widget{}, bookmarkOf(cachetest.Options{NewList: raw}, newWidget("a", "1", 1)))
		noList := func() runtime.Object { return &widget{} }
		require.IsType(
			t, &unstructured.Unstructured{}, bookmarkOf(cachetest.Options{NewList: noList}))
		anything := func() runtime.Object { return &anyList{} }
		require.IsType(
			t, &unstructured.Unstructured{}, bookmarkOf(cachetest.Options{NewList: anything}))
	})
}

type pointerList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []*widget
}

func (l *pointerList) DeepCopyObject() runtime.Object { c := *l; return &c }

type anyList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

func (l *anyList) DeepCopyObject() runtime.Object { c := *l; return &c }

func TestTimeoutSecondsEndsTheWatchCleanly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		start := time.Now()
		opts := metav1.ListOptions{ResourceVersion: "4", TimeoutSeconds: pointer(int64(7))}
		w := open(t, src, opts)
		require.Equal(t, []string{"closed"}, received(t, w, 1))
		require.Equal(t, 7*time.Second, time.Since(start))
		// A watch that is not read ends too.
		opts.ResourceVersion = "1"
		w = open(t, src, opts)
		time.Sleep(8 * time.Second)
		require.Equal(t, []string{"closed"}, received(t, w, 1))

		// At the instant of a bookmark, the end has priority.
		for range 20 {
			w = open(
				t,
				src,
				metav1.ListOptions{
					ResourceVersion:     "4",
					TimeoutSeconds:      pointer(int64(60)),
					AllowWatchBookmarks: true,
				},
			)
			require.Equal(
				t, []string{"BOOKMARK @4", "closed"}, received(t, w, 2),
			) // two seconds before the end
		}

		src = filled(t, cachetest.Options{IgnoreTimeouts: true})
		w = open(t, src, opts)
		require.Len(t, received(t, w, 3), 3)
		require.Equal(t, []string{"silence"}, received(t, w, 1))
	})
}

func TestASelectorTurnsComingAndGoingIntoAddedAndDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := cachetest.NewSource(cachetest.Options{})
		apply(t, src, pod("a", "1", "app", "web"), pod("a", "2"))
		w := open(t, src, metav1.ListOptions{LabelSelector: "app=web"})
		require.Equal(t, []string{"ADDED a/1 @1"}, ready(t, w))
		apply(t, src,
			pod("a", "2", "app", "web"),           // enters
			pod("a", "1", "app", "web", "x", "y"), // stays
			pod("a", "1", "app", "db"),            // leaves
			pod("a", "1", "app", "db", "x", "y"),  // stays outside
			pod("a", "3"),                         // never inside
		)
		remove(t, src, "a", "2")
		remove(t, src, "a", "1")
		event := <-w.ResultChan()
		require.Equal(t, "ADDED a/2 @3", describe(t, event))
		event = <-w.ResultChan()
		require.Equal(t, "MODIFIED a/1 @4", describe(t, event))
		event = <-w.ResultChan()
		require.Equal(t, "DELETED a/1 @5", describe(t, event))
		require.Equal(
			t, "web", event.Object.(*unstructured.Unstructured).GetLabels()["app"],
			"the last selected state")
		require.Equal(t, []string{"DELETED a/2 @8"}, ready(t, w))
	})
}

func TestASlowWatchDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		slow := open(t, src, metav1.ListOptions{ResourceVersion: "4"})
		fast := open(t, src, metav1.ListOptions{ResourceVersion: "4"})
		for range 1000 {
			apply(t, src, pod("a", "1"))
		}
		require.Len(t, ready(t, fast), 1000)
		require.Equal(t, []string{"MODIFIED a/1 @5"}, received(t, slow, 1))
	})
}

func TestAWatchEndsWithItsContextOrStopAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		for _, version := range []string{"", "4"} { // about to deliver, and idle
			ctx, cancel := context.WithCancel(t.Context())
			w, err := src.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: version})
			require.NoError(t, err)
			viewed, err := src.Namespace(
				"a").WatchWithContext(
				t.Context(), metav1.ListOptions{ResourceVersion: version})
			require.NoError(t, err)
			synctest.Wait()
			require.Equal(t, 2, src.ActiveWatches())
			cancel()
			viewed.Stop()
			viewed.Stop()
			synctest.Wait()
			require.Zero(t, src.ActiveWatches())
			require.Equal(t, []string{"closed"}, ready(t, w))
			require.Equal(t, []string{"closed"}, ready(t, viewed))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := src.WatchWithContext(ctx, metav1.ListOptions{})
		require.ErrorIs(t, err, context.Canceled)
		_, err = src.ListWithContext(ctx, metav1.ListOptions{})
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestEventsOfOneWatchAreCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		first := open(t, src, metav1.ListOptions{ResourceVersion: "3"})
		second := open(t, src, metav1.ListOptions{ResourceVersion: "3"})
		event := <-first.ResultChan()
		event.Object.(*unstructured.Unstructured).SetLabels(map[string]string{"changed": "yes"})
		require.Equal(t, []string{"ADDED b/1 @4"}, ready(t, second))
		apply(t, src, pod("b", "1"))
		event = <-first.ResultChan()
		event.Object.(*unstructured.Unstructured).SetLabels(map[string]string{"changed": "yes"})
		obj, err := src.Get("b", "1")
		require.NoError(t, err)
		require.Empty(t, obj.(*unstructured.Unstructured).GetLabels())
		replayed := open(t, src, metav1.ListOptions{ResourceVersion: "3"})
		for range 2 {
			event = <-replayed.ResultChan()
			require.Empty(t, event.Object.(*unstructured.Unstructured).GetLabels())
		}
	})
}
