package cachetest_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/cachetest"
)

func TestListAfterCompactionAnswers410(t *testing.T) {
	src := filled(t, cachetest.Options{})
	_, first := list(t, src, metav1.ListOptions{Limit: 1})
	_, older := list(
		t, src, metav1.ListOptions{Limit: 1, ResourceVersion: "3", ResourceVersionMatch: exact})
	src.Compact(4)
	_, err := src.List(metav1.ListOptions{ResourceVersion: "3", ResourceVersionMatch: exact})
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	names, _ := list(t, src, metav1.ListOptions{ResourceVersion: "4", ResourceVersionMatch: exact})
	require.Len(t, names, 4)
	_, err = src.List(metav1.ListOptions{Continue: older.GetContinue()})
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	names, _ = list(t, src, metav1.ListOptions{Continue: first.GetContinue()})
	require.Len(t, names, 3)
	names, _ = list(t, src, metav1.ListOptions{ResourceVersion: "1"})
	require.Len(t, names, 4, "not older than 1 is no question of history")
	src.Compact(1000)
	require.Equal(t, uint64(4), src.Version())
}

func TestHistoryLimitCompactsByItself(t *testing.T) {
	src := filled(t, cachetest.Options{HistoryLimit: 2})
	_, err := src.List(metav1.ListOptions{ResourceVersion: "1", ResourceVersionMatch: exact})
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	names, _ := list(t, src, metav1.ListOptions{ResourceVersion: "2", ResourceVersionMatch: exact})
	require.Equal(t, []string{"a/1", "a/2"}, names)
}

func TestWatchAfterCompactionAnswers410(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		src.Compact(3)
		_, err := src.Watch(metav1.ListOptions{ResourceVersion: "2"})
		require.True(t, apierrors.IsResourceExpired(err), "%v", err)
		require.ErrorContains(t, err, "too old resource version: 2 (3)")
		w := open(t, src, metav1.ListOptions{ResourceVersion: "3"})
		require.Equal(t, []string{"ADDED b/1 @4"}, ready(t, w))
		src.CompactAll()
		_, err = src.Watch(metav1.ListOptions{ResourceVersion: "3"})
		require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	})
}

func TestExpiredOnStreamAnswers410AsAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{ExpiredOnStream: true})
		src.CompactAll()
		w := open(t, src, metav1.ListOptions{ResourceVersion: "2"})
		require.Equal(t, []string{"ERROR Expired", "closed"}, ready(t, w))
	})
}

func TestCompactionSparesOpenWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		w := open(t, src, metav1.ListOptions{ResourceVersion: "1"})
		synctest.Wait()
		src.CompactAll()
		require.Equal(t, []string{"ADDED a/2 @2", "ADDED a/3 @3", "ADDED b/1 @4"}, ready(t, w))
	})
}

func TestAHistoryLimitExpiresSlowWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{HistoryLimit: 4})
		slow := open(t, src, metav1.ListOptions{ResourceVersion: "1"})
		fast := open(t, src, metav1.ListOptions{ResourceVersion: "4"})
		synctest.Wait()
		for range 10 {
			apply(t, src, pod("a", "1"))
			require.Len(t, ready(t, fast), 1)
		}
		// The reader was about to receive version 2, and has missed 3 to 10 since.
		require.Equal(t, []string{"ADDED a/2 @2", "ERROR Expired", "closed"}, ready(t, slow))
	})
}

func TestCompactWatchesExpiresNewWatchesAndSparesLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		earlier := open(t, src, metav1.ListOptions{ResourceVersion: "1"})
		_, page := list(t, src, metav1.ListOptions{Limit: 1, ResourceVersion: "2"})
		src.CompactWatches(3)
		_, err := src.Watch(metav1.ListOptions{ResourceVersion: "2"})
		requireReason(t, metav1.StatusReasonExpired, err)
		require.ErrorContains(t, err, "too old resource version: 2 (3)")
		require.Equal(
			t, []string{"ADDED b/1 @4"},
			ready(t, open(t, src, metav1.ListOptions{ResourceVersion: "3"})))
		require.Equal(t, "BOOKMARK end @4", ready(t, open(t, src, streaming()))[4])
		require.Equal(
			t, []string{"ADDED a/2 @2", "ADDED a/3 @3", "ADDED b/1 @4"}, ready(t, earlier))

		names, answered := list(
			t, src, metav1.ListOptions{ResourceVersion: "2", ResourceVersionMatch: exact})
		require.Equal(t, []string{"a/1", "a/2"}, names)
		require.Equal(t, "2", answered.GetResourceVersion())
		names, _ = list(t, src, metav1.ListOptions{Continue: page.GetContinue()})
		require.Equal(t, []string{"a/2"}, names)
	})
}

func TestCompactWatchesOnlyMovesForwardAndNeverPastThePresent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		src.CompactWatches(1000)
		src.CompactWatches(2)
		src.Compact(1)
		src.Heal()
		_, err := src.Watch(metav1.ListOptions{ResourceVersion: "3"})
		requireReason(t, metav1.StatusReasonExpired, err)
		apply(t, src, pod("a", "1"))
		require.Equal(
			t, []string{"MODIFIED a/1 @5"},
			ready(t, open(t, src, metav1.ListOptions{ResourceVersion: "4"})))

		require.NoError(t, src.Rollback(2))
		require.Empty(
			t, ready(t, open(t, src, metav1.ListOptions{ResourceVersion: "2"})),
			"the present can be watched")
		_, err = src.Watch(metav1.ListOptions{ResourceVersion: "1"})
		requireReason(t, metav1.StatusReasonExpired, err)
	})
}

// Fails if a watch from below the new version is accepted, or if a list is refused.
func TestAdvanceCompactedTakesNoWatchFromBeforeTheVersionItLeadsTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		earlier := open(t, src, metav1.ListOptions{ResourceVersion: "3"})
		src.AdvanceCompacted(10)
		require.EqualValues(t, 14, src.Version())
		for _, version := range []string{"4", "13"} {
			_, err := src.Watch(metav1.ListOptions{ResourceVersion: version})
			requireReason(t, metav1.StatusReasonExpired, err)
		}
		names, _ := list(
			t, src, metav1.ListOptions{ResourceVersion: "2", ResourceVersionMatch: exact})
		require.Equal(t, []string{"a/1", "a/2"}, names)
		later := open(t, src, metav1.ListOptions{ResourceVersion: "14"})
		apply(t, src, pod("a", "1"))
		require.Equal(t, []string{"MODIFIED a/1 @15"}, ready(t, later))
		require.Equal(t, []string{"ADDED b/1 @4", "MODIFIED a/1 @15"}, ready(t, earlier))
	})
}

func TestCompactWatchesAnswersOnTheStreamIfTheOptionSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{ExpiredOnStream: true})
		src.CompactWatches(3)
		w := open(t, src, metav1.ListOptions{ResourceVersion: "2"})
		require.Equal(t, []string{"ERROR Expired", "closed"}, ready(t, w))
	})
}
