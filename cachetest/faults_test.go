package cachetest_test

import (
	"context"
	"errors"
	"syscall"
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

var errTest = errors.New("scripted by the test")

func TestFailuresQueueUpAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		ask := map[string]func() error{
			"list":  func() error { _, err := src.List(metav1.ListOptions{}); return err },
			"watch": func() error { w, err := src.Watch(metav1.ListOptions{}); stop(w); return err },
		}
		script := map[string]func(int, error){"list": src.FailLists, "watch": src.FailWatches}
		for verb, fail := range script {
			fail(0, errTest)
			require.NoError(t, ask[verb](), verb)
			fail(2, errTest)
			fail(1, nil)
			require.ErrorIs(t, ask[verb](), errTest)
			require.ErrorIs(t, ask[verb](), errTest)
			require.True(t, apierrors.IsInternalError(ask[verb]()))
			require.NoError(t, ask[verb]())
			fail(cachetest.Forever, errTest)
			for range 20 {
				require.ErrorIs(t, ask[verb](), errTest)
			}
			src.Heal()
			require.NoError(t, ask[verb]())
		}
	})
}

func stop(w watch.Interface) {
	if w != nil {
		w.Stop()
	}
}

func TestHooksMayChangeTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		src.OnList(func(opts metav1.ListOptions) error {
			if opts.Limit == 13 {
				return errTest
			}
			return nil
		})
		_, err := src.List(metav1.ListOptions{Limit: 13})
		require.ErrorIs(t, err, errTest)
		names, answered := list(t, src, metav1.ListOptions{})
		require.Len(t, names, 4)
		src.OnWatch(func(metav1.ListOptions) error {
			_, err := src.Delete("a", "1")
			return err
		})
		w := open(t, src, metav1.ListOptions{ResourceVersion: answered.GetResourceVersion()})
		require.Equal(t, []string{"DELETED a/1 @5"}, ready(t, w))
		_, err = src.Watch(metav1.ListOptions{})
		requireReason(t, metav1.StatusReasonNotFound, err)
		src.OnList(nil)
		src.OnWatch(nil)
		_, err = src.List(metav1.ListOptions{Limit: 13})
		require.NoError(t, err)
	})
}

func TestMangleListChangesAnswers(t *testing.T) {
	src := filled(t, cachetest.Options{})
	src.MangleList(func(obj runtime.Object) runtime.Object {
		obj.(*unstructured.UnstructuredList).Items = nil
		return obj
	})
	names, _ := list(t, src, metav1.ListOptions{})
	require.Empty(t, names)
	src.MangleList(func(runtime.Object) runtime.Object { return nil })
	obj, err := src.List(metav1.ListOptions{})
	require.NoError(t, err)
	require.Nil(t, obj)
	src.MangleList(nil)
	names, _ = list(t, src, metav1.ListOptions{})
	require.Len(t, names, 4)
}

func TestHangingRequestsWaitForTheirContextOrTheirRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		ask := map[string]func(context.Context) error{
			"list": func(ctx context.Context) error {
				_, err := src.ListWithContext(ctx, metav1.ListOptions{})
				return err
			},
			"watch": func(ctx context.Context) error {
				w, err := src.WatchWithContext(ctx, metav1.ListOptions{})
				stop(w)
				return err
			},
		}
		obeys := map[string]func(int){"list": src.HangLists, "watch": src.HangWatches}
		ignores := map[string]func(int){
			"list":  src.HangListsIgnoringContext,
			"watch": src.HangWatchesIgnoringContext,
		}
		for verb, request := range ask {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			obeys[verb](1)
			require.ErrorIs(t, request(ctx), context.DeadlineExceeded)
			require.Equal(t, time.Minute, time.Since(start))

			obeys[verb](1)
			time.AfterFunc(time.Minute, src.ReleaseHanging)
			require.NoError(t, request(t.Context()))
			require.Equal(t, 2*time.Minute, time.Since(start))

			ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ignores[verb](1)
			time.AfterFunc(time.Hour, src.Heal)
			require.ErrorIs(t, request(ctx), context.DeadlineExceeded, "it is delivered late")
			require.Equal(t, 2*time.Minute+time.Hour, time.Since(start))
			require.NoError(t, request(t.Context()), "the next one does not hang")
		}
	})
}

func TestDelaysTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		start := time.Now()
		src.DelayLists(time.Second)
		_, err := src.List(metav1.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(start))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = src.ListWithContext(ctx, metav1.ListOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		src.DelayLists(0)
		_, err = src.List(metav1.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, time.Second+time.Millisecond, time.Since(start))

		start = time.Now()
		src.DelayWatches(2 * time.Second)
		src.DelayEvents(3 * time.Second)
		w := open(t, src, metav1.ListOptions{ResourceVersion: "2"})
		require.Equal(t, 2*time.Second, time.Since(start))
		require.Equal(t, []string{"ADDED a/3 @3", "ADDED b/1 @4"}, received(t, w, 2))
		require.Equal(t, 8*time.Second, time.Since(start))
	})
}

func TestADelayedEventStopsForTheEndOfItsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		src.DelayEvents(time.Hour)
		start := time.Now()
		w := open(
			t, src, metav1.ListOptions{ResourceVersion: "2", TimeoutSeconds: pointer(int64(5))})
		require.Equal(t, []string{"closed"}, received(t, w, 1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		w, err := src.WatchWithContext(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"closed"}, received(t, w, 1))
		w = open(t, src, metav1.ListOptions{})
		w.Stop()
		require.Equal(t, []string{"closed"}, received(t, w, 1))
		require.Equal(t, 6*time.Second, time.Since(start))
		// A deadline that passes during silence, and in the middle of a delay.
		w = open(
			t, src, metav1.ListOptions{ResourceVersion: "2", TimeoutSeconds: pointer(int64(5))})
		synctest.Wait()
		src.Silence()
		time.Sleep(2 * time.Hour)
		require.Equal(t, 1, src.ActiveWatches())
		src.Resume()
		require.Equal(t, []string{"closed"}, received(t, w, 1))
	})
}

func TestWatchesEndAfterSoManyEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		src.CloseNextWatches(1, 2)
		src.BreakNextWatches(1, 1, cachetest.ErrExpired())
		src.BreakNextWatches(1, 0, nil)
		src.CloseNextWatches(1, 0)
		from := metav1.ListOptions{ResourceVersion: "1"}
		require.Equal(
			t, []string{"ADDED a/2 @2", "ADDED a/3 @3", "closed"}, ready(t, open(t, src, from)))
		require.Equal(
			t, []string{"ADDED a/2 @2", "ERROR Expired", "closed"}, ready(t, open(t, src, from)))
		require.Equal(t, []string{"ERROR InternalError", "closed"}, ready(t, open(t, src, from)))
		require.Equal(t, []string{"closed"}, ready(t, open(t, src, from)))
		require.Equal(
			t, []string{"ADDED a/2 @2", "ADDED a/3 @3", "ADDED b/1 @4"},
			ready(t, open(t, src, from)))
	})
}

func TestAStreamingListCanBeCutInTheMiddleAndAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		src.CloseNextWatches(1, 3)
		src.CloseNextWatches(1, 5)
		require.Equal(
			t, []string{"ADDED a/1 @1", "ADDED a/2 @2", "ADDED a/3 @3", "closed"},
			ready(t, open(t, src, streaming())))
		require.Equal(
			t, []string{"BOOKMARK end @4", "closed"}, ready(t, open(t, src, streaming()))[4:])
	})
}

func TestCloseWatchesEndsThemBehindWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		w := open(t, src, metav1.ListOptions{ResourceVersion: "4"})
		apply(t, src, pod("a", "1"))
		src.CloseWatches()
		apply(t, src, pod("a", "2"))
		require.Equal(t, []string{"MODIFIED a/1 @5", "closed"}, ready(t, w))
		require.Equal(
			t, []string{"MODIFIED a/2 @6"},
			ready(t, open(t, src, metav1.ListOptions{ResourceVersion: "5"})))
	})
}

