package cachetest_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/cachetest"
)

func TestNoRequestHangsPastHealHoweverTheyRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		defer src.Close()
		// It takes many rounds to hit a gap of a few instructions; a round is quick.
		for round := range 2000 {
			const requests = 4
			var asking, answered atomic.Int32
			src.HangLists(cachetest.Forever)
			for range requests {
				go func() {
					asking.Add(1)
					_, _ = src.List(metav1.ListOptions{})
					answered.Add(1)
				}()
			}
			for asking.Load() < int32(round%(requests+1)) {
				runtime.Gosched()
			}
			src.Heal()
			synctest.Wait()
			require.Equal(t, int32(requests), answered.Load(), "round %d", round)
		}
	})
}

func TestHealSparesAHangingRequestTheDelayBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		start := time.Now()
		src.HangLists(1)
		src.DelayLists(time.Hour)
		src.OnList(func(metav1.ListOptions) error { return errTest })
		time.AfterFunc(time.Minute, src.Heal)
		_, err := src.List(metav1.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestReleaseHangingLeavesTheRestOfTheScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		start := time.Now()
		src.HangLists(1)
		src.DelayLists(time.Hour)
		src.FailLists(1, errTest)
		time.AfterFunc(time.Minute, src.ReleaseHanging)
		_, err := src.List(metav1.ListOptions{})
		require.ErrorIs(t, err, errTest)
		require.Equal(t, time.Minute+time.Hour, time.Since(start))
	})
}

func TestAnEventsDelayEndsWithHealAndFollowsTheScript(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		then  func(*cachetest.Source)
		want  time.Duration
	}{
		"recovered": {time.Minute, (*cachetest.Source).Heal, time.Minute},
		"no delay": {
			time.Minute, func(src *cachetest.Source) { src.DelayEvents(0) }, time.Minute,
		},
		"shorter": {
			time.Minute, func(src *cachetest.Source) { src.DelayEvents(2 * time.Minute) },
			2 * time.Minute,
		},
		"already over": {
			time.Minute, func(src *cachetest.Source) { src.DelayEvents(time.Second) }, time.Minute,
		},
		"longer": {
			time.Minute, func(src *cachetest.Source) { src.DelayEvents(2 * time.Hour) },
			2 * time.Hour,
		},
		"only a change": {
			time.Minute, func(src *cachetest.Source) { src.Advance(1); src.SendBookmarks() },
			time.Hour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := filled(t, cachetest.Options{})
				src.DelayEvents(time.Hour)
				start := time.Now()
				w := open(
					t, src, metav1.ListOptions{ResourceVersion: "3", AllowWatchBookmarks: true})
				time.AfterFunc(c.after, func() { c.then(src) })
				require.Equal(t, []string{"ADDED b/1 @4"}, received(t, w, 1))
				require.Equal(t, c.want, time.Since(start))
			})
		})
	}
}

func TestHealSendsTheEndOfTheInitialEventsThatWasWithheld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		src.WithholdInitialEventsEnd(1)
		w := open(t, src, streaming())
		require.Equal(
			t, []string{"ADDED a/1 @1", "ADDED a/2 @2", "ADDED a/3 @3", "ADDED b/1 @4"},
			ready(t, w),
		)
		apply(t, src, pod("a", "1"))
		require.Equal(t, []string{"MODIFIED a/1 @5"}, ready(t, w))
		src.Heal()
		require.Equal(
			t, []string{"BOOKMARK end @5"}, ready(t, w), "with the version of what was sent")
		apply(t, src, pod("a", "1"))
		require.Equal(
			t, []string{"MODIFIED a/1 @6", "BOOKMARK @6"}, received(t, w, 2),
			"and the periodic ones follow")
	})
}