func TestBreakWatchesEndsThemWithAnErrorEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		w := open(t, src, metav1.ListOptions{ResourceVersion: "4"})
		apply(t, src, pod("a", "1"))
		src.BreakWatches(cachetest.ErrTooManyRequests(7))
		require.Equal(t, []string{"MODIFIED a/1 @5"}, received(t, w, 1))
		event := <-w.ResultChan()
		status := event.Object.(*metav1.Status)
		require.Equal(t, "Status", status.Kind)
		require.Equal(t, int32(429), status.Code)
		require.Equal(t, int32(7), status.Details.RetryAfterSeconds)
		require.Equal(t, []string{"closed"}, ready(t, w))

		w = open(t, src, metav1.ListOptions{ResourceVersion: "5"})
		src.BreakWatches(errTest)
		event = <-w.ResultChan()
		require.Equal(t, metav1.StatusReasonInternalError, event.Object.(*metav1.Status).Reason)
		require.Contains(t, event.Object.(*metav1.Status).Message, errTest.Error())
	})
}

func TestSilenceDeliversNothingUntilResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		opts := metav1.ListOptions{ResourceVersion: "4", AllowWatchBookmarks: true}
		w := open(t, src, opts)
		opts.TimeoutSeconds = pointer(int64(60))
		timed := open(t, src, opts)
		idle := open(
			t, src.Namespace("none"),
			metav1.ListOptions{ResourceVersion: "4", TimeoutSeconds: opts.TimeoutSeconds})
		src.Silence()
		later := open(t, src, metav1.ListOptions{ResourceVersion: "4"})
		apply(t, src, pod("a", "1"))
		src.SendBookmarks()
		for _, silent := range []watch.Interface{w, timed, idle, later} {
			require.Equal(t, []string{"silence"}, received(t, silent, 1))
		}
		require.Equal(t, 4, src.ActiveWatches())
		src.Resume()
		require.Equal(t, []string{"MODIFIED a/1 @5", "BOOKMARK @5"}, received(t, w, 2))
		require.Equal(t, []string{"MODIFIED a/1 @5"}, ready(t, later))
		require.Equal(t, []string{"closed"}, ready(t, timed))
		require.Equal(t, []string{"closed"}, ready(t, idle))
	})
}

func TestASilentWatchStillEndsWhenItsClientOrTheScriptEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		src.Silence()
		stopped := open(t, src, metav1.ListOptions{})
		closed := open(t, src, metav1.ListOptions{})
		src.BreakWatches(nil)
		require.Equal(t, []string{"silence"}, received(t, stopped, 1))
		stopped.Stop()
		require.Equal(t, []string{"closed"}, received(t, stopped, 1))
		src.CloseWatches()
		require.Equal(t, []string{"closed"}, received(t, closed, 1))
		recovered := open(t, src, metav1.ListOptions{ResourceVersion: "3"})
		require.Equal(t, []string{"silence"}, received(t, recovered, 1))
		src.Heal()
		require.Equal(t, []string{"ADDED b/1 @4"}, ready(t, recovered))
	})
}

func TestSilenceDelaysAnEventThatWasBeingDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		src.DelayEvents(time.Minute)
		w := open(t, src, metav1.ListOptions{ResourceVersion: "3"})
		ended := open(t, src, metav1.ListOptions{ResourceVersion: "3"})
		time.Sleep(time.Second)
		src.Silence()
		require.Equal(t, []string{"silence"}, received(t, w, 1))
		ended.Stop()
		require.Equal(t, []string{"closed"}, received(t, ended, 1))
		src.Resume()
		require.Equal(t, []string{"ADDED b/1 @4"}, ready(t, w))
	})
}

func TestAnUnreadWatchThatTimesOutInSilenceEndsAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		w := open(
			t, src, metav1.ListOptions{ResourceVersion: "2", TimeoutSeconds: pointer(int64(1))})
		synctest.Wait() // an event is in transit
		src.Silence()
		time.Sleep(time.Minute)
		require.Equal(t, 1, src.ActiveWatches())
		src.Resume()
		require.Equal(t, []string{"ADDED a/3 @3", "closed"}, ready(t, w))
	})
}

func TestDeleteSilentlyShowsOnlyInLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		w := open(t, src, metav1.ListOptions{ResourceVersion: "4", AllowWatchBookmarks: true})
		_, err := src.DeleteSilently("a", "1")
		require.NoError(t, err)
		_, err = src.DeleteSilently("a", "1")
		requireReason(t, metav1.StatusReasonNotFound, err)
		apply(t, src, pod("a", "2"))
		src.SendBookmarks()
		require.Equal(t, []string{"MODIFIED a/2 @6", "BOOKMARK @6"}, ready(t, w))
		require.Equal(
			t, []string{"MODIFIED a/2 @6"},
			ready(t, open(t, src, metav1.ListOptions{ResourceVersion: "4"})))
		names, _ := list(t, src, metav1.ListOptions{})
		require.Equal(t, []string{"a/2", "a/3", "b/1"}, names)
		names, _ = list(
			t, src, metav1.ListOptions{ResourceVersion: "4", ResourceVersionMatch: exact})
		require.Len(t, names, 4)
	})
}

func TestServeOldListsAnswersThePast(t *testing.T) {
	src := filled(t, cachetest.Options{})
	require.Error(t, src.ServeOldLists(1, 5))
	require.NoError(t, src.ServeOldLists(2, 3))
	src.CompactAll()
	require.Error(t, src.ServeOldLists(1, 3))
	names, answered := list(t, src, metav1.ListOptions{})
	require.Equal(t, []string{"a/1", "a/2", "a/3"}, names)
	require.Equal(t, "3", answered.GetResourceVersion())
	_, answered = list(t, src, metav1.ListOptions{ResourceVersion: "4"})
	require.Equal(t, "3", answered.GetResourceVersion())
	names, answered = list(t, src, metav1.ListOptions{})
	require.Len(t, names, 4)
	require.Equal(t, "4", answered.GetResourceVersion())
}

func TestInjectSendsAnythingToOpenWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		w := open(t, src.Namespace("b"), metav1.ListOptions{ResourceVersion: "4"})
		foreign := pod("z", "1")
		apply(t, src, pod("b", "1"))
		src.Inject(watch.Event{Type: watch.Modified, Object: foreign})
		foreign.SetName("changed later")
		src.Inject(watch.Event{Type: "NONSENSE"})
		src.Inject(
			watch.Event{Type: watch.Error, Object: &metav1.Status{Reason: metav1.StatusReasonGone}})
		apply(t, src, pod("b", "1"))
		require.Equal(t, []string{
			"MODIFIED b/1 @5", "MODIFIED z/1 @", "NONSENSE nil", "ERROR Gone", "MODIFIED b/1 @6",
		}, ready(t, w))
		require.Equal(t, uint64(6), src.Version())
	})
}

func TestBookmarksMayGoBackAndComeTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		w := open(t, src, metav1.ListOptions{ResourceVersion: "4", AllowWatchBookmarks: true})
		src.SendBookmarksAt(2)
		require.Equal(t, []string{"BOOKMARK @2"}, ready(t, w))
		src.DuplicateBookmarks(true)
		src.SendBookmarks()
		require.Equal(t, []string{"BOOKMARK @4", "BOOKMARK @4"}, ready(t, w))
		require.Equal(
			t, []string{"BOOKMARK end @4", "BOOKMARK end @4"},
			ready(t, open(t, src, streaming()))[4:])
		src.DuplicateBookmarks(false)
		src.SendBookmarks()
		require.Equal(t, []string{"BOOKMARK @4"}, ready(t, w))
	})
}

func TestWithholdInitialEventsEndWithholdsThePeriodicBookmarksToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		src.WithholdInitialEventsEnd(1)
		plain := open(t, src, metav1.ListOptions{ResourceVersion: "4", AllowWatchBookmarks: true})
		w := open(t, src, streaming())
		require.Equal(
			t, []string{"ADDED a/1 @1", "ADDED a/2 @2", "ADDED a/3 @3", "ADDED b/1 @4", "silence"},
			received(t, w, 5))
		apply(t, src, pod("a", "1"))
		require.Equal(t, []string{"MODIFIED a/1 @5"}, ready(t, w))
		require.Equal(t, []string{"BOOKMARK @4"}, received(t, plain, 1))
		require.Equal(t, "BOOKMARK end @5", ready(t, open(t, src, streaming()))[4])
	})
}

func TestErrorsAreWhatClientsSeeOfThem(t *testing.T) {
	require.ErrorIs(t, cachetest.ErrConnectionRefused(), syscall.ECONNREFUSED)
	require.True(t, apierrors.IsResourceExpired(cachetest.ErrExpired()))
	require.True(t, apierrors.IsInternalError(cachetest.ErrInternal()))
	seconds, ok := apierrors.SuggestsClientDelay(cachetest.ErrTooManyRequests(3))
	require.True(t, ok)
	require.Equal(t, 3, seconds)
}
